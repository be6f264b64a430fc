import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PlanSession } from './explain.ts'
import { problemsOf } from './gate.ts'
import { type PlanDatabase, planDatabase } from './plan-database.ts'
import { blockedKeys as regime } from './regimes.ts'
import { hotStatements, type Situation, statementsFor } from './statements.ts'

// The gate itself: a bad plan must not get through it.

let database: PlanDatabase
let session: PlanSession
let situation: Situation
beforeAll(async () => {
  database = await planDatabase()
  situation = await regime.fill(database)
  await database.analyze()
  session = await database.session()
})
afterAll(() => database[Symbol.asyncDispose]())

describe('a gate on plans', () => {
  it.each([
    ['find', 'arrival'],
    ['find', 'lane'],
    ['find', 'waiting'],
    ['due', 'waiting'],
    ['sweep', 'lane'],
  ] as const)('stops %s without the index %s', async (name, index) => {
    const statement = statementsFor(situation)[name]
    const plan = await session.explain(name, statement, 'unnamed', `drop index outbox.${index}`)
    expect(problemsOf(plan, regime.expected[name])).not.toEqual([])
  })

  it.each(['find', 'due', 'sweep', 'settle', 'load'] as const)(
    'stops %s when it reads the whole table',
    async (name) => {
      const off =
        'set local enable_indexscan = off; set local enable_bitmapscan = off; set local enable_indexonlyscan = off'
      const plan = await session.explain(name, statementsFor(situation)[name], 'unnamed', off)
      expect(problemsOf(plan, regime.expected[name]).join()).toContain('without an index')
    },
  )

  it('stops the obvious query, which probes every row that is blocked', async () => {
    const text = `select e.id from outbox.events e where e.status = 'pending' and (e.available_at is null or e.available_at <= now())
      and not exists (select from outbox.events b where b.lane = e.lane and b.id < e.id and b.status in ('pending', 'held'))
      order by e.id limit 100 for update of e skip locked`
    const plan = await session.explain('obvious', { text, values: [] }, 'unnamed')
    expect(problemsOf(plan, regime.expected.find).join()).toMatch(/\d+ buffers, at most/)
  })

  it('stops a statement that the server would compile', async () => {
    const plan = await session.explain('find', statementsFor(situation).find, 'unnamed')
    expect(problemsOf({ ...plan, cost: 100_000 }, regime.expected.find)).toHaveLength(1)
  })

  it('lets the statements through as they are', async () => {
    for (const name of hotStatements) {
      const plan = await session.explain(name, statementsFor(situation)[name], 'unnamed')
      expect(problemsOf(plan, regime.expected[name])).toEqual([])
    }
  })
})
