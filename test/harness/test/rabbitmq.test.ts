import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { available, startRabbitMq } from '../src/index.ts'
import { isAlive } from '../src/process-tree.mjs'

/** Processes that were started with this text in their environment. */
function processesWith(text: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/environ`, 'utf8').includes(text) ? [Number(name)] : []
    } catch {
      // It has ended, or belongs to somebody else.
      return []
    }
  })
}

describe.skipIf(!available('rabbitmq', { own: true }))('a private RabbitMQ', () => {
  test('answers its own control program, comes back after a kill, and leaves no process behind', async () => {
    const server = await startRabbitMq()
    const { pid, folder } = server
    expect(await server.ctl('status')).toContain(folder)
    await server.kill()
    await server.restart()
    expect(await server.ctl('list_queues')).not.toContain('Error')
    await server.stop()
    expect(isAlive(pid)).toBe(false)
    expect(processesWith(folder)).toEqual([])
  })
})
