import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { startPostgres } from '@inorder/harness'
import { describe, expect, it } from 'vitest'
import { observe } from './observed.ts'
import type { ApiOrders, FromApi } from './orders-api-program.ts'
import { json, openScene } from './scene.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const program = fileURLToPath(new URL('./orders-api-program.ts', import.meta.url))

interface Api extends AsyncDisposable {
  /** The status of the answer; rejects when there is none. */
  post(order: number): Promise<number>
  /** The exit code, or the signal that ended it. */
  readonly end: Promise<number | string | null>
}

/** Starts the API of a shop; resolves when it listens. */
async function startApi(orders: ApiOrders): Promise<Api> {
  const child: ChildProcess = fork(program, [JSON.stringify(orders)], {
    cwd: root,
    execArgv: ['--conditions=@inorder/source', '--import', 'tsx'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const end = once(child, 'close').then(([code, signal]) => (signal ?? code) as number | string | null)
  const [{ port }] = (await once(child, 'message')) as [FromApi]
  return {
    async post(order) {
      const answer = await fetch(`http://127.0.0.1:${String(port)}/orders/${String(order)}`, { method: 'POST' })
      return answer.status
    },
    end,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await end
    },
  }
}

const orders = 'select count(*) from orders'
const events = 'select count(*) from outbox.events'

describe('a process that dies right after its COMMIT', () => {
  it('leaves an event that a relay elsewhere finds by itself, once', async () => {
    await using scene = await openScene()
    const { relay, until } = observe(scene)
    await relay.start()
    await until(() => relay.health().sinceLastFindMs !== undefined)
    await using api = await startApi({ databaseUrl: scene.url, dieAfterCommit: true })
    await expect(api.post(7)).rejects.toThrow()
    expect(await api.end).toBe('SIGKILL')
    expect(await scene.count(orders)).toBe(1)
    await until(() => relay.counts().published === 1)
    await relay.stop()
    expect(scene.broker.deliveries.map(json)).toEqual([{ id: 7 }])
  })
})

describe('a database that is down when the request comes', () => {
  it('is a 503 to the client; nothing is written, so there is no event to lose, and the next request is served', async () => {
    await using server = await startPostgres()
    await using scene = await openScene({ url: await server.createDatabase() })
    await using api = await startApi({ databaseUrl: scene.url, dieAfterCommit: false })
    expect(await api.post(1)).toBe(201)
    await server.kill()
    // Once over the connection that broke, and once where none can be had.
    expect([await api.post(2), await api.post(3)]).toEqual([503, 503])
    await server.restart()
    expect([await scene.count(orders), await scene.count(events)]).toEqual([1, 1])
    expect(await api.post(4)).toBe(201)
    expect((await scene.deliver()).map(json)).toEqual([{ id: 1 }, { id: 4 }])
    expect(await scene.count(orders)).toBe(2)
  })
})
