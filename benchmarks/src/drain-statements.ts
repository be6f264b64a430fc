import { everySlot, following, type LaneRows, openHotStatements, sweepLanes } from './hot-statements.ts'

/**
 * The relay's own statements and nothing else, back to back on one connection: sweep the slots, settle what they
 * brought, then go on with the lanes that had more. No publisher, no overlap.
 */
export async function drainByHotStatements(url: string): Promise<{ events: number; seconds: number }> {
  await using hot = await openHotStatements(url)
  const lows = new Map<string, string>()
  let previous = await hot.snapshot()
  let events = 0
  const began = performance.now()

  async function take(lanes: readonly LaneRows[]): Promise<void> {
    for (const { lane, rows } of lanes) {
      const last = rows.at(-1)
      if (last === undefined) lows.delete(lane)
      else lows.set(lane, following(last.id))
    }
    if (lanes.some(({ rows }) => rows.length > 0)) events += await hot.settle(lanes)
  }

  for (const slot of everySlot) {
    let from: string | undefined
    for (let full = true; full; ) {
      const lanes = await hot.sweep({ slot, from })
      await take(lanes)
      full = lanes.length >= sweepLanes
      from = full ? following(largest(lanes.map(({ lane }) => lane))) : undefined
    }
  }
  // Settled, so these lanes are gone on with, as the relay does: a thousand at a time, until an answer frees them.
  while (lows.size > 0) {
    const lanes = [...lows.keys()].slice(0, 1000)
    const found = await hot.find({ previous, lanes, lows: lanes.map((lane) => lows.get(lane) ?? '0') })
    previous = found.snapshot
    await take(found.lanes)
  }
  return { events, seconds: (performance.now() - began) / 1000 }
}

function largest(lanes: readonly string[]): string {
  return lanes.reduce((a, b) => (BigInt(a) > BigInt(b) ? a : b))
}
