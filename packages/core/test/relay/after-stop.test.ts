import { freshDatabase, startPostgres } from '@inorder/harness'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { fromPg, type PgClient, type PgPool } from '../../src/clients/from-pg.ts'
import type { Publisher, RunResult } from '../../src/contract/publisher.ts'
import type { RelaySignal } from '../../src/contract/signals.ts'
import type { RelayOptions } from '../../src/options.ts'
import { createOutbox, type Outbox } from '../../src/outbox.ts'
import { gate } from '../support/gate.ts'
import { relayStand } from '../support/relay-stand.ts'
import { testPublisher } from '../support/test-publisher.ts'
import { createWatch } from '../support/watch.ts'

type PgOutbox = Outbox<PgClient, PgPool | PgClient>

/** Runs `work` with an outbox and a pool that are gone afterwards: an idle client of a pool has a timer too. */
async function withOutbox(url: string, work: (outbox: PgOutbox, pool: pg.Pool) => Promise<void>): Promise<void> {
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  const outbox = createOutbox({ client: fromPg(pool) })
  await work(outbox, pool)
  await outbox.close()
  await pool.end()
}

/** Timers that would keep this process alive. */
function timers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
}

describe('no timer is left after the stop of a relay', () => {
  const idle = {}
  const refused = { kind: 'unavailable', cause: new Error('refused') } as const
  let calls = 0
  const hang = (): Promise<RunResult> => {
    calls += 1
    return new Promise(() => undefined)
  }
  const situations: [string, Partial<Publisher>, (signal: RelaySignal) => boolean][] = [
    ['that had nothing to do', idle, ({ kind }) => kind === 'idle'],
    ['that published', { publish: (run) => Promise.resolve({ acknowledged: run.length }) }, isPublished],
    [
      'whose events wait for their retry',
      {
        publish: () =>
          Promise.resolve({ acknowledged: 0, failure: { kind: 'rejected', cause: 'no', retryAfterMs: 60_000 } }),
      },
      ({ kind }) => kind === 'settled',
    ],
    ['whose broker is down', { publish: () => Promise.resolve({ acknowledged: 0, failure: refused }) }, isBreaker],
    ['whose broker refuses every connection', { connect: () => Promise.reject(new Error('refused')) }, isBreaker],
    ['whose broker does not answer', { publish: hang }, () => calls > 0],
  ]

  it.each(situations)('%s', async (_, publisher, reached) => {
    const url = await freshDatabase()
    await withOutbox(url, async (outbox, pool) => {
      await outbox.migrate()
      if (publisher !== idle)
        await outbox.transaction(pool, (tx) => outbox.enqueue(tx, { topic: 't', key: 'k', payload: 1 }))
    })
    const before = timers()
    await withOutbox(url, async (outbox) => {
      const { changed, until } = createWatch()
      const signals: RelaySignal[] = []
      const relay = outbox.relay({
        publisher: testPublisher(() => ({ acknowledged: 0 }), publisher),
        onSignal(signal) {
          signals.push(signal)
          changed()
        },
      })
      await relay.start()
      await until(() => signals.find(reached))
      await relay.stop(publisher.publish === hang ? { graceMs: 0 } : {})
    })
    // The test runner has timers of its own, for as long as a message of its is on the way.
    for (let turn = 0; timers() > before && turn < 1000; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(timers()).toBeLessThanOrEqual(before)
  })

  function isPublished(signal: RelaySignal): boolean {
    return signal.kind === 'settled' && signal.published > 0
  }

  function isBreaker({ kind }: RelaySignal): boolean {
    return kind === 'breaker'
  }
})

describe('a connection to the broker that comes about', () => {
  it('after the stop is closed, and nothing is published over it', async () => {
    const asked = gate()
    const connected = gate()
    const closedAgain = gate()
    const calls: string[] = []
    await using stand = await relayStand(
      () => {
        calls.push('publish')
        return undefined
      },
      {
        connect() {
          asked.open()
          return connected.opened.then(() => void calls.push('connected'))
        },
        close() {
          calls.push('close')
          if (calls.length === 3) closedAgain.open()
          return Promise.resolve()
        },
      },
    )
    await stand.enqueue({ payload: 'x' })
    const relay = stand.relay()
    await relay.start()
    await asked.opened
    await relay.stop()
    connected.open()
    await closedAgain.opened
    expect(calls).toEqual(['close', 'connected', 'close'])
    expect(await stand.states()).toEqual({ pending: 1 })
  })
})

describe('a relay that is stopped while its database is away', () => {
  it('stops, and after a new start its health knows nothing of that outage', async () => {
    await using server = await startPostgres()
    const pool = new pg.Pool({ connectionString: await server.createDatabase(), max: 20 })
    pool.on('error', () => undefined)
    const outbox = createOutbox({ client: fromPg(pool) })
    await outbox.migrate()
    const { changed, until } = createWatch()
    const release = gate()
    const entered = gate()
    const signals: RelaySignal[] = []
    const delivered: string[] = []
    const options: RelayOptions = {
      leaseMs: 900,
      publisher: testPublisher(async (run) => {
        entered.open()
        await release.opened
        for (const { payload } of run) delivered.push(Buffer.from(payload ?? []).toString())
        return { acknowledged: run.length }
      }),
      onSignal(signal) {
        signals.push(signal)
        changed()
      },
    }
    const enqueue = (payload: string): Promise<unknown> =>
      outbox.transaction(pool, (tx) => outbox.enqueue(tx, { topic: 't', key: 'k', payload: Buffer.from(payload) }))
    await enqueue('1')
    const relay = outbox.relay(options)
    await relay.start()
    await entered.opened
    await server.kill()
    release.open()
    for (const use of ['find', 'settle', 'ownership'])
      await until(() => signals.find((signal) => signal.kind === 'database' && signal.use === use && !signal.ok))
    expect(relay.health().database.ok).toBe(false)
    await relay.stop({ graceMs: 0 })
    expect(relay.health()).toMatchObject({ state: 'stopped', leaseHolds: false, lanesInFlight: 0 })
    await server.restart()
    await relay.start()
    expect(relay.health().database).toEqual({ ok: true, cause: undefined })
    await enqueue('2')
    await relay.drain()
    expect(relay.health()).toMatchObject({ state: 'running', database: { ok: true }, live: true })
    // What was acknowledged and could not be written is published again: at least once.
    expect(delivered).toEqual(['1', '1', '2'])
    await outbox.close()
    await pool.end()
  })
})
