import type { Publisher } from '../contract/publisher.ts'
import type { RelaySignal } from '../contract/signals.ts'
import { late, pause, retryPauseMs, within } from './pace.ts'

/**
 * The life of a publisher.
 *
 * connecting: `connect` is tried until it succeeds; nothing is published.
 * ready: publishes run.
 * replacing: a publish did not end by its deadline, so the publisher is closed and connected again.
 * stuck: `close` did not end either. The relay stops renewing its lease, because what hangs may still be written.
 * closed: for good.
 */
export interface PublisherLink {
  readonly state: 'connecting' | 'ready' | 'replacing' | 'stuck' | 'closed'
  readonly cause: unknown
  start(): void
  /** Replaces the publisher, unless that has happened since the publish began that asks for it. */
  replace(cause: unknown, generation: number): void
  /** Rises with every connect that succeeds. */
  readonly generation: number
  close(): Promise<void>
}

export interface PublisherLinkOptions {
  readonly publisher: Publisher
  /** How long one `connect` and one `close` may take, in ms. */
  readonly timeoutMs: number
  readonly emit: (signal: RelaySignal) => void
  readonly onReady: () => void
  readonly onStuck: () => void
}

export function createPublisherLink({
  publisher,
  timeoutMs,
  emit,
  onReady,
  onStuck,
}: PublisherLinkOptions): PublisherLink {
  let state: PublisherLink['state'] = 'connecting'
  let cause: unknown
  let generation = 0
  const closing = new AbortController()

  const isClosing = (): boolean => closing.signal.aborted

  async function connect(): Promise<void> {
    for (let failures = 0; !closing.signal.aborted; failures++) {
      const attempt = new AbortController()
      const abort = (): void => {
        attempt.abort()
      }
      closing.signal.addEventListener('abort', abort, { once: true })
      try {
        const answer = await within(publisher.connect(attempt.signal), timeoutMs)
        if (answer !== late) {
          if (isClosing()) {
            // It came too late: nobody else would close it.
            await end()
            return
          }
          generation += 1
          state = 'ready'
          cause = undefined
          if (failures > 0) emit({ kind: 'breaker', destination: publisher.name, open: false, cause: undefined })
          onReady()
          return
        }
        throw new Error(`${publisher.name} did not connect within ${String(timeoutMs)} ms`)
      } catch (error) {
        abort()
        cause = error
        if (failures === 0) emit({ kind: 'breaker', destination: publisher.name, open: true, cause: error })
        await pause(retryPauseMs(failures), closing.signal)
      } finally {
        closing.signal.removeEventListener('abort', abort)
      }
    }
  }

  async function end(): Promise<boolean> {
    try {
      return (await within(publisher.close(), timeoutMs)) !== late
    } catch (error) {
      emit({ kind: 'fault', what: 'close failed', cause: error })
      return true
    }
  }

  async function reconnect(reason: unknown): Promise<void> {
    emit({
      kind: 'fault',
      what: 'the publisher is replaced, because a publish did not end by its deadline',
      cause: reason,
    })
    if (await end()) {
      if (closing.signal.aborted) return
      state = 'connecting'
      await connect()
      return
    }
    state = 'stuck'
    emit({ kind: 'fault', what: 'close did not end either; the relay gives up its lease', cause: reason })
    onStuck()
  }

  return {
    get state() {
      return state
    },
    get cause() {
      return cause
    },
    start() {
      void connect()
    },
    get generation() {
      return generation
    },
    replace(reason, since) {
      if (state !== 'ready' || since !== generation) return
      state = 'replacing'
      cause = reason
      void reconnect(reason)
    },
    async close() {
      if (state === 'closed') return
      closing.abort()
      state = 'closed'
      if (!(await end())) emit({ kind: 'fault', what: 'close did not end', cause })
    },
  }
}
