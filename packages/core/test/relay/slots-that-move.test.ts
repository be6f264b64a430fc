import { describe, expect, it } from 'vitest'
import { aroundStatements, purposeOf } from '../support/around-statements.ts'
import { gate } from '../support/gate.ts'
import { type RelayStand, relayStand } from '../support/relay-stand.ts'

/** Nothing is swept by itself: what nobody marks is not found. */
const lease = { leaseMs: 900, sweepIntervalMs: 3_600_000 }

/** Another relay of the group that is alive, as far as the database knows. */
async function enterNeighbour({ pool }: RelayStand): Promise<void> {
  await pool.query(
    "insert into outbox.relays (id, relay_group, host, pid, version, expires_at, renewals) values ('neighbour', 'default', 'h', 1, '0', now() + interval '1 h', 1)",
  )
}

/** Resolves when the relay has said so from now on. */
function next(stand: RelayStand, holds: (signal: RelayStand['signals'][number]) => boolean): Promise<unknown> {
  const from = stand.signals.length
  return stand.signal((signal) => stand.signals.indexOf(signal) >= from && holds(signal))
}

/** The slots go away and come back, as when a neighbour takes them over and stops again: all that is left is the epoch. */
async function leaveAndComeBack(stand: RelayStand): Promise<void> {
  const back = next(stand, (signal) => signal.kind === 'slots' && signal.gained === 256)
  await stand.pool.query('update outbox.slots set epoch = epoch + 1')
  await back
  // The find that carries them, and the sweep after it.
  for (let finds = 0; finds < 4; finds++) await next(stand, ({ kind }) => kind === 'found')
}

describe('what waits in a slot', () => {
  it('goes out by the relay that takes its slot over, although it arrived before', async () => {
    await using stand = await relayStand()
    await enterNeighbour(stand)
    await stand.pool.query(
      "insert into outbox.slots (relay_group, slot, owner) select 'default', slot, 'neighbour' from generate_series(0, 255) slot",
    )
    await using relay = stand.relay(lease)
    await relay.start()
    await stand.enqueue({ payload: 'waits' })
    await next(stand, ({ kind }) => kind === 'idle')
    await next(stand, ({ kind }) => kind === 'idle')
    const taken = next(stand, (signal) => signal.kind === 'slots' && signal.owned === 256)
    await stand.pool.query("delete from outbox.relays where id = 'neighbour'")
    await taken
    await next(stand, ({ kind }) => kind === 'idle')
    await next(stand, ({ kind }) => kind === 'idle')
    expect(stand.delivered).toEqual(['waits'])
  })
})

describe('a run whose slot moves away', () => {
  it('ends with the call that is on its way', async () => {
    const [entered, leave] = [gate(), gate()]
    await using stand = await relayStand(async () => {
      entered.open()
      await leave.opened
      return undefined
    })
    await stand.enqueue(...['1', '2', '3', '4', '5', '6'].map((payload) => ({ payload })))
    const relay = stand.relay({ ...lease, maxRun: 2 })
    await relay.start()
    await entered.opened
    await enterNeighbour(stand)
    const lost = next(stand, (signal) => signal.kind === 'slots' && signal.lost === 256)
    await stand.pool.query("update outbox.slots set owner = 'neighbour', epoch = epoch + 1")
    await lost
    leave.open()
    await stand.signal(({ kind }) => kind === 'settled')
    await relay.stop()
    expect(stand.delivered).toEqual(['1', '2'])
    expect(await stand.states()).toEqual({ published: 2, pending: 4 })
  })
})

describe('a key whose slot goes and comes back', () => {
  it('goes on behind what was being published meanwhile', async () => {
    const [entered, leave] = [gate(), gate()]
    await using stand = await relayStand(async ({ payload }) => {
      if (Buffer.from(payload ?? []).toString() !== '1') return undefined
      entered.open()
      await leave.opened
      return undefined
    })
    await stand.enqueue({ payload: '1' })
    await using relay = stand.relay(lease)
    await relay.start()
    await entered.opened
    await stand.enqueue({ payload: '2' })
    await leaveAndComeBack(stand)
    const idle = next(stand, ({ kind }) => kind === 'idle')
    leave.open()
    await idle
    expect(stand.delivered).toEqual(['1', '2'])
  })

  it('goes on with what waited for its next try meanwhile', async () => {
    await using stand = await relayStand((_, tries) =>
      tries === 1 ? { kind: 'unknown', cause: new Error('no answer'), retryAfterMs: 4000 } : undefined,
    )
    await stand.enqueue({ payload: '1' })
    await using relay = stand.relay(lease)
    await relay.start()
    await stand.signal((signal) => signal.kind === 'published' && signal.failure?.kind === 'unknown')
    await leaveAndComeBack(stand)
    expect(stand.delivered).toEqual([])
    await next(stand, ({ kind }) => kind === 'idle')
    expect(stand.delivered).toEqual(['1'])
  })
})

async function keyOfEverySlot({ pool }: RelayStand): Promise<string[]> {
  const { rows } = await pool.query<{ key: string }>(
    `select distinct on (slot) key from (
       select number::text key, hashtextextended('orders' || chr(31) || number::text, 0) >> 56 slot
       from generate_series(1, 10000) number) keys order by slot`,
  )
  return rows.map(({ key }) => key)
}

describe('a slot that is to be given up', () => {
  it('stays until what is in flight of it is settled, and goes then', async () => {
    const leave = gate()
    await using stand = await relayStand(async () => {
      await leave.opened
      return undefined
    })
    await stand.enqueue(...(await keyOfEverySlot(stand)).map((key) => ({ key, payload: key })))
    await using relay = stand.relay(lease)
    await relay.start()
    await expect.poll(() => relay.health().lanesInFlight, { timeout: 10_000 }).toBe(256)
    await enterNeighbour(stand)
    const beats = async (): Promise<number> => {
      const { rows } = await stand.pool.query<{ beats: number }>(
        "select renewals::int beats from outbox.relays where id <> 'neighbour'",
      )
      return rows[0]?.beats ?? 0
    }
    const before = await beats()
    await expect.poll(beats, { timeout: 10_000 }).toBeGreaterThan(before + 2)
    const { rows } = await stand.pool.query('select count(*)::int free from outbox.slots where owner is null')
    expect(rows).toEqual([{ free: 0 }])
    const given = next(stand, (signal) => signal.kind === 'slots' && signal.lost > 0)
    leave.open()
    await given
    expect(stand.delivered).toHaveLength(256)
  })
})

describe('a relay that cannot renew its lease', () => {
  it('publishes nothing once it is over, and goes on when it is registered again', async () => {
    let cut = false
    await using stand = await relayStand(undefined, {}, (client) =>
      aroundStatements(client, async (statement, run) => {
        if (cut && purposeOf(statement) === 'heartbeat') throw new Error('the network is down')
        return run()
      }),
    )
    await using relay = stand.relay(lease)
    await relay.start()
    await next(stand, ({ kind }) => kind === 'idle')
    cut = true
    await expect.poll(() => relay.health().leaseHolds, { timeout: 10_000 }).toBe(false)
    await stand.enqueue({ payload: 'x' })
    for (let finds = 0; finds < 3; finds++) await next(stand, ({ kind }) => kind === 'found')
    expect(stand.delivered).toEqual([])
    cut = false
    expect(await stand.deliveries(1)).toEqual(['x'])
  })
})
