import type { Statement } from '../contract/sql-client.ts'
import type { Names } from './names.ts'

/** One event for one consumer. */
export interface Claim {
  readonly consumer: string
  readonly eventId: string
}

/**
 * Notes that a consumer processes an event: the affected count is 1, or 0 when it has done so before.
 *
 * Parameters: $1 consumer, $2 event id. Index: primary key. Locks: its entry, so that a copy that comes meanwhile waits
 * for the end of this transaction. Looking first and inserting afterwards would let both through. Under REPEATABLE READ
 * and above, a copy that committed meanwhile is 40001.
 */
export function claimEventStatement(names: Names, { consumer, eventId }: Claim): Statement {
  return {
    text: `insert into ${names.table('processed_events')} (consumer, event_id) values ($1, $2::uuid) on conflict do nothing`,
    values: [consumer, eventId],
  }
}

/** Takes the note of this transaction back. Parameters, index and locks as above. */
export function withdrawClaimStatement(names: Names, { consumer, eventId }: Claim): Statement {
  return {
    text: `delete from ${names.table('processed_events')} where consumer = $1 and event_id = $2::uuid`,
    values: [consumer, eventId],
  }
}
