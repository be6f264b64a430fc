import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { fromPg } from '../../src/clients/from-pg.ts'
import type { Operator } from '../../src/operate/operator.ts'
import { createOutbox } from '../../src/outbox.ts'
import { failed, insertEvents, type OperatorStand, operatorStand, published } from '../support/operator-stand.ts'

const inAnHour = new Date(Date.now() + 3_600_000)

const verbs: readonly (readonly [string, (operator: Operator, dryRun: boolean) => Promise<unknown>])[] = [
  ['requeue', (operator, dryRun) => operator.requeue({ topic: 'orders' }, { dryRun })],
  ['discard', (operator, dryRun) => operator.discard({ status: ['failed', 'pending', 'scheduled'] }, { dryRun })],
  ['reschedule', (operator, dryRun) => operator.reschedule({ topic: 'orders' }, { dryRun, at: inAnHour })],
  ['replay', (operator, dryRun) => operator.replay({ topic: 'orders' }, { dryRun })],
  ['hold', (operator, dryRun) => operator.hold({ topic: 'orders', key: 'a' }, { reason: 'the test', dryRun })],
  ['release', (operator, dryRun) => operator.release({ topic: 'held' }, { dryRun })],
  ['purge', (operator, dryRun) => operator.purge({ retainPublishedMs: 1000, dryRun })],
  ['setOrdering', (operator, dryRun) => operator.setOrdering('none', { dryRun, force: true })],
]

async function filledStand(): Promise<OperatorStand> {
  const stand = await operatorStand()
  await stand.operator.hold({ topic: 'held' }, { reason: 'the test' })
  await insertEvents(stand.pool, 3, failed)
  await insertEvents(stand.pool, 3, published)
  await insertEvents(stand.pool, 3, {})
  await insertEvents(stand.pool, 3, { status: `'scheduled'`, available_at: `now() + interval '1 minute'` })
  return stand
}

describe.each(verbs)('%s', (verb, run) => {
  it('writes nothing at all in a dry run, and says there what it then does', async () => {
    await using stand = await filledStand()
    // Where nothing can be written, not even a row can be locked.
    const pool = new pg.Pool({ connectionString: stand.url, options: '-c default_transaction_read_only=on' })
    const readOnly = createOutbox({ client: fromPg(pool) }).operator({ actor: 'jane' })
    const contents = await stand.contents()
    const foreseen = { ...((await run(readOnly, true)) as object), action: '', dryRun: false, publishedTo: '' }
    await pool.end()
    const done = { ...((await run(stand.operator, false)) as object), action: '', publishedTo: '' }
    expect(done).toEqual(foreseen)
    expect(await stand.contents()).not.toEqual(contents)
  })

  it('writes who did it into the audit, and nothing when there was nothing to do', async () => {
    await using stand = await filledStand()
    const { action } = (await run(stand.operator, false)) as { action: string }
    const audit = `select actor, verb, affected > 0 did from outbox.audit where action = $1`
    expect((await stand.pool.query(audit, [action])).rows).toEqual([{ actor: 'jane', verb, did: true }])
    await stand.pool.query('truncate outbox.events')
    const again = (await run(stand.operator, false)) as { action: string }
    expect((await stand.pool.query(audit, [again.action])).rows).toEqual([])
  })

  it('says what to do where there is no outbox', async () => {
    await using stand = await operatorStand()
    await stand.pool.query('drop schema outbox cascade')
    await expect(run(stand.operator, false)).rejects.toMatchObject({
      code: 'SCHEMA_MISSING',
      message: expect.stringContaining('outbox.migrate()') as unknown,
    })
  })
})

describe('an operator', () => {
  it('needs a name, for the audit', async () => {
    await using stand = await operatorStand()
    expect(() => stand.outbox.operator({} as never)).toThrow(
      expect.objectContaining({ code: 'OPTIONS_INVALID' }) as never,
    )
  })

  it('is refused with everything that is wrong with a filter and its options at once', async () => {
    await using stand = await operatorStand()
    const options = { batchSize: Number.NaN, dryrun: true, signal: 5, onProgress: 'yes' }
    await expect(stand.operator.requeue({ topc: 'orders' } as never, options as never)).rejects.toMatchObject({
      code: 'OPTIONS_INVALID',
      problems: ['filter.topc', 'batchSize', 'dryrun', 'signal', 'onProgress'].map((path) => ({ path })),
    })
    await expect(stand.operator.requeue({})).rejects.toMatchObject({ code: 'FILTER_EMPTY' })
    await expect(stand.operator.reschedule({}, { at: 'now' })).rejects.toMatchObject({ code: 'FILTER_EMPTY' })
    await expect(stand.operator.replay({})).rejects.toMatchObject({ code: 'FILTER_EMPTY' })
    await expect(stand.operator.discard({})).rejects.toMatchObject({ code: 'FILTER_EMPTY' })
  })

  it('wakes relays that would not have looked for a minute', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 1, failed)
    await using _ = await stand.finding({ pollMinMs: 60_000, pollMaxMs: 60_000 })
    await stand.operator.requeue({ topic: 'orders' })
    await stand.deliveries(1)
  })

  it('keeps no connection between two calls', async () => {
    await using stand = await operatorStand()
    let open = 0
    const client = fromPg(stand.pool)
    const operator = createOutbox({
      client: {
        ...client,
        async connect() {
          const connection = await client.connect()
          open += 1
          return {
            ...connection,
            async close() {
              open -= 1
              await connection.close()
            },
          }
        },
      },
    }).operator({ actor: 'jane' })
    await operator.counts()
    await operator.requeue({ topic: 'orders' })
    await stand.pool.query('drop table outbox.failures')
    await expect(operator.requeue({ topic: 'orders' })).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
    expect(open).toBe(0)
  })
})
