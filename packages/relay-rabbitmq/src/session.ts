import { setTimeout as delay } from 'node:timers/promises'
import { orAbort } from '@inorder/core'
import { type ChannelModel, type ConfirmChannel, connect, type Options } from 'amqplib'

/** How a publish ended. Absent words mean that nobody knows: the connection or the channel went before the answer. */
export type Answer = 'confirmed' | 'returned' | 'refused' | { readonly lost: unknown }

/** One connection, with a confirm channel for each exchange, so that what closes one leaves the others alone. */
export interface Session {
  readonly version: string | undefined
  /** Why the server takes nothing at the moment. */
  readonly blocked: string | undefined
  /** Resolves with the reason when the connection is over. */
  readonly ended: Promise<unknown>
  /** Resolves when the exchange can be published to. Looked up once, on a channel of its own. */
  checkExchange(exchange: string): Promise<void>
  /**
   * Publishes, or joins the publish of the same id that is on its way: two copies are never in flight together. Never
   * rejects.
   */
  publish(exchange: string, routingKey: string, body: Buffer, options: Options.Publish): Promise<Answer>
  destroy(reason: Error): void
}

export interface SessionSettings {
  readonly urls: readonly (string | Options.Connect)[]
  readonly socket: Readonly<Record<string, unknown>>
  readonly name: string
  readonly fence: 'same-relay' | 'none'
  readonly connectTimeoutMs: number
}

/** Seconds. At the server's default of 60 a dead connection is noticed after three minutes. */
const heartbeatSeconds = 10
const lockRetryMs = 50

/**
 * Opens a session to the first server of the list that answers. With a fence it holds an exclusive queue of this name, which
 * the server gives to nobody else for as long as an earlier connection of the same publisher lives there.
 *
 * @throws the client's error, or the reason of the first signal that aborts.
 */
export async function openSession(
  settings: SessionSettings,
  lock: string,
  signals: readonly AbortSignal[],
): Promise<Session> {
  let problem: unknown
  for (const url of settings.urls) {
    for (const signal of signals) signal.throwIfAborted()
    try {
      const model = await withSignals(connect(withHeartbeat(url), socketOptions(settings)), signals, discard)
      return await sessionOn(model, settings, lock, signals)
    } catch (error) {
      problem = error
    }
  }
  throw problem
}

async function sessionOn(
  model: ChannelModel,
  settings: SessionSettings,
  lock: string,
  signals: readonly AbortSignal[],
): Promise<Session> {
  const channels = new Map<string, Promise<ConfirmChannel>>()
  const checks = new Map<string, Promise<void>>()
  const pending = new Map<
    string,
    { readonly answer: Promise<Answer>; readonly settle: (answer: Answer) => void; readonly exchange: string }
  >()
  const returned = new Set<string>()
  let blocked: string | undefined
  let finish: (reason: unknown) => void = noop
  const ended = new Promise<unknown>((resolve) => (finish = resolve))
  let lastError: unknown

  model.on('error', (error) => (lastError = error))
  model.on('blocked', (reason) => (blocked = reason))
  model.on('unblocked', () => (blocked = undefined))
  model.on('close', (error) => over(lastError ?? error ?? new Error('RabbitMQ closed the connection')))

  function over(reason: unknown): void {
    finish(reason)
    for (const { settle } of [...pending.values()]) settle({ lost: reason })
  }

  function destroy(reason: Error): void {
    discard(model, reason)
    over(reason)
  }

  function channelFor(exchange: string): Promise<ConfirmChannel> {
    const existing = channels.get(exchange)
    if (existing !== undefined) return existing
    const opening = openChannel(exchange)
    channels.set(exchange, opening)
    opening.catch(() => channels.delete(exchange))
    return opening
  }

  async function openChannel(exchange: string): Promise<ConfirmChannel> {
    const channel = await model.createConfirmChannel()
    let reason: unknown = new Error('The channel was closed')
    channel.on('error', (error) => (reason = error))
    channel.on('return', ({ properties }) => returned.add(String(properties.messageId)))
    channel.on('close', () => {
      channels.delete(exchange)
      checks.delete(exchange)
      for (const each of [...pending.values()]) if (each.exchange === exchange) each.settle({ lost: reason })
    })
    return channel
  }

  async function lookAt(exchange: string): Promise<void> {
    const channel = await model.createChannel()
    // A look at an exchange that is not there closes the channel, and an error nobody listens to the process.
    channel.on('error', noop)
    await channel.checkExchange(exchange)
    await channel.close()
  }

  try {
    if (settings.fence === 'same-relay') await takeLock(model, lock, signals)
  } catch (error) {
    discard(model, error instanceof Error ? error : new Error(String(error)))
    throw error
  }

  return {
    version: model.connection.serverProperties.version,
    get blocked() {
      return blocked
    },
    ended,
    destroy,
    checkExchange(exchange) {
      // Everybody may publish to the default exchange, and nobody may look at it.
      if (exchange === '') return Promise.resolve()
      const known = checks.get(exchange)
      if (known !== undefined) return known
      const looking = lookAt(exchange)
      checks.set(exchange, looking)
      looking.catch(() => checks.delete(exchange))
      return looking
    },
    async publish(exchange, routingKey, body, options) {
      const id = String(options.messageId)
      const running = pending.get(id)
      if (running !== undefined) return running.answer
      let settle: (answer: Answer) => void = noop
      const answer = new Promise<Answer>((resolve) => {
        settle = (known) => {
          pending.delete(id)
          returned.delete(id)
          resolve(known)
        }
      })
      pending.set(id, { answer, settle, exchange })
      try {
        const channel = await channelFor(exchange)
        channel.publish(exchange, routingKey, body, options, (error: unknown) => {
          // The server says that it found no queue before it confirms. An error here is a refusal or the end of the
          // channel, which comes with its reason in a moment.
          if (isRefusal(error)) settle('refused')
          else if (error === null || error === undefined) settle(returned.has(id) ? 'returned' : 'confirmed')
        })
      } catch (error) {
        settle({ lost: error })
      }
      return answer
    },
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof Error && error.message === 'message nacked'
}

/** Declares the exclusive queue, again and again while somebody else has it. */
async function takeLock(model: ChannelModel, name: string, signals: readonly AbortSignal[]): Promise<void> {
  for (;;) {
    const channel = await withSignals(model.createChannel(), signals, noop)
    channel.on('error', noop)
    try {
      await withSignals(channel.assertQueue(name, { exclusive: true, durable: false, autoDelete: true }), signals, noop)
      return
    } catch (error) {
      for (const signal of signals) signal.throwIfAborted()
      if ((error as { code?: number }).code !== 405) throw error
      await delay(lockRetryMs)
    }
  }
}

function withHeartbeat(url: string | Options.Connect): string | Options.Connect {
  if (typeof url !== 'string') return { heartbeat: heartbeatSeconds, ...url }
  const parsed = new URL(url)
  if (!parsed.searchParams.has('heartbeat')) parsed.searchParams.set('heartbeat', String(heartbeatSeconds))
  return parsed.href
}

/** Without `noDelay` a message of more than 2 KB waits 44 ms for the acknowledgement of the one before. */
function socketOptions({ socket, name, connectTimeoutMs }: SessionSettings): object {
  const clientProperties = { connection_name: name }
  return { keepAlive: true, timeout: connectTimeoutMs, ...socket, noDelay: true, clientProperties }
}

/** Closes the socket at once. With an error, because amqplib does not notice one that was closed without. */
function discard(model: ChannelModel, reason: Error = new Error('Not needed any more')): void {
  model.on('error', noop)
  const { stream } = model.connection as { stream?: { destroy(error: Error): void } }
  stream?.destroy(reason)
}

/** What comes of `work`, or the reason of the first signal that aborts. What comes later is thrown away. */
async function withSignals<T>(
  work: Promise<T>,
  signals: readonly AbortSignal[],
  throwAway: (value: T) => void,
): Promise<T> {
  try {
    return await orAbort(work, ...signals)
  } catch (error) {
    work.then(throwAway, noop)
    throw error
  }
}

function noop(): void {}
