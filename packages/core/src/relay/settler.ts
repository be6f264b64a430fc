import type { RelaySignal } from '../contract/signals.ts'
import { sqlFault, sqlState } from '../contract/sql-state.ts'
import { acknowledgeStatement } from '../storage/acknowledge.ts'
import type { Names } from '../storage/names.ts'
import { type Acknowledged, readSettled, type SettleEntry, type Settled, settleStatement } from '../storage/settle.ts'
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
  /** What becomes of an acknowledged event. */
  readonly acknowledged: Acknowledged
}

/** Events in one statement. Larger batches gain nothing more and hold their row locks longer. */
const maxBatch = 2000

/** How long a row that somebody else has locked is left alone before it is tried again. */
const lockedPauseMs = 20

/** How long after a locked row batches are settled in the slower way that passes locked rows over. */
const cautiousMs = 2000

/** How long an outcome that the database refuses to store is left alone: somebody has to look at the table. */
const refusedPauseMs = 2000

interface Item extends Settlement {
  counted: Set<string>
}

/**
 * Collects outcomes and writes them in batches, one statement at a time; what comes meanwhile makes the next batch. A
 * batch whose answer was lost is sent again unchanged: the statement counts nothing twice.
 */
export function createSettler({ session, names, group, owner, emit, stopped, acknowledged }: SettlerOptions): Settler {
  const settleSql = settleStatement(names, acknowledged)
  const acknowledgeSql = acknowledgeStatement(names, acknowledged)
  let queue: Item[] = []
  let active = false
  let parked = 0
  let inTrouble = false
  /** Somebody had a row locked: until then batches pass locked rows over. */
  let lockedUntil = 0
  const idleWaiters = new Set<() => void>()

  function troubled(cause: unknown): void {
    emit({ kind: 'database', use: 'settle', ok: false, cause })
    inTrouble = true
  }

  function recovered(): void {
    if (inTrouble) emit({ kind: 'database', use: 'settle', ok: true, cause: undefined })
    inTrouble = false
  }

  async function work(): Promise<void> {
    if (active) return
    active = true
    while (queue.length > 0 && !stopped.aborted) await write(takeBatch())
    active = false
    notifyIdle()
  }

  /** As many as fit, all with a failure or all without: those without take a cheaper statement. */
  function takeBatch(): Item[] {
    const batch: Item[] = []
    const rest: Item[] = []
    const plain = queue[0] !== undefined && isPlain(queue[0])
    let events = 0
    for (const item of queue) {
      const fits = batch.length === 0 || events + item.entries.length <= maxBatch
      if (!fits || isPlain(item) !== plain) rest.push(item)
      else {
        batch.push(item)
        events += item.entries.length
      }
    }
    queue = rest
    return batch
  }

  async function write(batch: readonly Item[]): Promise<void> {
    const plain = batch.every(isPlain)
    for (let failures = 0; ; failures++) {
      const started = performance.now()
      const direct = plain && started > lockedUntil
      try {
        const entries = batch.flatMap((item) => item.entries)
        const toStatement = direct ? acknowledgeSql : settleSql
        const { rows } = await session.run(toStatement({ group, owner: owner(), slots: slotsOf(batch), entries }))
        recovered()
        apply(batch, readSettled(rows), performance.now() - started)
        return
      } catch (error) {
        if (direct && sqlFault(error) === 'locked') {
          lockedUntil = performance.now() + cautiousMs
          continue
        }
        if (sqlFault(error) === 'statement') return isolate(batch, error)
        if (!stopped.aborted) troubled(error)
        if (!(await pause(retryPauseMs(failures), stopped))) return
      }
    }
  }

  /** The statement is refused for the sake of some row: halve the batch until that row stands alone. */
  async function isolate(batch: readonly Item[], error: unknown): Promise<void> {
    const [item] = batch
    if (item === undefined) return
    if (batch.length > 1) {
      const middle = Math.ceil(batch.length / 2)
      await write(batch.slice(0, middle))
      await write(batch.slice(middle))
      return
    }
    if (item.entries.length > 1) {
      for (const part of split(item)) await write([part])
      return
    }
    troubled(error)
    // A text that cannot be stored (classes 22 and 54) is left out; anything else is tried again as it is.
    const unstorable = /^(22|54)/.test(sqlState(error) ?? '')
    park(unstorable ? { ...item, entries: item.entries.map(withoutErrorText) } : item, refusedPauseMs)
  }

  function apply(batch: readonly Item[], settled: Settled, durationMs: number): void {
    let failed = 0
    for (const item of batch) {
      const owned = settled.owned.has(item.slot)
      const locked = item.entries.filter(({ id }) => !settled.closed.has(id))
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
    void pause(ms, stopped).then((waited) => {
      parked -= 1
      if (waited) queue.push(item)
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
        if (signal.aborted) {
          resolve()
          return
        }
        idleWaiters.add(resolve)
        signal.addEventListener('abort', () => {
          resolve()
        })
        notifyIdle()
      })
    },
  }
}

/** One item per entry; the whole is done when the last of them is, whichever that turns out to be. */
function split(item: Item): Item[] {
  let left = item.entries.length
  let whole = true
  return item.entries.map((entry) => ({
    ...item,
    entries: [entry],
    done({ owned, counted }) {
      left -= 1
      whole &&= owned
      if (left === 0) item.done({ owned: whole, counted })
    },
  }))
}

function isPlain({ entries }: Item): boolean {
  return entries.every(({ failure }) => failure === undefined)
}

function slotsOf(batch: readonly Item[]): { slot: number; epoch: string }[] {
  const slots = new Map(batch.map(({ slot, epoch }) => [`${String(slot)}:${epoch}`, { slot, epoch }]))
  return [...slots.values()]
}

function withoutErrorText(entry: SettleEntry): SettleEntry {
  return entry.failure === undefined
    ? entry
    : { ...entry, failure: { ...entry.failure, error: 'the error text could not be stored' } }
}
