import { createHash } from 'node:crypto'

/**
 * The only place that puts an identifier into SQL. A schema name is quoted, so that upper case, hyphens and quotes
 * are as good as any other; everything is schema-qualified, so that no search_path matters.
 */
export interface Names {
  readonly schema: string
  readonly quotedSchema: string
  /** Channel of the wake-ups: at most 63 bytes, whatever the schema is called. */
  readonly channel: string
  /** Channel on which relays say that slots are free. */
  readonly slotsChannel: string
  table(name: TableName): string
}

export type TableName =
  | 'events'
  | 'relays'
  | 'group_topics'
  | 'slots'
  | 'holds'
  | 'failures'
  | 'processed_events'
  | 'audit'
  | 'settings'
  | 'migrations'

export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

export function namesOf(schema: string): Names {
  const quotedSchema = quoteIdentifier(schema)
  return {
    schema,
    quotedSchema,
    channel: `inorder:${shortHash(schema)}`,
    slotsChannel: `inorder:slots:${shortHash(schema)}`,
    table: (name) => `${quotedSchema}.${name}`,
  }
}

/** A name for a prepared statement: it must differ wherever the text differs, or a shared session refuses it. */
export function statementName(purpose: string, text: string): string {
  return `inorder_${purpose}_${shortHash(text)}`
}

/** Names need to differ where the text differs; nothing rests on them being unguessable. */
function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}
