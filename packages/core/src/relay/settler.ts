import type { RelaySignal } from '../contract/signals.ts'
import { sqlFault } from '../contract/sql-state.ts'
import type { Names } from '../storage/names.ts'
import { readSettled, type SettleEntry, type Settled, settleStatement } from '../storage/settle.ts'
import { pause, retryPauseMs } from './pace.ts'
import type { Session } from './session.ts'

/** The outcomes of one run, on their way into the database. */
export interface Settlement {
  readonly slot: number
  readonly epoch: string
  readonly entries: readonly SettleEntry[]
  /** Called once, when every entry is written or void. `owned` is false when the slot belonged to someone else by then. */
  readonly done: (result: { readonly owned: boolean; readonly counted: ReadonlySet<string> }) => void
}

export interface Settler {
  readonly waiting: number
  push(settlement: Settlement): void
  /** Resolves when nothing waits any more, or when the signal aborts. */
  idle(signal: AbortSignal): Promise<void>
}

export interface SettlerOptions {
  readonly session: Session
  readonly names: Names
  readonly group: string
  readonly owner: () => string
  readonly emit: (signal: RelaySignal) => void
  readonly stopped: AbortSignal
}

/** Events in one statement. Larger batches gain nothing more and hold their row locks longer. */
const maxBatch = 2000

/** How long a row that somebody else has locked is left alone before it is tried again. */
const lockedPauseMs = 20

interface Item extends Settlement {
  counted: Set<string>
}

/**
 * Collects outcomes and writes them in batches, one statement at a time; what comes meanwhile makes the next batch. A
 * batch whose answer was lost is sent again unchanged: the statement counts nothing twice.
 */
export function createSettler({ session, names, group, owner, emit, stopped }: SettlerOptions): Settler {
  const statement = settleStatement(names)
  let queue: Item[] = []
  let active = false
  let parked = 0
  const idleWaiters = new Set<() => void>()

  async function work(): Promise<void> {
    if (active) return
    active = true
    while (queue.length > 0 && !stopped.aborted) await write(takeBatch(), 0)
    active = false
    notifyIdle()
  }

  function takeBatch(): Item[] {
    let events = 0
    let count = 0
    for (const item of queue) {
      if (count > 0 && events + item.entries.length > maxBatch) break
      events += item.entries.length
      count += 1
    }
    const batch = queue.slice(0, count)
    queue = queue.slice(count)
    return batch
  }

  async function write(batch: readonly Item[], failures: number): Promise<void> {
    const started = performance.now()
    try {
      const { rows } = await session.run(statement({ group, owner: owner(), slots: slotsOf(batch), entries: batch.flatMap(({ entries }) => entries) }))
      if (failures > 0) emit({ kind: 'database', use: 'settle', ok: true, cause: undefined })
      apply(batch, readSettled(rows), performance.now() - started)
    } catch (error) {
      if (stopped.aborted) return
      if (sqlFault(error) !== 'statement') {
        if (failures === 0) emit({ kind: 'database', use: 'settle', ok: false, cause: error })
        await pause(retryPauseMs(failures), stopped)
        if (!stopped.aborted) await write(batch, failures + 1)
      } else await isolate(batch, error, failures)
    }
  }

  /** The statement is refused for the sake of some row: halve the batch until that row stands alone. */
  async function isolate(batch: readonly Item[], error: unknown, failures: number): Promise<void> {
    const [item] = batch
    if (item === undefined) return
    if (batch.length > 1) {
      const middle = Math.ceil(batch.length / 2)
      await write(batch.slice(0, middle), 0)
      await write(batch.slice(middle), 0)
      return
    }
    if (item.entries.length > 1) {
      // One lane: its entries are written one by one, in order, and the lane is done when the last is.
      for (const entry of item.entries) await write([{ ...item, entries: [entry], done: entry === item.entries.at(-1) ? item.done : () => undefined }], 0)
      return
    }
    emit({ kind: 'database', use: 'settle', ok: false, cause: error })
    park({ ...item, entries: item.entries.map(withoutErrorText) }, retryPauseMs(failures + 5))
  }

  function apply(batch: readonly Item[], settled: Settled, durationMs: number): void {
    let failed = 0
    for (const item of batch) {
      const owned = settled.owned.has(item.slot)
      const locked = item.entries.filter(({ id }) => !settled.locked.has(id))
      for (const { id, failure } of item.entries) {
        if (!settled.counted.has(id)) continue
        item.counted.add(id)
        if (failure?.end !== undefined) failed += 1
      }
      if (locked.length > 0) park({ ...item, entries: locked }, lockedPauseMs)
      else item.done({ owned, counted: item.counted })
    }
    emit({ kind: 'settled', published: settled.published.size, counted: settled.counted.size, failed, durationMs })
  }

  /** Puts an item back after a while; it joins whatever batch is next by then, so one row delays nothing else. */
  function park(item: Item, ms: number): void {
    parked += 1
    void pause(ms, stopped).then(() => {
      parked -= 1
      queue.push(item)
      return work()
    })
  }

  function notifyIdle(): void {
    if (queue.length > 0 || active || parked > 0) return
    for (const resolve of idleWaiters) resolve()
    idleWaiters.clear()
  }

  return {
    get waiting() {
      return queue.length + parked + (active ? 1 : 0)
    },
    push(settlement) {
      queue.push({ ...settlement, counted: new Set() })
      // A turn of the event loop collects what else is ready now.
      if (!active) setImmediate(() => void work())
    },
    idle(signal) {
      return new Promise((resolve) => {
        idleWaiters.add(resolve)
        signal.addEventListener('abort', () => {
          resolve()
        })
        notifyIdle()
      })
    },
  }
}

function slotsOf(batch: readonly Item[]): { slot: number; epoch: string }[] {
  const slots = new Map(batch.map(({ slot, epoch }) => [`${String(slot)}:${epoch}`, { slot, epoch }]))
  return [...slots.values()]
}

function withoutErrorText(entry: SettleEntry): SettleEntry {
  return entry.failure === undefined ? entry : { ...entry, failure: { ...entry.failure, error: 'the error text could not be stored' } }
}
