import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { RelayCommand, RelayOrders, RelayReport } from './relay-child.ts'

type Stopped = Extract<RelayReport, { kind: 'stopped' }>
type Memory = Extract<RelayReport, { kind: 'memory' }>

/** A relay in a process of its own. */
export interface RelayMember {
  readonly owned: number
  memory(): Promise<Memory>
  /** A clean stop; the process ends afterwards. */
  stop(): Promise<Stopped>
  /** SIGKILL. Resolves when the process is gone. */
  kill(): Promise<void>
}

const slotCount = 256
const checkMs = 20

async function startMember(orders: RelayOrders): Promise<RelayMember> {
  const child = fork(fileURLToPath(new URL('relay-child.ts', import.meta.url)), [JSON.stringify(orders)], {
    execArgv: [...process.execArgv, '--expose-gc'],
  })
  let owned = 0
  child.on('message', (report: RelayReport) => {
    if (report.kind === 'slots') owned = report.owned
  })
  const exited = once(child, 'exit')
  async function ask<T extends RelayReport>(command: RelayCommand, kind: T['kind']): Promise<T> {
    const answer = reportOf<T>(child, kind)
    child.send(command)
    return Promise.race([answer, exited.then(() => Promise.reject(new Error('the relay process ended by itself')))])
  }
  return {
    get owned() {
      return owned
    },
    memory: () => ask<Memory>('memory', 'memory'),
    async stop() {
      const stopped = await ask<Stopped>('stop', 'stopped')
      await exited
      return stopped
    },
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** Starts so many relays and resolves when each owns its share of the slots. */
export async function startCrew(count: number, orders: RelayOrders): Promise<RelayMember[]> {
  const crew = await Promise.all(Array.from({ length: count }, () => startMember(orders)))
  const share = Math.floor(slotCount / count)
  while (crew.some(({ owned }) => owned < share || owned > share + 1)) await pause(checkMs)
  return crew
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function reportOf<T extends RelayReport>(child: ChildProcess, kind: T['kind']): Promise<T> {
  return new Promise((resolve) => {
    const listener = (report: RelayReport): void => {
      if (report.kind !== kind) return
      child.off('message', listener)
      resolve(report as T)
    }
    child.on('message', listener)
  })
}
