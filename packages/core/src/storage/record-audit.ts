import type { Statement } from '../contract/sql-client.ts'
import type { Names } from './names.ts'

/** Whose action a row of the audit belongs to. */
export interface AuditEntry {
  /** UUID that the transactions of one action share. */
  readonly action: string
  readonly actor: string
  readonly verb: string
  /** What the operator asked for, as JSON. */
  readonly filter: string
}

/**
 * Writes down what a transaction of an action did. Belongs into that transaction. Parameters: $1 action, $2 actor, $3
 * verb, $4 filter as JSON, $5 rows. Locks: none.
 */
export function recordStatement(names: Names, entry: AuditEntry, affected: number): Statement {
  return {
    text: `insert into ${names.table('audit')} (action, actor, verb, filter, affected) values ($1, $2, $3, $4::jsonb, $5)`,
    values: [...auditValues(entry), affected],
  }
}

/** An entry as the parameters of a statement, in this order. */
export function auditValues({ action, actor, verb, filter }: AuditEntry): readonly unknown[] {
  return [action, actor, verb, filter]
}
