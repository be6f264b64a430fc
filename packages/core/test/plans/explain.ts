import type pg from 'pg'
import type { Statement } from '../../src/contract/sql-client.ts'

/** How the server gets to its plan: knowing the parameters, or once for all of them. */
export type Planning = 'unnamed' | 'generic'

/** What EXPLAIN said about one execution. */
export interface Plan {
  /** The indexes that `events` was read through, by the alias that the statement gives it. */
  readonly indexes: Readonly<Record<string, readonly string[]>>
  /** Aliases of `events` that were read without an index. */
  readonly sequential: readonly string[]
  /** Shared buffers that the execution looked at. */
  readonly buffers: number
  /** What the planner expected; from 100,000 on the server compiles the statement first. */
  readonly cost: number
  readonly text: string
}

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly Alias?: string
  readonly 'Index Name'?: string
  readonly 'Total Cost': number
  readonly 'Shared Hit Blocks': number
  readonly 'Shared Read Blocks': number
  readonly Plans?: readonly PlanNode[]
}

/** A session that explains statements. Those that were prepared on it keep the plan they got then. */
export interface PlanSession {
  readonly client: pg.PoolClient
  prepare(name: string, statement: Statement): Promise<void>
  /** Executes the statement in a transaction that begins with `before`, and takes everything back. */
  explain(name: string, statement: Statement, planning: Planning, before?: string): Promise<Plan>
}

/** A few ids may be looked up one by one or as a bitmap. Any other bitmap reads all that an index has. */
const primaryKey = 'events_pkey'

const options = '(analyze, buffers, format json)'

export async function planSession(client: pg.PoolClient): Promise<PlanSession> {
  await client.query('set plan_cache_mode = force_generic_plan')
  return {
    client,
    async prepare(name, { text, values }) {
      await client.query(`prepare ${name} as ${text}`)
      // A prepared statement is planned when it is first executed.
      await client.query('begin')
      await client.query(`execute ${name}${argumentList(values)}`)
      await client.query('rollback')
    },
    async explain(name, { text, values }, planning, before = '') {
      await client.query('begin')
      try {
        await client.query(before)
        const { rows } =
          planning === 'generic'
            ? await client.query<ExplainRow>(`explain ${options} execute ${name}${argumentList(values)}`)
            : await client.query<ExplainRow>(`explain ${options} ${text}`, [...values])
        return readPlan(rows)
      } finally {
        await client.query('rollback')
      }
    },
  }
}

interface ExplainRow {
  readonly 'QUERY PLAN': readonly { readonly Plan: PlanNode }[]
}

function readPlan(rows: readonly ExplainRow[]): Plan {
  const root = rows[0]?.['QUERY PLAN'][0]?.Plan
  if (root === undefined) throw new Error('EXPLAIN returned no plan')
  const indexes: Record<string, string[]> = {}
  const sequential: string[] = []
  const visit = (node: PlanNode, above: string | undefined): void => {
    const isEvents = node['Relation Name'] === 'events'
    // EXPLAIN numbers an alias that occurs several times: e, e_1, e_2.
    const alias = isEvents ? (node.Alias ?? 'events').replace(/_\d+$/, '') : above
    const index = node['Index Name']
    if (isEvents && node['Node Type'] === 'Seq Scan') sequential.push(alias ?? 'events')
    // The index below a bitmap scan names no table, so it belongs to the node above it.
    const bitmap = node['Node Type'] === 'Bitmap Index Scan' && index !== primaryKey
    if (index !== undefined && alias !== undefined)
      (indexes[alias] ??= []).push(bitmap ? `a bitmap of ${index}` : index)
    for (const child of node.Plans ?? []) visit(child, node['Node Type'].startsWith('Bitmap') ? alias : undefined)
  }
  visit(root, undefined)
  return {
    indexes,
    sequential,
    buffers: root['Shared Hit Blocks'] + root['Shared Read Blocks'],
    cost: root['Total Cost'],
    text: JSON.stringify(root, undefined, 1),
  }
}

/** Parameters as literals without a type, which take the type of the parameter. */
function argumentList(values: readonly unknown[]): string {
  return values.length === 0 ? '' : `(${values.map(literal).join(', ')})`
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  return `'${plain(value).replaceAll("'", "''")}'`
}

function plain(value: unknown): string {
  if (Buffer.isBuffer(value)) return `\\x${value.toString('hex')}`
  if (Array.isArray(value)) return `{${value.map(element).join(',')}}`
  return String(value)
}

function element(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  return `"${plain(value).replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}
