// Runs beside the process that starts servers and outlives it by a moment: its standard input is a pipe from that
// process, and the pipe closes however the process ends, SIGKILL included. Then every server still listed is ended
// and every folder still listed is removed. Nobody else can do that after a SIGKILL.
import { rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { descendantsOf, isAlive, send } from './process-tree.mjs'

// Long enough for an immediate shutdown of PostgreSQL on a busy machine; after it, SIGKILL.
const GRACE_MS = 5_000
const POLL_MS = 20

const servers = new Map()
const folders = new Set()

// One line is one instruction, written by watchdog.ts.
for await (const line of createInterface({ input: process.stdin })) {
  const [verb, value, signal] = JSON.parse(line)
  if (verb === 'server') servers.set(value, signal)
  if (verb === 'forget-server') servers.delete(value)
  if (verb === 'folder') folders.add(value)
  if (verb === 'forget-folder') folders.delete(value)
}

await Promise.all([...servers].map(([pid, signal]) => end(pid, signal)))
for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })

async function end(pid, signal) {
  const tree = [pid, ...descendantsOf(pid)]
  // A stopped process keeps every signal but SIGKILL waiting, so wake the frozen ones first.
  for (const member of tree) send(member, 'SIGCONT')
  // The polite signal first: it lets PostgreSQL give back its shared memory segment, which SIGKILL would leak.
  send(pid, signal)
  const deadline = Date.now() + GRACE_MS
  while (tree.some(isAlive) && Date.now() < deadline) await delay(POLL_MS)
  for (const member of new Set([...tree, ...descendantsOf(pid)])) send(member, 'SIGKILL')
  while (tree.some(isAlive) && Date.now() < deadline + GRACE_MS) await delay(POLL_MS)
}
