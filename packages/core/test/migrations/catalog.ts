import type pg from 'pg'
import { quoteIdentifier } from '../../src/storage/names.ts'

/**
 * Everything that makes up a schema, as text without the schema's own name: columns, constraints, indexes, functions,
 * storage options and the rows that a migration writes. Two schemas are the same exactly if these are.
 */
export async function describeSchema(pool: pg.Pool, schema: string): Promise<string[]> {
  const { rows } = await pool.query<{ line: string }>(
    `with inside as (select oid from pg_namespace where nspname = $1)
select format('column %s.%s %s %s %s %s %s', relname, attname, format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated, pg_get_expr(adbin, adrelid)) line
  from pg_attribute join pg_class c on c.oid = attrelid left join pg_attrdef on adrelid = attrelid and adnum = attnum
  where relnamespace in (table inside) and attnum > 0 and relkind = 'r'
union all select format('collation %s.%s %s', relname, attname, collname) from pg_attribute join pg_class c on c.oid = attrelid join pg_collation l on l.oid = attcollation
  where relnamespace in (table inside) and attnum > 0 and relkind = 'r'
union all select format('constraint %s %s %s', c.relname, conname, pg_get_constraintdef(k.oid)) from pg_constraint k join pg_class c on c.oid = conrelid where relnamespace in (table inside)
union all select format('index %s %s %s', relname, indisvalid, pg_get_indexdef(indexrelid)) from pg_index join pg_class c on c.oid = indexrelid where relnamespace in (table inside)
union all select format('relation %s %s %s', relkind, relname, (select string_agg(option, ',' order by option) from unnest(reloptions) option)) from pg_class where relnamespace in (table inside)
union all select format('function %s', pg_get_functiondef(oid)) from pg_proc where pronamespace in (table inside)
union all select format('trigger %s', pg_get_triggerdef(t.oid)) from pg_trigger t join pg_class c on c.oid = tgrelid where relnamespace in (table inside) and not tgisinternal
order by line`,
    [schema],
  )
  const quoted = quoteIdentifier(schema)
  const written = await pool.query<{ line: string }>(
    `select to_jsonb(s)::text line from ${quoted}.settings s union all select name from ${quoted}.migrations order by line`,
  )
  return [...rows, ...written.rows].map(({ line }) =>
    line.replaceAll(quoted, 'SCHEMA').replaceAll(`${schema}.`, 'SCHEMA.'),
  )
}

/** Runs a script as a person does with psql: one statement after the other, each on its own. */
export async function runByHand(pool: pg.Pool, script: string): Promise<void> {
  const client = await pool.connect()
  try {
    for (const statement of statementsOf(script)) await client.query(statement)
  } finally {
    client.release()
  }
}

/** Splits at semicolons, except inside quotes, names, dollar quotes and comments. */
function statementsOf(script: string): string[] {
  const tokens = script.match(/--[^\n]*|'(?:[^']|'')*'|"(?:[^"]|"")*"|(\$\w*\$)[\s\S]*?\1|;|[\s\S]/g) ?? []
  const statements: string[] = []
  let statement = ''
  for (const token of tokens) {
    if (token === ';') {
      statements.push(statement)
      statement = ''
    } else statement += token
  }
  if (statement.replace(/--[^\n]*/g, '').trim() !== '')
    throw new Error(`the script ends inside a statement: ${statement}`)
  return statements
}
