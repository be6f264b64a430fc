import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { slotCount } from '../../src/contract/lane.ts'
import { decideSlots } from '../../src/relay/slots.ts'

describe('a decision about slots', () => {
  it('takes everything that is free when nobody else is there', () => {
    expect(decideSlots({ owned: 0, others: [], free: 256, stale: 0 })).toEqual({ claim: 256, giveUp: 0 })
    expect(decideSlots({ owned: 200, others: [], free: 56, stale: 0 })).toEqual({ claim: 56, giveUp: 0 })
  })

  it('takes no more than its share of what has just become free, and everything that nobody took', () => {
    expect(decideSlots({ owned: 0, others: [0], free: 256, stale: 0 })).toEqual({ claim: 128, giveUp: 0 })
    expect(decideSlots({ owned: 128, others: [0], free: 128, stale: 0 })).toEqual({ claim: 0, giveUp: 0 })
    expect(decideSlots({ owned: 128, others: [0], free: 128, stale: 128 })).toEqual({ claim: 128, giveUp: 0 })
  })

  it('gives up its excess only to a relay that is below its share', () => {
    expect(decideSlots({ owned: 256, others: [0], free: 0, stale: 0 })).toEqual({ claim: 0, giveUp: 128 })
    expect(decideSlots({ owned: 200, others: [], free: 0, stale: 0 })).toEqual({ claim: 0, giveUp: 0 })
    expect(decideSlots({ owned: 129, others: [127], free: 0, stale: 0 })).toEqual({ claim: 0, giveUp: 1 })
    expect(decideSlots({ owned: 86, others: [85, 85], free: 0, stale: 0 })).toEqual({ claim: 0, giveUp: 0 })
  })

  it('never takes more than is free nor gives up more than is owned, and never both', () => {
    const count = fc.integer({ min: 0, max: 256 })
    fc.assert(
      fc.property(count, fc.array(count, { maxLength: 300 }), count, count, (owned, others, free, part) => {
        const { claim, giveUp } = decideSlots({ owned, others, free, stale: Math.min(free, part) })
        expect(claim).toBeGreaterThanOrEqual(0)
        expect(claim).toBeLessThanOrEqual(free)
        expect(giveUp).toBeGreaterThanOrEqual(0)
        expect(giveUp).toBeLessThanOrEqual(owned)
        expect(Math.min(claim, giveUp)).toBe(0)
      }),
    )
  })
})

/** Relays that come and go, each deciding in its own heartbeat on what it sees then. */
class Group {
  readonly #slots = Array.from({ length: slotCount }, () => ({ owner: 0, freeSince: 0 }))
  readonly #relays = new Map<number, { renewed: boolean; draining: number[] }>()
  #round = 0
  #names = 0

  start(): void {
    this.#relays.set(++this.#names, { renewed: false, draining: [] })
    this.#beat(this.#names)
  }

  /** Its slots are free at once after a stop, and after a crash as soon as its lease is over: here the same. */
  end(position: number): void {
    const names = [...this.#relays.keys()]
    const name = names[position % names.length]
    if (name === undefined || names.length === 1) return
    this.#relays.delete(name)
    for (const slot of this.#slots) if (slot.owner === name) Object.assign(slot, { owner: 0, freeSince: this.#round })
  }

  /** One heartbeat of everyone, in an order of chance. `busy` keeps slots that are being given up for one more round. */
  round(order: number, busy: boolean): void {
    this.#round += 1
    const names = [...this.#relays.keys()]
    for (let left = names.length; left > 0; left--) this.#beat(names.splice((order * 7 + left) % left, 1)[0] ?? 0, busy)
  }

  shares(): number[] {
    return [...this.#relays.keys()].map((name) => this.#owned(name))
  }

  free(): number {
    return this.#owned(0)
  }

  /** For how many heartbeats the slot has been free that nobody has taken for longest. */
  longestFree(): number {
    return Math.max(
      0,
      ...this.#slots.filter(({ owner }) => owner === 0).map(({ freeSince }) => this.#round - freeSince),
    )
  }

  #owned(name: number): number {
    return this.#slots.filter(({ owner }) => owner === name).length
  }

  #beat(name: number, busy = false): void {
    const relay = this.#relays.get(name)
    if (relay === undefined) return
    if (!busy) this.#release(relay.draining)
    const others = [...this.#relays]
      .filter(([other, { renewed }]) => other !== name && renewed)
      .map(([other]) => this.#owned(other))
    const free = this.#slots.filter(({ owner }) => owner === 0)
    const stale = free.filter(({ freeSince }) => freeSince < this.#round - 1).length
    const { claim, giveUp } = decideSlots({
      owned: this.#owned(name) - relay.draining.length,
      others,
      free: free.length,
      stale,
    })
    for (const slot of free.slice(0, claim)) slot.owner = name
    if (giveUp > 0 && relay.draining.length === 0) {
      const mine = [...this.#slots.keys()].filter((slot) => this.#slots[slot]?.owner === name)
      relay.draining.push(...mine.slice(mine.length - giveUp))
      if (!busy) this.#release(relay.draining)
    }
    relay.renewed = true
  }

  #release(draining: number[]): void {
    for (const slot of draining.splice(0)) Object.assign(this.#slots[slot] ?? {}, { owner: 0, freeSince: this.#round })
  }
}

describe('any number of relays', () => {
  /** One heartbeat of everyone: in which order, and whether lanes in flight keep what is being given up a little longer. */
  const heartbeats = fc.infiniteStream(fc.tuple(fc.nat(1000), fc.boolean()))
  const changes = (most: number): fc.Arbitrary<{ starts: number; ends: number[]; rounds: number }[]> =>
    fc.array(
      fc.record({
        starts: fc.integer({ min: 0, max: most }),
        ends: fc.array(fc.nat(20), { maxLength: most }),
        rounds: fc.nat(3),
      }),
      { minLength: 1, maxLength: 6 },
    )

  /** How many heartbeats pass until the shares differ by one slot at most and no slot is free. */
  function heartbeatsUntilEven(
    happened: { starts: number; ends: number[]; rounds: number }[],
    chance: Iterator<[number, boolean]>,
  ): { heartbeats: number; group: Group } {
    const group = new Group()
    const beat = (): void => group.round(...(chance.next().value as [number, boolean]))
    group.start()
    for (const { starts, ends, rounds } of happened) {
      for (let left = starts; left > 0; left--) group.start()
      for (const position of ends) group.end(position)
      for (let left = rounds; left > 0; left--) beat()
    }
    for (let passed = 0; ; passed++) {
      const shares = group.shares()
      if (group.free() === 0 && Math.max(...shares) - Math.min(...shares) <= 1) return { heartbeats: passed, group }
      if (passed === 1000) throw new Error(`the shares stay at ${shares.join(' ')}`)
      beat()
    }
  }

  it('come to shares that differ by one slot at most, leave no slot without an owner, and then move nothing', () => {
    fc.assert(
      fc.property(changes(6), heartbeats, (happened, chance) => {
        const { group } = heartbeatsUntilEven(happened, chance)
        const shares = group.shares()
        for (let left = 5; left > 0; left--) {
          group.round(left, false)
          expect(group.shares()).toEqual(shares)
          expect(group.free()).toBe(0)
        }
      }),
    )
  })

  it('come to them within a few heartbeats when each beats in its turn and nothing is in flight', () => {
    fc.assert(
      fc.property(changes(4), fc.nat(1000), (happened, order) => {
        expect(heartbeatsUntilEven(happened, always([order, false])).heartbeats).toBeLessThanOrEqual(12)
      }),
    )
  })

  it('leave no slot free for two heartbeats', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.array(fc.nat(20), { maxLength: 10 }),
        fc.nat(1000),
        (relays, ends, order) => {
          const group = new Group()
          for (let left = relays; left > 0; left--) group.start()
          for (let left = 12; left > 0; left--) group.round(order + left, false)
          for (const position of ends) group.end(position)
          for (let left = 12; left > 0; left--) {
            group.round(order + left, false)
            expect(group.longestFree()).toBeLessThanOrEqual(1)
          }
        },
      ),
    )
  })
})

function* always<T>(value: T): Generator<T> {
  for (;;) yield value
}
