import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createOutbox, fromPg } from '@inorder/core'
import pg from 'pg'
import { liveWithParent, readOrders, tellParent } from '../../stand/parent-channel.ts'

// The API of a shop in a process of its own, as an application writes it: POST /orders/7 writes the order and its event
// in one transaction and answers 201, or 503 when that could not be.

export interface ApiOrders {
  readonly databaseUrl: string
  /** Whether the process dies as soon as a COMMIT was answered, before it can tell anybody. */
  readonly dieAfterCommit: boolean
}

export interface FromApi {
  readonly port: number
}

liveWithParent()
const { databaseUrl, dieAfterCommit } = readOrders() as ApiOrders
const pool = new pg.Pool({ connectionString: databaseUrl, max: 4 })
pool.on('error', () => undefined)
const outbox = createOutbox({ client: fromPg(pool) })

async function place(id: number): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query('insert into orders (id) values ($1)', [id])
    await outbox.enqueue(client, { topic: 'orders', key: `order-${String(id)}`, type: 'order.placed', payload: { id } })
    await client.query('commit')
    if (dieAfterCommit) process.kill(process.pid, 'SIGKILL')
    client.release()
  } catch (error) {
    client.release(true)
    throw error
  }
}

const server = createServer((request, response) => {
  place(Number(request.url?.split('/').at(-1))).then(
    () => response.writeHead(201).end(),
    () => response.writeHead(503).end(),
  )
})
server.listen(0, '127.0.0.1', () => {
  void tellParent({ port: (server.address() as AddressInfo).port } satisfies FromApi)
})
