import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { available } from '../src/index.ts'
import { descendantsOf, isAlive } from '../src/process-tree.mjs'
import { until } from '../src/until.ts'

interface Started {
  pid: number
  folder: string
}

const script = fileURLToPath(new URL('./server-parent.ts', import.meta.url))

async function startParent(mode: string): Promise<{ parent: ChildProcess; servers: Started[] }> {
  const parent = spawn(process.execPath, ['--import', 'tsx', script, mode], { stdio: ['ignore', 'pipe', 'inherit'] })
  for await (const line of createInterface({ input: parent.stdout })) {
    return { parent, servers: JSON.parse(line) as Started[] }
  }
  throw new Error('The parent script ended without starting its servers.')
}

describe.skipIf(!available('redis', { own: true }))('servers end with the process that started them', () => {
  test.each([
    ['killed', 'run', 'SIGKILL'],
    ['terminated', 'run', 'SIGTERM'],
    ['interrupted', 'run', 'SIGINT'],
    ['killed while its servers are frozen', 'freeze', 'SIGKILL'],
    ['finished without stopping them', 'finish', undefined],
  ] as const)('a parent that is %s leaves no process and no folder', async (_, mode, signal) => {
    const { parent, servers } = await startParent(mode)
    expect(servers).toHaveLength(2)
    const processes = servers.flatMap(({ pid }) => [pid, ...descendantsOf(pid)])
    if (signal !== undefined) {
      expect(processes.every(isAlive)).toBe(true)
      parent.kill(signal)
    }
    await until(
      () => {
        const left = processes.filter(isAlive)
        const folders = servers.map(({ folder }) => folder).filter(existsSync)
        if (left.length + folders.length > 0) throw new Error(`Left: ${[...left, ...folders].join(' ')}`)
      },
      { timeoutMs: 20_000 },
    )
    expect(parent.exitCode ?? parent.signalCode).toBe(signal ?? 0)
  })
})
