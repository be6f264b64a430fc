import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PlanSession, Planning } from './explain.ts'
import { problemsOf } from './gate.ts'
import { fill, type PlanDatabase, planDatabase } from './plan-database.ts'
import type { Regime } from './regimes.ts'
import { type HotStatement, hotStatements, type Situation, statementsFor } from './statements.ts'

/** Tests that every hot statement keeps its plan in a regime, whatever the statistics say. */
export function checkPlans(
  regime: Regime,
  url: () => Promise<string | undefined> = () => Promise.resolve(undefined),
): void {
  describe(regime.name, () => {
    let database: PlanDatabase
    let session: PlanSession
    let situation: Situation

    function everyStatementKeepsItsPlan(): void {
      for (const planning of ['unnamed', 'generic'] as const) {
        it.each(hotStatements)(`%s reads what it needs and no more, ${planning}`, async (name) => {
          expect(await problems(name, planning)).toEqual([])
        })
      }
    }

    async function problems(name: HotStatement, planning: Planning): Promise<string[]> {
      const plan = await session.explain(name, statementsFor(situation)[name], planning)
      const found = problemsOf(plan, regime.expected[name])
      return found.length === 0 ? [] : [...found, plan.text]
    }

    describe('with the statistics and the plans of the empty table', () => {
      beforeAll(async () => {
        database = await planDatabase(await url())
        session = await database.session()
        situation = await regime.fill(database)
      })
      everyStatementKeepsItsPlan()
    })

    describe('with fresh statistics', () => {
      beforeAll(async () => {
        await database.analyze()
        session = await database.session()
      })
      afterAll(() => database[Symbol.asyncDispose]())
      everyStatementKeepsItsPlan()
    })

    describe('with statistics from when nearly everything was scheduled', () => {
      beforeAll(async () => {
        database = await planDatabase(await url())
        await fill(database.outbox.pool, 5000, "'later'", {
          status: "'scheduled'",
          available_at: "now() + interval '1 day'",
        })
        await database.analyze()
        session = await database.session()
        situation = await regime.fill(database)
      })
      afterAll(() => database[Symbol.asyncDispose]())
      everyStatementKeepsItsPlan()
    })
  })
}
