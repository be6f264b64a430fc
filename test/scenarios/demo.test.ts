import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { lastJson, startProgram } from './run-program.ts'

const minute = 60_000
const held = { P1: true, P2: true, P3: true, P4: true, P5: true, P7: true }

test('the demo breaks its broker and a relay, and every promise holds', { timeout: 5 * minute }, async () => {
  const end = await startProgram('tools/demo.ts', ['--seconds', '4', '--json']).end
  expect(end, end.stderr).toMatchObject({ how: 0 })
  const figures = lastJson(end)
  expect(figures).toMatchObject({ ok: true, lost: 0, outOfOrder: 0, unexplained: 0, promises: held })
  expect(figures.published).toBe(figures.written)
  expect(figures.written).toBeGreaterThan(10)
  // The killed relay had a run that the broker has and the database does not know of.
  expect(figures.duplicates).toBeGreaterThan(0)
  // All of what happens is told on the other stream, without colours, because nobody looks at a terminal.
  expect(end.stdout.trimEnd().split('\n')).toHaveLength(1)
  expect(end.stderr).toMatch(/fault +the broker takes nothing/)
  expect(end.stderr).not.toContain('\u001b[')
})

test('Ctrl-C in the middle leaves no process and no folder', { timeout: 5 * minute }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'demo-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  // As root the server runs as somebody else, who must be able to enter.
  await chmod(folder, 0o755)
  const demo = startProgram('tools/demo.ts', ['--seconds', '60'], { ...process.env, TMPDIR: folder })
  await new Promise<void>((resolve) => {
    demo.process.stdout?.on('data', (chunk: Buffer) => {
      if (chunk.toString().includes('delivered')) resolve()
    })
  })
  const family = descendantsOf(demo.process.pid ?? 0)
  // PostgreSQL with its children, the watchdog and a relay at least.
  expect(family.length).toBeGreaterThan(3)
  expect(serverFolders(folder)).not.toEqual([])

  demo.process.kill('SIGINT')
  const end = await demo.end
  expect(end, end.stderr).toMatchObject({ how: 130 })
  expect(serverFolders(folder)).toEqual([])
  // The watchdog of the servers notices the end of its process a moment later, and has nothing left to do.
  await expect.poll(() => family.filter(isAlive), { timeout: minute / 4 }).toEqual([])
})

test('a wrong option is refused with exit code 2', { timeout: minute }, async () => {
  const end = await startProgram('tools/demo.ts', ['--seconds', 'soon']).end
  expect(end).toMatchObject({ how: 2, stdout: '' })
  expect(end.stderr).toContain('--seconds')
})

function serverFolders(folder: string): string[] {
  return readdirSync(folder).filter((name) => name.startsWith('inorder-'))
}

function descendantsOf(pid: number): number[] {
  const table = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
  const parents = table
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
  const childrenOf = (parent: number): number[] => parents.flatMap(([child = 0, of]) => (of === parent ? [child] : []))
  const found = childrenOf(pid)
  for (const child of found) found.push(...childrenOf(child))
  return found
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
