import { type PostgresServer, startPostgres } from '@inorder/harness'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fromPg } from '../../src/clients/from-pg.ts'
import { OutboxError } from '../../src/contract/errors.ts'
import { type Answer, type RelayStand, relayStand } from '../support/relay-stand.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.stop())

/** A stand whose relays connect as a role without any right. The stand's own pool belongs to the owner. */
interface RoleStand extends RelayStand {
  readonly role: string
  /** Runs statements as the owner. */
  owner(sql: string): Promise<void>
  /** Starts a relay and stops it: resolves with why it refused, or undefined. */
  refusal(options?: { readonly retainPublishedMs?: number }): Promise<OutboxError | undefined>
}

let roles = 0

async function roleStand(answer?: Answer): Promise<RoleStand> {
  const role = `Relay-${String(++roles)}`
  const url = new URL(await server.createDatabase())
  const pools: pg.Pool[] = []
  let asRole = false
  const stand = await relayStand(
    answer,
    {},
    (client) => {
      const roleUrl = new URL(url)
      roleUrl.username = encodeURIComponent(role)
      const pool = new pg.Pool({ connectionString: roleUrl.href, max: 10 })
      pool.on('error', () => undefined)
      pools.push(pool)
      const limited = fromPg(pool)
      return { ...client, connect: () => (asRole ? limited : client).connect() }
    },
    url.href,
  )
  await stand.pool.query(`create role "${role}" login`)
  asRole = true
  return {
    ...stand,
    role,
    async owner(sql) {
      await stand.pool.query(sql)
    },
    async refusal(options = {}) {
      const relay = stand.relay(options)
      try {
        await relay.start()
      } catch (error) {
        if (error instanceof OutboxError) return error
        throw error
      }
      await relay.stop()
      return undefined
    },
    async [Symbol.asyncDispose]() {
      await stand[Symbol.asyncDispose]()
      await Promise.all(pools.map((pool) => pool.end()))
    },
  }
}

/** The statements that an error tells a person to run. */
function advice(error: OutboxError | undefined): string {
  return /runs: (.*;)/s.exec(error?.message ?? '')?.[1] ?? ''
}

/** Everything that the statements of a relay need, by table. */
const needs: Readonly<Record<string, readonly string[]>> = {
  events: ['SELECT', 'UPDATE', 'DELETE'],
  failures: ['SELECT', 'INSERT', 'DELETE'],
  group_topics: ['SELECT', 'INSERT', 'DELETE'],
  holds: ['SELECT'],
  migrations: ['SELECT'],
  relays: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  settings: ['SELECT'],
  slots: ['SELECT', 'INSERT', 'UPDATE'],
}
const each = Object.entries(needs).flatMap(([table, rights]) => rights.map((right) => [table, right] as const))

describe('a relay whose role', () => {
  it('has no rights is refused with every table and right, and works after the statements that the error names', async () => {
    await using stand = await roleStand()
    const refused = await stand.refusal()
    expect(refused).toMatchObject({ code: 'SCHEMA_DENIED', message: expect.stringContaining(stand.role) as string })
    expect(refused?.problems).toEqual(
      Object.entries(needs).map(([table, rights]) => ({
        path: `"outbox".${table}`,
        message: `lacks ${rights.join(', ')}`,
      })),
    )
    await stand.owner(advice(refused))
    await stand.enqueue(
      { payload: 'small' },
      { payload: Buffer.alloc(9000, 'x') },
      { key: 'later', payload: 'later', delayMs: 100 },
    )
    await using relay = stand.relay({ retainPublishedMs: 1 })
    await relay.start()
    await stand.deliveries(3)
    await stand.signal(({ kind }) => kind === 'purged')
    expect(stand.signals.filter(({ kind }) => kind === 'database')).toEqual([])
  })

  it('lacks one right is refused with its name, whichever it is', async () => {
    await using stand = await roleStand()
    await stand.owner(advice(await stand.refusal()))
    expect(await stand.refusal()).toBeUndefined()
    for (const [table, right] of each) {
      await stand.owner(`revoke ${right} on outbox.${table} from "${stand.role}"`)
      expect(await stand.refusal()).toMatchObject({
        code: 'SCHEMA_DENIED',
        problems: [{ path: `"outbox".${table}`, message: `lacks ${right}` }],
      })
      await stand.owner(`grant ${right} on outbox.${table} to "${stand.role}"`)
    }
    await stand.owner(`revoke usage on schema outbox from "${stand.role}"`)
    const refused = await stand.refusal()
    expect(refused?.code).toBe('SCHEMA_DENIED')
    await stand.owner(advice(refused))
    expect(await stand.refusal()).toBeUndefined()
  }, 60_000)

  it('may not delete events is refused unless everything is retained, and rights of its groups count', async () => {
    await using stand = await roleStand()
    await stand.owner(`create role "team of ${stand.role}"; grant "team of ${stand.role}" to "${stand.role}"`)
    await stand.owner(advice(await stand.refusal()).replaceAll(`to "Relay`, `to "team of Relay`))
    await stand.owner(`revoke delete on outbox.events from "team of ${stand.role}"`)
    expect(await stand.refusal()).toMatchObject({ problems: [{ message: 'lacks DELETE' }] })
    expect(await stand.refusal({ retainPublishedMs: 0 })).toMatchObject({ problems: [{ message: 'lacks DELETE' }] })
    expect(await stand.refusal({ retainPublishedMs: Infinity })).toBeUndefined()
  })
})

describe('a right that is taken away from a running relay', () => {
  it.each([
    ['events', 'SELECT', 'find'],
    ['events', 'UPDATE', 'settle'],
    ['slots', 'SELECT', 'ownership'],
    ['relays', 'UPDATE', 'ownership'],
    ['holds', 'SELECT', 'find'],
    ['failures', 'INSERT', 'settle'],
  ])(
    '(%s: %s) is reported with the table, and nothing is lost or overtaken once it is back',
    async (table, right, use) => {
      await using stand = await roleStand((_, tries) =>
        tries === 1 ? { kind: 'rejected', cause: 'not yet' } : undefined,
      )
      await stand.owner(advice(await stand.refusal()))
      await using relay = stand.relay({ leaseMs: 900, backoffBaseMs: 10 })
      await relay.start()
      await stand.enqueue({ payload: '0' })
      await stand.deliveries(1)
      await stand.owner(`revoke ${right} on outbox.${table} from "${stand.role}"`)
      for (let n = 1; n <= 9; n++) await stand.enqueue({ key: `k${String(n % 3)}`, payload: String(n) })
      expect(
        await stand.signal((signal) => signal.kind === 'database' && signal.use === use && !signal.ok),
      ).toMatchObject({ cause: { code: '42501', message: expect.stringContaining(`table ${table}`) as string } })
      expect(relay.health()).toMatchObject({ state: 'running', live: true, database: { ok: false } })
      await stand.owner(`grant ${right} on outbox.${table} to "${stand.role}"`)
      await expect.poll(() => stand.states(), { timeout: 20_000 }).toEqual({ published: 10 })
      await expect.poll(() => relay.health().database.ok, { timeout: 20_000 }).toBe(true)
      const first = stand.delivered.filter((payload, index) => stand.delivered.indexOf(payload) === index)
      for (const key of [0, 1, 2])
        expect(first.filter((payload) => payload !== '0' && Number(payload) % 3 === key)).toEqual(
          [1, 2, 3, 4, 5, 6, 7, 8, 9].filter((n) => n % 3 === key).map(String),
        )
    },
    60_000,
  )
})

describe('row-level security', () => {
  async function standWithRights(): Promise<RoleStand> {
    const stand = await roleStand()
    await stand.owner(advice(await stand.refusal()))
    return stand
  }

  it.each(Object.keys(needs))(
    'of %s that hides its rows from a relay is refused at the start, with table and role',
    async (table) => {
      await using stand = await standWithRights()
      await stand.enqueue(...Array.from({ length: 5 }, (_, n) => ({ payload: String(n) })))
      await stand.owner(`alter table outbox.${table} enable row level security`)
      const refused = await stand.refusal()
      expect(refused).toMatchObject({
        code: 'SCHEMA_HIDDEN',
        message: expect.stringContaining(stand.role) as string,
        problems: [{ path: `"outbox".${table}` }],
      })
      expect(await stand.states()).toEqual({ pending: 5 })
      await stand.owner(advice(refused))
      await stand.relay().drain()
      expect(stand.delivered).toEqual(['0', '1', '2', '3', '4'])
      expect(await stand.states()).toEqual({ published: 5 })
    },
  )

  it.each([
    ['reads nothing', 'for select to R using (false)'],
    ['reads, and writes nothing', 'for select to R using (true)'],
    ['is for another role', 'to postgres using (true)'],
    ['compares with a setting that a relay has not', "to R using (topic = current_setting('app.tenant', true))"],
  ])('with a policy that %s is refused too', async (_, policy) => {
    await using stand = await standWithRights()
    await stand.owner('alter table outbox.events enable row level security')
    await stand.owner(`create policy partial on outbox.events ${policy.replace('R', `"${stand.role}"`)}`)
    expect(await stand.refusal()).toMatchObject({ code: 'SCHEMA_HIDDEN', problems: [{ path: '"outbox".events' }] })
  })

  it('with a restrictive policy beside the one for all rows is refused too', async () => {
    await using stand = await standWithRights()
    await stand.owner('alter table outbox.events enable row level security')
    await stand.owner('create policy everything on outbox.events using (true)')
    expect(await stand.refusal()).toBeUndefined()
    await stand.owner("create policy tenant on outbox.events as restrictive using (topic = 'mine')")
    expect(await stand.refusal()).toMatchObject({ code: 'SCHEMA_HIDDEN' })
  })

  it('stands in nobody’s way who is exempt: a role with BYPASSRLS, and an owner unless it is forced', async () => {
    await using stand = await standWithRights()
    await stand.owner('alter table outbox.events enable row level security')
    await stand.owner(`alter role "${stand.role}" bypassrls`)
    await stand.enqueue({ payload: 'x' })
    await stand.relay().drain()
    expect(stand.delivered).toEqual(['x'])
    await stand.owner(`alter role "${stand.role}" nobypassrls; alter table outbox.events owner to "${stand.role}"`)
    expect(await stand.refusal()).toBeUndefined()
    await stand.owner('alter table outbox.events force row level security')
    expect(await stand.refusal()).toMatchObject({ code: 'SCHEMA_HIDDEN' })
  })
})
