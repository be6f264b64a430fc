import { startPostgres } from '@inorder/harness'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { fromPg } from '../../src/clients/from-pg.ts'
import { createOutbox } from '../../src/outbox.ts'
import { relayStand } from '../support/relay-stand.ts'
import { testPublisher } from '../support/test-publisher.ts'
import { createWatch } from '../support/watch.ts'

describe('a relay', () => {
  it('resolves stop only when nothing is in flight, and publishes nothing afterwards', async () => {
    let release: () => void = () => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    let entered: () => void = () => undefined
    const inside = new Promise<void>((resolve) => (entered = resolve))
    await using stand = await relayStand(async () => {
      entered()
      await held
      return undefined
    })
    await stand.enqueue({ payload: 'in flight' })
    const relay = stand.relay()
    await relay.start()
    await inside
    await stand.enqueue({ key: 'other', payload: 'too late' })
    let stopped = false
    const stopping = relay.stop().then(() => (stopped = true))
    await stand.enqueue({ key: 'third', payload: 'too late' })
    expect(stopped).toBe(false)
    release()
    await stopping
    expect(stand.delivered[0]).toBe('in flight')
    const atStop = stand.delivered.length
    expect((await stand.states())['published']).toBe(atStop)
    expect(relay.health()).toMatchObject({ state: 'stopped', lanesInFlight: 0, eventsInFlight: 0 })
    const { rows } = await stand.pool.query(
      'select count(*)::int relays, (select count(*)::int from outbox.slots where owner is not null) owned from outbox.relays',
    )
    expect(rows).toEqual([{ relays: 0, owned: 0 }])
  })

  it('aborts what still runs after the grace of stop', async () => {
    await using stand = await relayStand()
    await stand.enqueue({ payload: 'x' })
    let entered: () => void = () => undefined
    const inside = new Promise<void>((resolve) => (entered = resolve))
    const publisher = testPublisher(
      (_, signal) =>
        new Promise((resolve) => {
          entered()
          signal.addEventListener('abort', () => {
            resolve({ acknowledged: 0, failure: { kind: 'unknown', cause: signal.reason as unknown } })
          })
        }),
    )
    const relay = stand.relay({ publisher })
    await relay.start()
    await inside
    await relay.stop({ graceMs: 20 })
    const { rows } = await stand.pool.query('select status, attempts from outbox.events')
    expect(rows).toEqual([{ status: 'pending', attempts: 0 }])
  })

  it('starts once, and again after it was stopped', async () => {
    await using stand = await relayStand()
    const relay = stand.relay()
    await relay.start()
    await expect(relay.start()).rejects.toMatchObject({ code: 'RELAY_STATE' })
    await relay.stop()
    await relay.start()
    await stand.enqueue({ payload: 'x' })
    expect(await stand.deliveries(1)).toEqual(['x'])
    await relay.stop()
    await relay.stop()
  })

  it('drains what is due and returns the counts, leaving what waits', async () => {
    await using stand = await relayStand((event) =>
      event.headers['poison'] === 'true' ? { kind: 'permanent', cause: 'no' } : undefined,
    )
    await stand.enqueue(
      { payload: '1' },
      { payload: 'p', headers: { poison: true } },
      { payload: '2' },
      { key: 'later', payload: '3', delayMs: 60_000 },
    )
    expect(await stand.relay().drain()).toEqual({ published: 2, counted: 1, failed: 1 })
    expect(stand.delivered).toEqual(['1', '2'])
  })

  it('publishes an event for later when its time comes', async () => {
    await using stand = await relayStand()
    await using relay = stand.relay()
    await relay.start()
    await stand.enqueue({ payload: 'later', delayMs: 300 })
    await stand.signal((signal) => signal.kind === 'settled' && signal.published === 1)
    const { rows } = await stand.pool.query<{ early: boolean }>(
      "select published_at < created_at + interval '300 ms' early from outbox.events",
    )
    expect(rows[0]?.early ?? true).toBe(false)
  })

  it('sends payloads too large to come along, and ends a run at a row that is gone', async () => {
    await using stand = await relayStand()
    const large = Buffer.alloc(300_000, 'L').toString()
    await stand.enqueue({ payload: 'a' }, { payload: large }, { payload: 'b' })
    await stand.relay().drain()
    expect(stand.delivered).toEqual(['a', large, 'b'])
  })

  it('is woken by outbox.transaction in its own process, and by a notification from another', async () => {
    await using stand = await relayStand()
    await using relay = stand.relay({ pollMinMs: 60_000, pollMaxMs: 60_000 })
    await relay.start()
    await stand.signal(({ kind }) => kind === 'idle')
    await stand.enqueue({ payload: 'same process' })
    await stand.deliveries(1)
    // A second outbox object knows nothing of this relay: only its notification can wake it.
    const other = createOutbox({ client: fromPg(stand.pool) })
    await other.transaction(stand.pool, (tx) =>
      other.enqueue(tx, { topic: 'orders', key: 'k', payload: Buffer.from('other process') }),
    )
    expect(await stand.deliveries(2)).toEqual(['same process', 'other process'])
    await other.close()
  })

  it('needs at most seven statements a second while idle', async () => {
    await using stand = await relayStand()
    let statements = 0
    const client = fromPg(stand.pool)
    const counting = createOutbox({
      client: {
        ...client,
        async connect() {
          const connection = await client.connect()
          return {
            ...connection,
            run(statement) {
              statements += 1
              return connection.run(statement)
            },
          }
        },
      },
    })
    const finds: number[] = []
    const { changed, until } = createWatch()
    const relay = counting.relay({
      publisher: testPublisher(() => ({ acknowledged: 1 })),
      onSignal(signal) {
        if (signal.kind === 'found') finds.push(performance.now())
        changed()
      },
    })
    await relay.start()
    // The rhythm is slow once two finds lie 190 ms apart; from then on statements are counted over 30 finds.
    await until(() => (finds.length > 1 && (finds.at(-1) ?? 0) - (finds.at(-2) ?? 0) > 190) || undefined)
    const [from, at, seen] = [statements, performance.now(), finds.length]
    await until(() => finds.length >= seen + 30 || undefined)
    const perSecond = (statements - from) / ((performance.now() - at) / 1000)
    await counting.close()
    expect(perSecond).toBeLessThanOrEqual(7)
  })
})

describe('the database', () => {
  it('may restart under a relay: nothing is lost, and health says so meanwhile', async () => {
    await using server = await startPostgres()
    const pool = new pg.Pool({ connectionString: await server.createDatabase(), max: 20 })
    pool.on('error', () => undefined)
    const outbox = createOutbox({ client: fromPg(pool) })
    await outbox.migrate()
    const delivered: string[] = []
    const { changed, until } = createWatch()
    let failing: () => void = () => undefined
    const failed = new Promise<void>((resolve) => (failing = resolve))
    const relay = outbox.relay({
      leaseMs: 900,
      publisher: testPublisher((run) => {
        for (const { payload } of run) delivered.push(Buffer.from(payload ?? []).toString())
        return { acknowledged: run.length }
      }),
      onSignal(signal) {
        if (signal.kind === 'database' && !signal.ok) failing()
        changed()
      },
    })
    await relay.start()
    await outbox.transaction(pool, (tx) => outbox.enqueue(tx, { topic: 't', key: 'k', payload: Buffer.from('before') }))
    await relay.drain()
    await server.kill()
    await failed
    expect(relay.health().database.ok).toBe(false)
    await server.restart()
    await outbox.transaction(pool, (tx) => outbox.enqueue(tx, { topic: 't', key: 'k', payload: Buffer.from('after') }))
    await relay.drain()
    expect(delivered).toEqual(['before', 'after'])
    // Each of the relay's sessions finds out by itself.
    await until(() => relay.health().database.ok || undefined)
    await outbox.close()
    await pool.end()
  })

  it('without an outbox is refused with the remedy, and one that is read-only too', async () => {
    await using stand = await relayStand()
    const elsewhere = createOutbox({ client: fromPg(stand.pool), schema: 'not there' })
    await expect(
      elsewhere.relay({ publisher: testPublisher(() => ({ acknowledged: 0 })) }).start(),
    ).rejects.toMatchObject({
      code: 'SCHEMA_MISSING',
      message: expect.stringContaining('outbox.migrate()') as unknown,
    })
    await elsewhere.close()
    const { rows } = await stand.pool.query<{ name: string }>('select current_database() as name')
    await stand.pool.query(`alter database "${rows[0]?.name ?? ''}" set default_transaction_read_only = on`)
    const readOnly = new pg.Pool({ connectionString: stand.url })
    const outbox = createOutbox({ client: fromPg(readOnly) })
    await expect(outbox.relay({ publisher: testPublisher(() => ({ acknowledged: 0 })) }).start()).rejects.toMatchObject(
      { code: 'DATABASE_UNREACHABLE' },
    )
    await outbox.close()
    await readOnly.end()
  })

  it('refuses a relay whose options are wrong with every problem in one error', async () => {
    await using stand = await relayStand()
    const wrong = { pollMinMs: 0, maxRun: 101, onExhausted: 'stop', leaseMS: 5, backoffBaseMs: 10, backoffCapMs: 5 }
    expect(() => stand.relay(wrong as never)).toThrow(
      expect.objectContaining({
        code: 'OPTIONS_INVALID',
        problems: expect.arrayContaining(
          ['pollMinMs', 'maxRun', 'onExhausted', 'leaseMS', 'backoffCapMs'].map(
            (path) => expect.objectContaining({ path }) as unknown,
          ),
        ) as unknown,
      }) as never,
    )
  })
})
