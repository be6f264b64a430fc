import type { Row, Statement } from '../contract/sql-client.ts'
import { type Names, quoteIdentifier, type TableName } from './names.ts'

export type Privilege = 'SELECT' | 'INSERT' | 'UPDATE' | 'DELETE'

/** What somebody does with a table. */
export interface Access {
  readonly table: TableName
  readonly privileges: readonly Privilege[]
}

/** What stands in the way of it, for one table. */
export interface Obstacle {
  readonly table: string
  readonly role: string
  /** What the role may not do. */
  readonly denied: readonly Privilege[]
  /** What the role may do, but perhaps not with every row, because of row-level security. */
  readonly hidden: readonly Privilege[]
}

/**
 * What the current role may not do with these tables, or not with all of their rows. A table that is not there is left
 * out. Reads nothing but the catalog, which everybody may. No locks.
 *
 * Parameters: $1 schema, then one entry per table and privilege: $2 tables, $3 privileges.
 *
 * - A right on any column counts: whoever granted columns knows what they do, and the server says what is missing.
 * - Every row is sure to be seen only with a policy that says `true` and no restrictive one beside it. Any other may hide
 *   rows, such as one that compares a tenant with a setting of the session, and a hidden row is not found, not settled
 *   and not missed: reads and updates of it simply do nothing. INSERT is not asked about, because it says 42501.
 */
export function obstaclesStatement(names: Names, accesses: readonly Access[]): Statement {
  const entries = accesses.flatMap(({ table, privileges }) => privileges.map((privilege) => ({ table, privilege })))
  return {
    text: `with w as (
  select c.oid, c.relname, w.privilege, w.number,
    not (has_schema_privilege(c.relnamespace, 'USAGE') and case w.privilege when 'DELETE' then has_table_privilege(c.oid, 'DELETE') else has_any_column_privilege(c.oid, w.privilege) end) denied
  from unnest($2::text[], $3::text[]) with ordinality w(relname, privilege, number) join pg_class c on c.relname = w.relname
  where c.relnamespace = (select oid from pg_namespace where nspname = $1)),
p as (
  select p.polrelid, p.polpermissive, c.privilege, coalesce(pg_get_expr(p.polqual, p.polrelid) = 'true', false) everything
  from pg_policy p join (values ('r', 'SELECT'), ('w', 'UPDATE'), ('d', 'DELETE')) c(letter, privilege) on p.polcmd in (c.letter::"char", '*')
  where exists (select 1 from unnest(p.polroles) member where case member when 0 then true else pg_has_role(member, 'USAGE') end)),
h as (
  select w.*, not w.denied and w.privilege <> 'INSERT' and row_security_active(w.oid) and (
    not exists (select 1 from p where p.polrelid = w.oid and p.privilege = w.privilege and p.polpermissive and p.everything)
    or exists (select 1 from p where p.polrelid = w.oid and p.privilege = w.privilege and not p.polpermissive and not p.everything)) hidden
  from w)
select relname, current_user, string_agg(privilege, ',' order by number) filter (where denied), string_agg(privilege, ',' order by number) filter (where hidden)
from h group by relname having bool_or(denied or hidden) order by relname`,
    values: [names.schema, entries.map(({ table }) => table), entries.map(({ privilege }) => privilege)],
  }
}

export function readObstacles(names: Names, rows: readonly Row[]): Obstacle[] {
  const list = (text: Row[number] | undefined): Privilege[] =>
    typeof text === 'string' ? (text.split(',') as Privilege[]) : []
  return rows.map(([table, role, denied, hidden]) => ({
    table: names.table(table as TableName),
    role: quoteIdentifier(role as string),
    denied: list(denied),
    hidden: list(hidden),
  }))
}

/** What a person runs to give the role what it lacks. */
export function grantSql(names: Names, obstacles: readonly Obstacle[]): string {
  const [first] = obstacles
  const schema = first === undefined ? [] : [`grant usage on schema ${names.quotedSchema} to ${first.role}`]
  const tables = obstacles.map(
    ({ table, role, denied }) => `grant ${denied.join(', ').toLowerCase()} on ${table} to ${role}`,
  )
  return [...schema, ...tables].map((statement) => `${statement};`).join(' ')
}

/** What a person runs to let the role see every row. */
export function policySql(obstacles: readonly Obstacle[]): string {
  return obstacles
    .map(({ table, role }) => `create policy relay on ${table} to ${role} using (true) with check (true);`)
    .join(' ')
}
