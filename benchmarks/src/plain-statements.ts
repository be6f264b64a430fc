import { openClient } from './server.ts'

/** Rows in one read and in one mark. */
const batch = 1000

/**
 * The ceiling of the database: what the plainest possible relay would do and nothing else. It reads the next 1,000
 * events in id order with all that a publisher needs, then marks these 1,000 ids as published, on one connection with
 * prepared statements. No order per key, no failures, no owners.
 */
export async function drainPlainly(url: string): Promise<{ events: number; seconds: number }> {
  await using client = await openClient(url)
  const read = {
    name: 'read',
    text: `select id, event_id, topic, key, type, content_type, headers, payload from outbox.events where id > $1 order by id limit ${batch}`,
  }
  const mark = {
    name: 'mark',
    text: "update outbox.events set status = 'published', published_at = clock_timestamp() where id = any($1::bigint[])",
  }
  const began = performance.now()
  let events = 0
  let last = '0'
  for (;;) {
    const { rows } = await client.query<{ id: string }>({ ...read, values: [last] })
    if (rows.length === 0) break
    await client.query({ ...mark, values: [rows.map(({ id }) => id)] })
    events += rows.length
    last = rows.at(-1)?.id ?? last
  }
  return { events, seconds: (performance.now() - began) / 1000 }
}
