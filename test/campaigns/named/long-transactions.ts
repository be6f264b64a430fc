import pg from 'pg'
import type { Campaign } from '../campaign-plan.ts'
import type { Stage } from '../stage.ts'
import { lasting, repeatedly } from '../tempo.ts'

/**
 * Writers leave transactions open for seconds while others commit, so that low ids become visible late; and somebody
 * holds a snapshot and a transaction id all the while, as a report or a forgotten psql does.
 */
export const longTransactions: Campaign = {
  name: 'long-transactions',
  about: 'transactions stay open for seconds, of writers and of somebody who reads',
  stage: { hands: 10, openMs: 4000 },
  disturb: (stage, until) =>
    repeatedly({ random: stage.random, minMs: 50, maxMs: 500 }, until, () => holdSnapshot(stage, until)),
}

async function holdSnapshot({ postgres, random, faults }: Stage, until: AbortSignal): Promise<void> {
  const client = new pg.Client({ connectionString: postgres.url('campaign') })
  await client.connect()
  const over = faults.begin('snapshot held')
  await client.query('begin isolation level repeatable read')
  await client.query('select pg_current_xact_id(), count(*) from outbox.events')
  await lasting(1000 + random.below(4000), until)
  await client.query('rollback')
  over()
  await client.end()
}
