import type pg from 'pg'
import type { WholeScene, Written } from './play-whole.ts'

interface Row {
  readonly event_id: string
  readonly status: string
  readonly attempts: number
  readonly requeues: number
  /** It was given up once: what is behind it in its lane may have gone first. */
  readonly ended: boolean
}

/** What must not be at the end of a script, or undefined. */
export async function wrongAtTheEnd(scene: WholeScene): Promise<string | undefined> {
  const { written, arrivals, theatre, disturbed } = scene
  const rows = new Map((await readRows(theatre.pool)).map((row) => [row.event_id, row]))
  const first = new Map<string, number>()
  for (const [index, id] of arrivals.ids.entries()) if (!first.has(id)) first.set(id, index)
  const name = (event: Written): string => `event ${written.indexOf(event) + 1}`

  for (const event of written) {
    const row = rows.get(event.eventId)
    const at = first.get(event.eventId)
    if ((row !== undefined) !== (event.fate === 'committed'))
      return `${name(event)} is ${event.fate}, and its row is not`
    if (row === undefined) {
      if (at !== undefined) return `${name(event)} arrived, and was never committed`
      continue
    }
    if (row.status !== 'published' && row.status !== 'failed') return `${name(event)} is left as ${row.status}`
    if (row.status === 'published' && at === undefined) return `${name(event)} is published, and never arrived`
    const overtaken = event.before.find(
      ({ eventId }) => at !== undefined && (first.get(eventId) ?? Infinity) > at && rows.get(eventId)?.ended === false,
    )
    if (overtaken !== undefined)
      return `${name(event)} arrived before ${name(overtaken)}, which was committed before it was written`
  }
  const repeated = arrivals.ids.length - first.size
  if (repeated > 0 && arrivals.doubts === 0 && !disturbed) return `${repeated} arrived again, and nothing explains it`
  const counted = [...rows.values()].reduce((sum, { attempts, requeues }) => sum + (requeues === 0 ? attempts : 0), 0)
  if (counted > arrivals.refusals + arrivals.doubts) return `${counted} attempts are counted of ${arrivals.refusals}`
  return undefined
}

async function readRows(pool: pg.Pool): Promise<Row[]> {
  const { rows } = await pool.query<Row>(
    `select event_id, status, attempts, requeues, status = 'failed' or requeues > 0 ended from outbox.events`,
  )
  return rows
}
