import type pg from 'pg'
import { openClient } from './server.ts'
import { median } from './statistics.ts'

/**
 * The query that everybody writes first: rows in line in id order, none that has an earlier one of its key in line,
 * locked so that others skip them. It runs on the same table with the same indexes, and looks the earlier row up by
 * lane, which is as cheap as it can be.
 */
const obviousQuery = `select e.id, e.topic, e.key, e.payload from outbox.events e
where e.status = 'pending' and (e.available_at is null or e.available_at <= now())
  and not exists (select from outbox.events b where b.lane = e.lane and b.id < e.id and b.status in ('pending', 'held'))
order by e.id limit 100 for update of e skip locked`

export interface ObviousTime {
  /** Median of three, or the cap when one of them was given up. */
  readonly ms: number
  readonly capped: boolean
}

/** Times it in transactions that are rolled back, so that nothing stays locked. */
export async function timeObviousQuery(url: string, capSeconds: number): Promise<ObviousTime> {
  await using client = await openClient(url)
  await client.query(`set statement_timeout = ${capSeconds * 1000}`)
  const times: number[] = []
  for (let repetition = 0; repetition < 3; repetition++) {
    await client.query('begin')
    const began = performance.now()
    try {
      await client.query(obviousQuery)
      times.push(performance.now() - began)
    } catch (error) {
      if ((error as pg.DatabaseError).code !== queryCanceled) throw error
      return { ms: capSeconds * 1000, capped: true }
    } finally {
      await client.query('rollback')
    }
  }
  return { ms: median(times), capped: false }
}

const queryCanceled = '57014'
