import { describe, expect, it } from 'vitest'
import { failed, insertEvents, operatorStand } from '../support/operator-stand.ts'

const orderings = `select ordering, count(*)::int n from outbox.events group by 1 order by 1`

describe('setOrdering', () => {
  it('changes the mode for every way to write an event, and for those written from now on', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 1, failed)
    const report = await stand.operator.setOrdering('total')
    expect(report).toMatchObject({ from: 'key', to: 'total', changed: true, drained: true })
    await stand.enqueue({ payload: 'enqueue' })
    await stand.enqueue({ payload: 'enqueue with one that chooses' }, { payload: 'x', ordering: 'none' })
    await insertEvents(stand.pool, 1, {})
    await stand.pool.query(`select outbox.enqueue('orders', 'k', '{}')`)
    expect((await stand.pool.query(orderings)).rows).toEqual([
      { ordering: 'key', n: 1 },
      { ordering: 'none', n: 1 },
      { ordering: 'total', n: 4 },
    ])
    const audit = await stand.pool.query('select actor, verb, filter, affected from outbox.audit where action = $1', [
      report.action,
    ])
    expect(audit.rows).toEqual([
      { actor: 'jane', verb: 'setOrdering', filter: { ordering: 'total', force: false }, affected: '1' },
    ])
    expect(await stand.operator.setOrdering('total')).toMatchObject({ changed: false })
  })

  it.each([
    ['in line', {}],
    ['held', { status: `'held'`, failed_at: 'now()' }],
    ['scheduled', { status: `'scheduled'`, available_at: `now() + interval '1 hour'` }],
  ])('is refused while an event is %s, unless it is forced', async (_, columns) => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 1, columns)
    await expect(stand.operator.setOrdering('total')).rejects.toMatchObject({ code: 'NOT_DRAINED' })
    const before = await stand.contents()
    expect(await stand.operator.setOrdering('total', { dryRun: true })).toMatchObject({
      changed: true,
      drained: false,
      from: 'key',
    })
    expect(await stand.contents()).toEqual(before)
    expect(await stand.operator.setOrdering('total', { force: true })).toMatchObject({ changed: true, drained: false })
  })

  it('works while a relay runs and events are written, and each of them is delivered', async () => {
    await using stand = await operatorStand()
    await using relay = stand.relay()
    await relay.start()
    let written = 0
    let over = false
    const write = async (): Promise<void> => {
      while (!over) await stand.enqueue({ key: String(written), payload: String((written += 1)) })
    }
    const writing = Promise.all([write(), write(), write()])
    for (const mode of ['total', 'none', 'key', 'total'] as const)
      expect(await stand.operator.setOrdering(mode, { force: true })).toMatchObject({ changed: true, to: mode })
    over = true
    await writing
    await relay.drain()
    expect(new Set(stand.delivered).size).toBe(written)
    const { rows } = await stand.pool.query('select ordering from outbox.settings')
    expect(rows).toEqual([{ ordering: 'total' }])
  })

  it('keeps no writer waiting for a transaction that stays open, and says so', async () => {
    await using stand = await operatorStand()
    const person = await stand.pool.connect()
    await person.query('begin')
    await person.query('select 1 from outbox.events')
    const changing = stand.operator.setOrdering('none', { waitMs: 1500 })
    changing.catch(() => undefined)
    let longest = 0
    for (let number = 0; number < 20; number++) {
      const began = performance.now()
      await stand.enqueue({ payload: 'x' })
      longest = Math.max(longest, performance.now() - began)
    }
    await expect(changing).rejects.toMatchObject({ code: 'TABLE_BUSY' })
    expect(longest).toBeLessThan(1500)
    await person.query('rollback')
    person.release()
    expect(await stand.operator.setOrdering('none', { force: true })).toMatchObject({ changed: true })
  })

  it('to total wants one relay group with all topics', async () => {
    await using stand = await operatorStand()
    const [orders, bills] = [
      stand.relay({ group: 'orders', topics: ['orders'] }),
      stand.relay({ group: 'bills', topics: ['bills'] }),
    ]
    await orders.start()
    await bills.start()
    await expect(stand.operator.setOrdering('total')).rejects.toMatchObject({
      code: 'TOPICS_OVERLAP',
      message: expect.stringContaining(`'bills' with bills; 'orders' with orders`) as unknown,
    })
    await orders.stop()
    await bills.stop()
    await using all = stand.relay()
    await all.start()
    expect(await stand.operator.setOrdering('total')).toMatchObject({ changed: true })
  })

  it('refuses a mode that is none', async () => {
    await using stand = await operatorStand()
    await expect(stand.operator.setOrdering('random' as never, { wait: 1 } as never)).rejects.toMatchObject({
      code: 'OPTIONS_INVALID',
      problems: [{ path: 'ordering' }, { path: 'wait' }],
    })
  })
})
