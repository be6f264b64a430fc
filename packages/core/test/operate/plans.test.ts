import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Statement } from '../../src/contract/sql-client.ts'
import { collectGivenStatement, type CollectPath, collectStatement } from '../../src/storage/collect-events.ts'
import { countEventsStatement } from '../../src/storage/count-events.ts'
import { countLaterPublishedStatement, laterRows } from '../../src/storage/count-later-published.ts'
import { discardStatement } from '../../src/storage/discard-events.ts'
import { estimatePublishedStatement } from '../../src/storage/estimate-published.ts'
import type { EventCriteria } from '../../src/storage/event-filter.ts'
import { namesOf } from '../../src/storage/names.ts'
import { countPurgeableStatement, purgeStatement } from '../../src/storage/purge.ts'
import { purgeInboxStatement } from '../../src/storage/purge-inbox.ts'
import { requeueStatement } from '../../src/storage/requeue-events.ts'
import { rescheduleStatement } from '../../src/storage/reschedule-events.ts'
import { orderingStateStatement } from '../../src/storage/set-ordering.ts'
import { stampLanesStatement } from '../../src/storage/stamp-lanes.ts'
import type { TakeParameters } from '../../src/storage/take-events.ts'
import type { Plan, PlanSession } from '../plans/explain.ts'
import { type Expectation, pages, problemsOf } from '../plans/gate.ts'
import { fill, type PlanDatabase, planDatabase } from '../plans/plan-database.ts'

const names = namesOf('outbox')
/** Rows in each state, and events that one statement changes. */
const backlog = 20_000
const batch = 1000
const looked = 10_000

const all: EventCriteria = {
  statuses: ['pending', 'scheduled', 'held', 'failed', 'published'],
  topic: 'orders',
  key: null,
  lane: null,
  type: null,
  cause: null,
  outcome: 'rejected',
  failedAfter: null,
  failedBefore: null,
  createdAfter: null,
  createdBefore: null,
  publishedFrom: null,
  publishedTo: null,
  waits: null,
}

interface Ids {
  readonly failed: readonly string[]
  readonly pending: readonly string[]
  readonly eventIds: readonly string[]
  readonly lanes: readonly string[]
  readonly first: string
}

interface Case {
  readonly statement: (ids: Ids) => Statement
  readonly expected: Expectation
}

function take(ids: readonly string[], changes: Partial<EventCriteria> = {}): TakeParameters {
  const audit = { action: randomUUID(), actor: 'jane', verb: 'test', filter: '{}' }
  return { criteria: { ...all, outcome: null, ...changes }, ids, shut: [], audit }
}

/** Each row that is looked at is one page, and the last failure of it three more. */
const stretch = (index: string): Expectation => ({
  indexes: { e: index },
  buffers: pages({ scans: looked, rows: looked }),
})
const collect =
  (path: CollectPath): Case['statement'] =>
  () =>
    collectStatement(names, path)(all, [null, null])
/** Each id is looked up to lock its row and again to change it, and its failures besides. */
const changed: Expectation = { indexes: { e: 'events_pkey' }, buffers: pages({ scans: 4 * batch, written: batch }) }

const cases: Readonly<Record<string, Case>> = {
  'collect failed': { statement: collect('failed'), expected: stretch('failed') },
  'collect undated': { statement: collect('undated'), expected: stretch('failed') },
  'collect in line': { statement: collect('in-line'), expected: stretch('lane') },
  'collect waiting': { statement: collect('waiting'), expected: stretch('waiting') },
  'collect published': { statement: collect('published'), expected: stretch('published') },
  'collect ids': {
    statement: ({ failed }) => collectGivenStatement(names, 'id')(all, failed),
    expected: { indexes: { e: 'events_pkey' }, buffers: pages({ scans: 2 * batch, rows: batch }) },
  },
  'collect event ids': {
    statement: ({ eventIds }) => collectGivenStatement(names, 'event_id')(all, eventIds),
    expected: { indexes: { e: 'events_event_id_key' }, buffers: pages({ scans: 2 * batch, rows: batch }) },
  },
  requeue: {
    statement: ({ failed }) => requeueStatement(names)(take(failed, { statuses: ['failed', 'held'] })),
    expected: changed,
  },
  discard: {
    statement: ({ failed }) => discardStatement(names)(take(failed, { statuses: ['failed'] })),
    expected: changed,
  },
  'reschedule to now': {
    statement: ({ pending }) => rescheduleStatement(names)(take(pending, { waits: 'waits' }), null),
    expected: changed,
  },
  'reschedule to later': {
    statement: ({ pending }) => rescheduleStatement(names)(take(pending), '2030-01-01T00:00:00Z'),
    expected: changed,
  },
  stamp: {
    statement: ({ lanes }) => stampLanesStatement(names)({ lanes, after: lanes.map(() => '-1') }),
    expected: {
      indexes: { b: 'lane', e: 'events_pkey' },
      buffers: pages({ scans: 3 * batch, rows: batch, written: batch }),
    },
  },
  'count later published': {
    statement: ({ first, failed }) => countLaterPublishedStatement(names)(first, failed),
    expected: { indexes: { events: 'events_pkey' }, buffers: pages({ rows: laterRows }) },
  },
  purge: {
    statement: () => purgeStatement(names)(0, batch),
    expected: {
      indexes: { events: 'published', e: 'events_pkey' },
      buffers: pages({ scans: 3 * batch, rows: batch, written: batch }),
    },
  },
  'count what can be purged': {
    statement: () => countPurgeableStatement(names)(0, batch),
    expected: { indexes: { events: 'published' }, buffers: pages({ rows: batch }) },
  },
  'count events': {
    statement: () => countEventsStatement(names)(looked),
    expected: {
      indexes: { line: 'lane', later: 'waiting', ended: 'failed', oldest: 'arrival' },
      buffers: pages({ scans: 4, rows: 3 * looked + 1000 }),
    },
  },
  'estimate published': {
    statement: () => estimatePublishedStatement(names),
    expected: { indexes: {}, buffers: pages({ rows: 400 }) },
  },
  'ordering state': {
    statement: () => orderingStateStatement(names),
    expected: { indexes: { line: 'lane', later: 'waiting' }, buffers: pages({ scans: 2, rows: 2 }) },
  },
}

let database: PlanDatabase
let session: PlanSession
let ids: Ids

async function openSession(): Promise<void> {
  session = await database.session()
  const nothing: Ids = { failed: [], pending: [], eventIds: [], lanes: [], first: '0' }
  for (const [number, { statement }] of Object.values(cases).entries())
    await session.prepare(`verb_${number}`, statement(nothing))
}

/** A thousand of each, spread over all of them. */
async function idsOf(where: string): Promise<{ id: string; event_id: string; lane: string }[]> {
  const { rows } = await database.outbox.pool.query<{ id: string; event_id: string; lane: string }>(
    `select id, event_id, lane from outbox.events where ${where} and id % ${backlog / batch} = 0 order by id limit ${batch}`,
  )
  return rows
}

function sequentialTables(plan: Plan): string[] {
  const found = plan.text.matchAll(/"Node Type": "Seq Scan"[^[\]{}]*"Relation Name": "(\w+)"/g)
  return [...found]
    .map(([, table = '']) => table)
    .filter((table) => ['events', 'failures', 'processed_events'].includes(table))
}

beforeAll(async () => {
  database = await planDatabase()
  await openSession()
  const { pool } = database.outbox
  await fill(pool, backlog, "'published-' || n", { status: "'published'", published_at: "now() - n * interval '1 ms'" })
  await fill(pool, backlog, "'failed-' || n", {
    status: "'failed'",
    failed_at: "now() - n * interval '1 ms'",
    last_error: "'no'",
  })
  await fill(pool, backlog, "'waiting-' || n", { attempts: '1', available_at: "now() + interval '1 day'" })
  await fill(pool, backlog, "'line-' || n")
  await pool.query(
    `insert into outbox.failures (event, at, requeues, attempt, relay, outcome, error) select id, now(), 0, 1, 'r', 'rejected', 'no' from outbox.events where status = 'failed'`,
  )
  await pool.query(
    `insert into outbox.processed_events (consumer, event_id, processed_at) select 'c' || n % 10, gen_random_uuid(), now() - n * interval '1 s' from generate_series(1, ${backlog}) n`,
  )
  const [failed, pending, line] = [
    await idsOf("status = 'failed'"),
    await idsOf('attempts = 1'),
    await idsOf("key like 'line-%'"),
  ]
  ids = {
    failed: failed.map(({ id }) => id),
    pending: pending.map(({ id }) => id),
    eventIds: failed.map(({ event_id }) => event_id),
    lanes: line.map(({ lane }) => lane),
    first: '1',
  }
})
afterAll(() => database[Symbol.asyncDispose]())

function everyVerbKeepsItsPlan(): void {
  it.each(['unnamed', 'generic'] as const)('reads what it needs and no more, %s', async (planning) => {
    const found: Record<string, string[]> = {}
    for (const [number, [name, { statement, expected }]] of Object.entries(cases).entries()) {
      const plan = await session.explain(`verb_${number}`, statement(ids), planning)
      // A list of event ids may be looked up as a bitmap, as one of row ids may.
      const problems = [...problemsOf(plan, expected), ...sequentialTables(plan)].filter(
        (problem) => problem !== 'e is read through a bitmap of events_event_id_key',
      )
      if (problems.length > 0) found[name] = [...problems, plan.text]
    }
    expect(found).toEqual({})
  })

  it('purges the inbox of a consumer through its index', async () => {
    const plan = await session.explain(
      '',
      purgeInboxStatement(names)({ consumer: 'c3', retentionMs: 0, limit: batch }),
      'unnamed',
    )
    expect(sequentialTables(plan)).toEqual([])
    expect(plan.text).toContain('"processed"')
    expect(plan.buffers).toBeLessThan(pages({ scans: batch, rows: 2 * batch }))
  })
}

describe('every statement of a verb', () => {
  describe('with the statistics and the plans of the empty table', everyVerbKeepsItsPlan)

  describe('with fresh statistics', () => {
    beforeAll(async () => {
      await database.outbox.pool.query('analyze')
      await openSession()
    })
    everyVerbKeepsItsPlan()
  })
})
