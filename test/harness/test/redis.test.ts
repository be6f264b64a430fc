import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { available, startRedis } from '../src/index.ts'
import { isAlive } from '../src/process-tree.mjs'
import { until } from '../src/until.ts'

/** Sends inline commands and returns everything the server says until it hangs up. */
async function ask(port: number, ...commands: string[]): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.write(`${[...commands, 'QUIT'].join('\r\n')}\r\n`)
  return text(socket)
}

describe.skipIf(!available('redis', { own: true }))('a private Redis', () => {
  test('a stopped server leaves no process and no folder', async () => {
    const server = await startRedis()
    const { pid, folder } = server
    expect(existsSync(folder)).toBe(true)
    await server.stop()
    expect(isAlive(pid)).toBe(false)
    expect(existsSync(folder)).toBe(false)
  })

  test('with appendOnly, entries survive a clean restart and a kill, on the same port', async () => {
    await using server = await startRedis({ appendOnly: true })
    await ask(server.port, 'SET kept 1')
    await server.restart()
    expect(await ask(server.port, 'GET kept')).toContain('$1\r\n1\r\n')
    await ask(server.port, 'SET kept 2')
    await server.kill()
    await server.restart()
    expect(await ask(server.port, 'GET kept')).toContain('$1\r\n2\r\n')
  })

  test('a replica gets what its primary has', async () => {
    await using primary = await startRedis()
    await using replica = await startRedis({ replicaOf: primary.port })
    await ask(primary.port, 'SET kept 1')
    const copied = await until(
      async () => {
        const answer = await ask(replica.port, 'GET kept')
        if (!answer.includes('$1\r\n1')) throw new Error(`The replica answered ${answer}`)
        return answer
      },
      { timeoutMs: 20_000 },
    )
    expect(copied).toContain('1')
  })

  test('a paused server answers when it is resumed', async () => {
    await using server = await startRedis()
    server.pause()
    const answer = ask(server.port, 'PING')
    server.resume()
    expect(await answer).toContain('+PONG')
  })

  test('a start that fails shows what the server said', async () => {
    await expect(startRedis({ config: { maxmemory: 'plenty' } })).rejects.toThrow(/argument must be a memory value/)
  })
})
