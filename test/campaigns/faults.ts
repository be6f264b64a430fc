/** Something that was broken on purpose. Moments are microseconds since 1970. */
export interface Fault {
  readonly kind: string
  /** The process it was about. Absent: everybody. */
  readonly about?: string
  readonly from: bigint
  /** Undefined while it lasts. */
  readonly until: bigint | undefined
}

/** What a campaign did, and when. */
export interface FaultLog {
  readonly all: readonly Fault[]
  /** Notes the start of a fault; call what it returns at its end. */
  begin(kind: string, about?: string): () => void
  /** Notes a fault that is over at once. */
  strike(kind: string, about?: string): void
  /** The start of the earliest fault about this process or everybody that lasted beyond `since`. */
  earliest(about: string, since: bigint): bigint | undefined
  counts(): Record<string, number>
}

interface OpenFault extends Fault {
  until: bigint | undefined
}

export function createFaultLog(now: () => bigint = wallTime): FaultLog {
  const all: OpenFault[] = []

  function begin(kind: string, about?: string): () => void {
    const fault: OpenFault = { kind, from: now(), until: undefined, ...(about === undefined ? {} : { about }) }
    all.push(fault)
    return () => {
      fault.until ??= now()
    }
  }

  return {
    all,
    begin,
    strike(kind, about) {
      begin(kind, about)()
    },
    earliest(about, since) {
      const touching = all.filter((fault) => (fault.about ?? about) === about && (fault.until ?? since) >= since)
      return touching.map(({ from }) => from).reduce<bigint | undefined>(earlier, undefined)
    },
    counts() {
      const counts: Record<string, number> = {}
      for (const { kind } of all) counts[kind] = (counts[kind] ?? 0) + 1
      return counts
    },
  }
}

function earlier(a: bigint | undefined, b: bigint): bigint {
  return a === undefined || b < a ? b : a
}

/** Microseconds since 1970 by the clock of this machine, which is also that of the database and of the brokers. */
export function wallTime(): bigint {
  return BigInt(Math.round((performance.timeOrigin + performance.now()) * 1000))
}
