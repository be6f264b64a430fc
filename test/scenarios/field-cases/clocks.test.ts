import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { startPostgres } from '@inorder/harness'
import { describe, expect, it, onTestFinished } from 'vitest'
import { observe } from './observed.ts'
import { openScene, type Scene } from './scene.ts'
import type { FromWrongClock, WrongClockOrders } from './wrong-clock-program.ts'

/** Starts the program, which ends with the test at the latest. */
function startWrongClock(orders: WrongClockOrders, onMessage: (message: FromWrongClock) => void): void {
  const program = fork(fileURLToPath(new URL('./wrong-clock-program.ts', import.meta.url)), [JSON.stringify(orders)], {
    cwd: fileURLToPath(new URL('../../../', import.meta.url)),
    execArgv: ['--conditions=@inorder/source', '--import', 'tsx'],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  program.on('message', (message) => {
    onMessage(message as FromWrongClock)
  })
  onTestFinished(async () => {
    program.kill('SIGKILL')
    if (program.exitCode === null && program.signalCode === null) await once(program, 'close')
  })
}

/** Asks the database until the number is not 0: nobody tells when another process has changed it. */
async function eventually(scene: Scene, sql: string): Promise<void> {
  const signal = AbortSignal.timeout(25_000)
  while ((await scene.count(sql)) === 0) signal.throwIfAborted()
}

describe('an application whose clock is wrong', () => {
  it.each([
    ['90 s behind', -90_000],
    ['10 min ahead', 600_000],
  ])('by %s waits, and holds its lease, by the clock of the database all the same', async (_, offsetMs) => {
    await using scene = await openScene()
    const said: FromWrongClock[] = []
    startWrongClock({ databaseUrl: scene.url, offsetMs, leaseMs: 3000 }, (message) => {
      said.push(message)
    })
    const event = (key: string): string => `from outbox.events where key = '${key}'`
    await eventually(scene, `select count(*) from outbox.failures`)
    await eventually(scene, `select count(*) ${event('now')} and status = 'published'`)
    const clock = said.find((message) => message.kind === 'clock')
    const wrongBy = (clock?.now ?? 0) - (await scene.count('select extract(epoch from now()) * 1000'))
    expect(Math.abs(wrongBy)).toBeGreaterThan(60_000)

    // From the statement that wrote it, which is a little later than the beginning of its transaction.
    const later = await scene.count(`select extract(epoch from available_at - created_at) ${event('later')}`)
    expect(later).toBeGreaterThanOrEqual(30)
    expect(later).toBeLessThan(31)
    const wait = await scene.count(
      'select extract(epoch from e.available_at - f.at) from outbox.events e join outbox.failures f on f.event = e.id order by f.at limit 1',
    )
    expect(wait).toBeGreaterThan(0)
    expect(wait).toBeLessThanOrEqual(2)

    // A lease neither ends early nor sticks: it is renewed past its first end, and always ends within its length.
    const left = 'select extract(epoch from expires_at - clock_timestamp()) from outbox.relays'
    const over = `select count(*) from outbox.relays where clock_timestamp() > started_at + interval '4 s'`
    while ((await scene.count(over)) === 0) {
      expect(await scene.count(left)).toBeGreaterThan(0)
      expect(await scene.count(left)).toBeLessThanOrEqual(3)
    }
    expect(said.filter(({ kind }) => kind === 'lease-lost')).toEqual([])
  })
})

describe('a database and an application in other time zones', () => {
  it('agree on every moment, on both sides of a change of the clocks', async () => {
    await using server = await startPostgres({ settings: { timezone: 'America/New_York' } })
    const zone = process.env['TZ']
    process.env['TZ'] = 'Asia/Kolkata'
    onTestFinished(() => {
      // Assigning undefined would make it the text 'undefined'.
      if (zone === undefined) delete process.env['TZ']
      else process.env['TZ'] = zone
    })
    expect(new Date(0).getTimezoneOffset()).toBe(-330)
    await using scene = await openScene({ url: await server.createDatabase() })
    expect(await scene.pool.query('show timezone')).toMatchObject({ rows: [{ TimeZone: 'America/New_York' }] })
    // At 07:00 UTC of that day the clocks of New York go from 2 to 3.
    const moments = ['2031-03-09T06:59:30.000Z', '2031-03-09T07:00:30.000Z'] as const
    for (const [index, moment] of moments.entries())
      await scene.enqueue({ topic: 'orders', key: String(index), payload: moment, availableAt: new Date(moment) })
    const { rows } = await scene.pool.query<{ due: Date; text: string }>(
      `select available_at due, to_char(available_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as text from outbox.events order by id`,
    )
    expect(rows.map(({ due }) => due.toISOString())).toEqual(moments)
    expect(rows.map(({ text }) => text)).toEqual(moments)
    expect(await scene.deliver()).toEqual([])
    // Six years later, as far as these rows are concerned: the first is due, the second in less than a minute.
    // By seconds: an interval of days would be one of calendar days, which the change of the clocks makes shorter.
    await scene.pool.query(
      `update outbox.events set available_at = available_at - extract(epoch from timestamptz '${moments[0]}' - now()) * interval '1 s'`,
    )
    expect((await scene.deliver()).map(({ key }) => key)).toEqual(['0'])
    const due = await scene.count(
      `select extract(epoch from available_at - (select published_at from outbox.events where key = '0')) from outbox.events where key = '1'`,
    )
    expect(due).toBeGreaterThan(30)
    expect(due).toBeLessThanOrEqual(60)
  })

  it('give the publisher the moment at which an event was written', async () => {
    await using scene = await openScene()
    await scene.enqueue({ topic: 'orders', key: 'k', payload: 1 })
    const [delivery] = await scene.deliver()
    const epochMs = await scene.count('select extract(epoch from created_at) * 1000 from outbox.events')
    expect(Math.abs((delivery?.createdAt.getTime() ?? 0) - epochMs)).toBeLessThan(1)
  })

  it('have no column whose moments depend on a time zone', async () => {
    await using scene = await openScene()
    const { rows } = await scene.pool.query<{ data_type: string }>(
      `select distinct data_type from information_schema.columns where table_schema = 'outbox' and data_type like '%time%'`,
    )
    expect(rows.map(({ data_type }) => data_type)).toEqual(['timestamp with time zone'])
  })
})

describe('a time further away than a timer can hold', () => {
  const dayMs = 24 * 3_600_000

  it('is waited for without waking up early, again and again, or with a warning', async () => {
    const warnings: Error[] = []
    const listen = (warning: Error): void => void warnings.push(warning)
    process.on('warning', listen)
    onTestFinished(() => void process.off('warning', listen))
    await using scene = await openScene()
    await scene.enqueue(
      { topic: 'orders', key: 'a', payload: 1, delayMs: 60 * dayMs },
      { topic: 'orders', key: 'b', payload: 1, availableAt: new Date(Date.now() + 400 * dayMs) },
    )
    const { relay, finds, until } = observe(scene, { pollMinMs: 100 })
    await relay.start()
    const at = performance.now()
    await until(() => finds() >= 20)
    // At 100 ms and slowing down; a timer that overflows fires after one.
    expect(performance.now() - at).toBeGreaterThan(1500)
    expect(scene.broker.count).toBe(0)
    expect(warnings).toEqual([])
    await relay.stop()
  })

  it('may be the grace of a stop: what is in flight is waited for', async () => {
    await using scene = await openScene()
    const hang = scene.broker.hang()
    await scene.enqueue({ topic: 'orders', key: 'a', payload: 1 })
    const { relay, until } = observe(scene)
    await relay.start()
    await until(() => hang.hits === 1)
    const stopping = relay.stop({ graceMs: 60 * dayMs })
    hang.end()
    await stopping
    expect(scene.broker.count).toBe(1)
    expect(await scene.count(`select count(*) from outbox.events where status = 'published'`)).toBe(1)
  })
})
