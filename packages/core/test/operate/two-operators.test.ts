import { describe, expect, it } from 'vitest'
import { fromPg } from '../../src/clients/from-pg.ts'
import { createOutbox } from '../../src/outbox.ts'
import { aroundStatements } from '../support/around-statements.ts'
import { failed, insertEvents, operatorStand, published } from '../support/operator-stand.ts'
import { stopAtAudit } from '../support/stopped-verb.ts'

describe('two operators', () => {
  it('who requeue the same events change each of them once, and every key comes out in order', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 600, {
      ...failed,
      key: `'k' || n % 20`,
      failed_at: `now() - (n * 37 % 600) * interval '1 s'`,
    })
    await using _ = await stand.finding()
    const other = stand.outbox.operator({ actor: 'joe' })
    const reports = await Promise.all([
      stand.operator.requeue({ topic: 'orders' }, { batchSize: 7 }),
      other.requeue({ status: 'failed' }, { batchSize: 11 }),
    ])
    expect(reports.reduce((sum, { changed }) => sum + changed, 0)).toBe(600)
    await stand.deliveries(600)
    for (let number = 0; number < 20; number++) {
      const ids = stand.events.filter(({ key }) => key === `k${number}`).map(({ id }) => Number(id))
      expect(ids).toEqual([...ids].sort((a, b) => a - b))
    }
    const { rows } = await stand.pool.query('select distinct requeues from outbox.events')
    expect(rows).toEqual([{ requeues: 1 }])
  })

  it('of whom one discards what the other requeues share the events between them', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 400, { ...failed, key: `'k' || n % 20` })
    const other = stand.outbox.operator({ actor: 'joe' })
    const [requeued, discarded] = await Promise.all([
      stand.operator.requeue({ topic: 'orders' }, { batchSize: 7 }),
      other.discard({ status: 'failed' }, { batchSize: 7 }),
    ])
    expect(requeued.changed + discarded.changed).toBe(400)
    expect(await stand.states()).toEqual(requeued.changed === 0 ? {} : { pending: requeued.changed })
    const { rows } = await stand.pool.query(
      `select coalesce(sum(jsonb_array_length(detail -> 'ids')), 0)::int ids from outbox.audit where verb = 'discard'`,
    )
    expect(rows).toEqual([{ ids: discarded.changed }])
  })

  it('of whom one purges what the other replays lose nothing', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 500, { ...published, key: 'n::text' })
    const [replayed, purged] = await Promise.all([
      stand.operator.replay({ topic: 'orders' }, { batchSize: 5 }),
      stand.outbox.operator({ actor: 'joe' }).purge({ retainPublishedMs: 1000, batchSize: 5 }),
    ])
    expect(replayed.changed + purged.deleted).toBe(500)
    await stand.relay().drain()
    expect(stand.delivered).toHaveLength(replayed.changed)
  })

  it('take turns without waiting in a transaction of the other', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 2, { ...failed, key: 'n::text' })
    const audit = await stopAtAudit(stand)
    const first = stand.operator.requeue({ ids: ['1'] })
    await audit.reached()
    const interrupt = new AbortController()
    const turns: unknown[] = []
    const client = aroundStatements(fromPg(stand.pool), async ({ text }, run) => {
      const answer = await run()
      if (text.includes("set status = 'pending'")) turns.push(answer.rows[0]?.[0])
      if (turns.length === 3) interrupt.abort()
      return answer
    })
    await using outbox = createOutbox({ client })
    const second = outbox.operator({ actor: 'joe' }).requeue({ ids: ['2'] }, { signal: interrupt.signal })
    expect(await second).toMatchObject({ finished: false, changed: 0 })
    expect(turns).toEqual(['f', 'f', 'f'])
    const third = outbox.operator({ actor: 'jim' }).requeue({ ids: ['2'] })
    await audit.letGo()
    expect(await first).toMatchObject({ changed: 1 })
    expect(await third).toMatchObject({ changed: 1 })
  })
})
