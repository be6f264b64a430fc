import { describe, expect, it } from 'vitest'
import type { OutboxEvent } from '../../src/contract/event.ts'
import type { Publisher } from '../../src/contract/publisher.ts'
import type { Relay } from '../../src/relay/relay.ts'
import { mortalOutbox } from '../support/mortal-outbox.ts'
import { type RelayStand, relayStand } from '../support/relay-stand.ts'
import { testPublisher } from '../support/test-publisher.ts'
import { createWatch } from '../support/watch.ts'

const leaseMs = 600

interface Crowd {
  readonly deaths: readonly number[]
  /** Starts relays one after another until so many payloads were delivered and one event was given up. */
  readonly untilSurvived: (payloads: number) => Promise<void>
}

/** Relays that die of certain events: their connections break in the middle of the publish and nothing is answered. */
function crowd(stand: RelayStand, deadly: (event: OutboxEvent) => boolean, delivered: string[]): Crowd {
  const deaths: number[] = []
  const { changed, until } = createWatch()
  let givenUp = false
  async function live(payloads: number): Promise<boolean> {
    const { outbox, die } = mortalOutbox(stand.pool)
    let dead = false
    const publisher: Publisher = testPublisher((run) => {
      if (dead) return new Promise(() => undefined)
      for (const event of run) {
        if (deadly(event)) {
          dead = true
          deaths.push(delivered.length)
          void die().then(changed)
          return new Promise(() => undefined)
        }
        delivered.push(Buffer.from(event.payload ?? []).toString())
      }
      return { acknowledged: run.length }
    })
    const relay: Relay = outbox.relay({
      publisher,
      leaseMs,
      publishTimeoutMs: 60_000,
      onSignal({ kind }) {
        givenUp ||= kind === 'failed'
        changed()
      },
    })
    await relay.start()
    await until(() => (dead || (givenUp && new Set(delivered).size === payloads) ? true : undefined))
    // The lease of a process that died runs out by itself; this only ends what is left of it here.
    await relay.stop({ graceMs: 0 })
    await outbox.close()
    return !dead
  }
  return {
    deaths,
    async untilSurvived(payloads) {
      while (!(await live(payloads)));
    },
  }
}

async function failedEvents(stand: RelayStand): Promise<{ payload: string; error: string; requeues: number }[]> {
  const { rows } = await stand.pool.query<{ payload: string; error: string; requeues: number }>(
    `select convert_from(payload, 'UTF8') payload, last_error error, requeues from outbox.events where status in ('failed', 'held')`,
  )
  return rows
}

async function crashes(stand: RelayStand): Promise<number[]> {
  const { rows } = await stand.pool.query<{ crashes: number }>('select distinct crashes from outbox.slots')
  return rows.map((row) => row.crashes)
}

/** How many events each call of the publisher was given. */
function runs({ signals }: RelayStand): number[] {
  return signals.flatMap((signal) => (signal.kind === 'published' ? [signal.events.length] : []))
}

/** Keys whose lanes lie in the same slot. */
async function keysOfOneSlot({ pool }: RelayStand, count: number): Promise<string[]> {
  const { rows } = await pool.query<{ key: string }>(
    `select number::text key from generate_series(1, 10000) number
     where (hashtextextended('orders' || chr(31) || number::text, 0) >> 56) = 7 order by hashtextextended('orders' || chr(31) || number::text, 0) desc limit $1`,
    [count],
  )
  return rows.map(({ key }) => key)
}

describe('an event that kills the process which publishes it', () => {
  it('ends as failed with the cause crashed, and everything else is delivered in order', async () => {
    await using stand = await relayStand()
    const wanted: string[] = []
    for (let round = 0; round < 5; round++)
      for (let key = 0; key < 40; key++) wanted.push(`${String(key)}.${String(round)}`)
    await stand.enqueue(...wanted.map((payload) => ({ key: payload.split('.')[0] ?? '', payload })))
    const delivered: string[] = []
    const { deaths, untilSurvived } = crowd(
      stand,
      ({ payload }) => Buffer.from(payload ?? []).toString() === '7.2',
      delivered,
    )
    await untilSurvived(wanted.length - 1)
    // Two until the slot is isolated, three with the event as the suspect; a very slow machine may add a few.
    expect(deaths.length).toBeGreaterThanOrEqual(5)
    const failed = await failedEvents(stand)
    expect(failed.map(({ payload }) => payload)).toEqual(['7.2'])
    expect(failed[0]?.error).toMatch(/EVENT_CRASHED.* 3 crashes/)
    const first = new Map<string, string[]>()
    for (const payload of new Set(delivered)) {
      const [key = '', round = ''] = payload.split('.')
      first.set(key, [...(first.get(key) ?? []), round])
    }
    for (const [key, rounds] of first)
      expect([key, rounds]).toEqual([key, key === '7' ? ['0', '1', '3', '4'] : ['0', '1', '2', '3', '4']])
  })

  it('is told from the innocent ones that are being published at the same moment', async () => {
    await using stand = await relayStand()
    await stand.enqueue(
      ...Array.from({ length: 120 }, (_, n) => ({ key: String(n), payload: n === 60 ? 'deadly' : String(n) })),
    )
    const delivered: string[] = []
    const { untilSurvived } = crowd(stand, ({ key }) => key === '60', delivered)
    await untilSurvived(119)
    expect((await failedEvents(stand)).map(({ payload }) => payload)).toEqual(['deadly'])
  })

  it('is told apart while other events of its slot keep coming', async () => {
    await using stand = await relayStand()
    // One key, so one slot, of which the deadly event is always the second lane to get its turn.
    const inOneSlot = await keysOfOneSlot(stand, 6)
    const delivered: string[] = []
    const busy = inOneSlot.slice(1)
    await stand.enqueue(
      ...busy.flatMap((key) => Array.from({ length: 50 }, (_, n) => ({ key, payload: `${key}.${String(n)}` }))),
    )
    await stand.enqueue({ key: inOneSlot[0] ?? '', payload: 'deadly' })
    const { untilSurvived } = crowd(
      stand,
      ({ payload }) => Buffer.from(payload ?? []).toString() === 'deadly',
      delivered,
    )
    await untilSurvived(250)
    expect((await failedEvents(stand)).map(({ payload }) => payload)).toEqual(['deadly'])
  })
})

describe('the count of crashes of a slot', () => {
  it('does not rise when a relay stops, nor when one that lives lost its lease', async () => {
    await using stand = await relayStand()
    for (let round = 0; round < 2; round++) {
      const relay = stand.relay({ leaseMs })
      await relay.start()
      await stand.pool.query("update outbox.relays set expires_at = now() - interval '1 s'")
      await stand.signal((signal) => signal.kind === 'lease-lost')
      await stand.signal((signal) => signal.kind === 'slots' && signal.gained === 256)
      stand.signals.length = 0
      await relay.stop()
    }
    expect(await crashes(stand)).toEqual([0])
  })

  it('is forgotten after a lease without a crash, and the slot goes at full speed again', async () => {
    await using stand = await relayStand()
    await stand.relay({ leaseMs }).drain()
    await stand.pool.query(`update outbox.slots set crashes = 5, suspicions = '{}'`)
    await using relay = stand.relay({ leaseMs })
    await relay.start()
    await stand.enqueue(...Array.from({ length: 20 }, (_, n) => ({ payload: String(n) })))
    await stand.deliveries(20)
    expect(runs(stand).every((length) => length === 1)).toBe(true)
    await stand.signal((signal) => signal.kind === 'isolation' && signal.slots === 0)
    expect(await crashes(stand)).toEqual([0])
    stand.signals.length = 0
    await stand.enqueue(...Array.from({ length: 20 }, (_, n) => ({ payload: String(n) })))
    await stand.signal((signal) => signal.kind === 'published' && signal.events.length > 1)
  })
})
