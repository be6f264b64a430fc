import type pg from 'pg'

export interface KeyProof {
  readonly key: string
  readonly written: number
  readonly processed: number
  /** Same events, same bytes, same order. Events without a key promise no order. */
  readonly same: boolean
}

const proofSql = `
with w as (select key, array_agg(event_id || encode(payload, 'hex') order by case when key is null then event_id::text end, position) events from written group by key),
p as (select key, array_agg(event_id || encode(payload, 'hex') order by case when key is null then event_id::text end, position) events from processed group by key)
select coalesce(w.key, p.key, '(no key)') key, coalesce(cardinality(w.events), 0) written, coalesce(cardinality(p.events), 0) processed,
  w.events is not distinct from p.events same
from w full join p on coalesce(w.key, chr(1)) = coalesce(p.key, chr(1)) order by 1`

/** What the shop committed against what the consumer processed, key by key. */
export async function proveOrder(pool: pg.Pool): Promise<KeyProof[]> {
  return (await pool.query<KeyProof>(proofSql)).rows
}

export function printProof(proof: readonly KeyProof[], dropped: number): void {
  const width = Math.max(3, ...proof.map(({ key }) => key.length))
  console.log(`${'key'.padEnd(width)}  written  processed  same order and bytes`)
  for (const { key, written, processed, same } of proof) {
    console.log(
      `${key.padEnd(width)}  ${String(written).padStart(7)}  ${String(processed).padStart(9)}  ${same ? 'yes' : 'NO'}`,
    )
  }
  console.log(`duplicates dropped by the inbox: ${dropped}`)
}
