// Plain JavaScript, because the watchdog runs it without any TypeScript loader. Types are in process-tree.d.mts.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** Linux only: the fields of /proc/<pid>/stat behind the name, which may itself contain spaces and brackets. */
function linuxStat(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state, parent: Number(parent) }
  } catch {
    // The process ended between the listing and the read.
    return undefined
  }
}

function allProcesses() {
  if (process.platform === 'linux') {
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
    return pids.flatMap((name) => {
      const stat = linuxStat(name)
      return stat === undefined ? [] : [{ pid: Number(name), parent: stat.parent }]
    })
  }
  const listing = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
  return listing
    .trim()
    .split('\n')
    .map((line) => {
      const [pid, parent] = line.trim().split(/\s+/).map(Number)
      return { pid, parent }
    })
}

// PostgreSQL gives every backend its own session, so signalling the process group would miss them all.
export function descendantsOf(pid) {
  const everyone = allProcesses()
  const found = []
  const open = [pid]
  while (open.length > 0) {
    const parent = open.pop()
    for (const candidate of everyone) {
      if (candidate.parent !== parent) continue
      found.push(candidate.pid)
      open.push(candidate.pid)
    }
  }
  return found
}

export function isAlive(pid) {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return error.code === 'EPERM'
  }
  // A zombie still has its pid. It is gone for us: in a container whose first process never reaps, it stays forever.
  return process.platform !== 'linux' || linuxStat(pid)?.state !== 'Z'
}

export function send(pid, signal) {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}
