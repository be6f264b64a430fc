import type { Names } from '../storage/names.ts'
import { readSuspected, type SuspectEntry, suspectStatement } from '../storage/slots.ts'
import type { Session } from './session.ts'

/** Writes down which event each isolated slot is publishing. */
export interface Suspects {
  /** Resolves with whether the slot is still owned, and then the entry is committed. */
  write(entry: SuspectEntry): Promise<boolean>
}

export interface SuspectsOptions {
  readonly session: Session
  readonly names: Names
  readonly group: string
  readonly owner: () => string
}

interface Waiting {
  readonly resolve: (owned: boolean) => void
  readonly reject: (cause: unknown) => void
}

/** What comes in one turn of the event loop goes into one statement, because many slots may be isolated at once. */
export function createSuspects({ session, names, group, owner }: SuspectsOptions): Suspects {
  const statement = suspectStatement(names)
  let entries = new Map<number, SuspectEntry>()
  let callers: [slot: number, waiting: Waiting][] = []

  async function flush(): Promise<void> {
    const [batch, waiting] = [entries, callers]
    entries = new Map()
    callers = []
    try {
      const owned = readSuspected((await session.run(statement(group, owner(), [...batch.values()]))).rows)
      for (const [slot, { resolve }] of waiting) resolve(owned.has(slot))
    } catch (error) {
      for (const [, { reject }] of waiting) reject(error)
    }
  }

  return {
    write(entry) {
      if (callers.length === 0) setImmediate(() => void flush())
      // The event that came through and the next one of the same slot are one entry: a row is updated once.
      const { cleared } = entries.get(entry.slot) ?? {}
      entries.set(entry.slot, cleared === undefined ? entry : { cleared, ...entry })
      return new Promise((resolve, reject) => {
        callers.push([entry.slot, { resolve, reject }])
      })
    },
  }
}
