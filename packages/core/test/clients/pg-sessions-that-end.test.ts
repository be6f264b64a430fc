import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { freshDatabase } from '@inorder/harness'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { fromPg } from '../../src/clients/from-pg.ts'

const readyForQuery = Buffer.from([0x5a, 0, 0, 0, 5, 0x49])
const terminated = errorResponse('SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0')

function errorResponse(fields: string): Buffer {
  const header = Buffer.from([0x45, 0, 0, 0, 0])
  header.writeInt32BE(4 + fields.length, 1)
  return Buffer.concat([header, Buffer.from(fields)])
}

/** Passes everything on to the server, which seems to end each new session in the same breath in which it is ready. */
async function hastyServer(url: string): Promise<{ server: Server; url: string }> {
  const { hostname, port } = new URL(url)
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    client.on('error', () => undefined)
    upstream.on('error', () => undefined)
    client.pipe(upstream)
    upstream.on('data', (piece: Buffer) => {
      if (piece.subarray(-readyForQuery.length).equals(readyForQuery)) {
        client.end(Buffer.concat([piece, terminated]))
        upstream.destroy()
      } else client.write(piece)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const through = new URL(url)
  through.port = String((server.address() as AddressInfo).port)
  return { server, url: through.href }
}

describe('a session that the server ends as soon as it is there', () => {
  it('fails its transaction or says that it ended, and does not end the process', async () => {
    const { server, url } = await hastyServer(await freshDatabase())
    const pool = new pg.Pool({ connectionString: url, max: 2 })
    pool.on('error', () => undefined)
    const client = fromPg(pool)
    await expect(client.transaction(pool, () => Promise.resolve())).rejects.toThrow()
    const connection = await client.connect()
    expect(await connection.ended).toBeInstanceOf(Error)
    await connection.close()
    await pool.end()
    server.close()
  })
})
