import type { Row, Statement } from '../contract/sql-client.ts'
import type { Names } from './names.ts'

/** Pages of the table that are looked at. */
const sampledPages = 400

/**
 * About how many published events there are, by topic: counts them on 400 pages of the table, chosen at random, and
 * multiplies. A table of up to 400 pages is counted.
 *
 * No parameters. No index: that is the point. Locks: none. Counting 2 million rows of an index takes seconds, and the
 * planner's own estimate is as old as the last ANALYZE: the one of an empty table says none.
 */
export function estimatePublishedStatement(names: Names): Statement {
  const events = names.table('events')
  const pages = `(select greatest(1, pg_relation_size('${events.replaceAll("'", "''")}'::regclass) / current_setting('block_size')::bigint))`
  return {
    text: `with p as materialized (select least(1, ${String(sampledPages)}::float8 / ${pages}) share)
select topic, count(*) / (select share from p) from ${events} tablesample system (least(100, ${String(100 * sampledPages)}::float8 / ${pages}))
where status = 'published' group by topic order by topic`,
    values: [],
  }
}

export function readEstimated(rows: readonly Row[]): readonly { readonly topic: string; readonly count: number }[] {
  return rows.map(([topic, count]) => ({ topic: topic as string, count: Math.round(Number(count)) }))
}
