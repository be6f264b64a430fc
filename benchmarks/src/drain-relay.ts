import type { Publisher, RelayOptions } from '@inorder/core'
import { openClient, openOutbox } from './server.ts'

export interface RelayDrain {
  readonly events: number
  /** From the end of `start`, with connections and slots at hand, until the last outcome is committed. */
  readonly seconds: number
  /** How long `start` took. */
  readonly startSeconds: number
  readonly cpuSeconds: number
  /** Events in each call of the publisher, in the order of the answers. */
  readonly runs: readonly number[]
  readonly settles: number
  readonly finds: number
  /** Events of the table that are not published. */
  readonly left: number
}

const longestSilenceMs = 30_000

/** Drains a preloaded outbox with one relay of this process and the defaults of the library. */
export async function drainByRelay(
  url: string,
  publisher: Publisher,
  options: Partial<RelayOptions> = {},
): Promise<RelayDrain> {
  await using under = await openOutbox(url)
  const total = await count(url, 'true')
  const runs: number[] = []
  let events = 0
  let settles = 0
  let finds = 0
  let lastAt = 0
  let finish: () => void = () => undefined
  let fail: (reason: Error) => void = () => undefined
  const done = new Promise<void>((resolve, reject) => {
    finish = resolve
    fail = reject
  })
  done.catch(() => undefined)
  const relay = under.outbox.relay({
    publisher,
    ...options,
    onSignal(signal) {
      if (signal.kind === 'published') {
        runs.push(signal.events.length)
      } else if (signal.kind === 'found') finds += 1
      else if (signal.kind === 'settled') {
        settles += 1
        events += signal.published
        lastAt = performance.now()
        if (events >= total) finish()
      } else if (signal.kind === 'fault' || (signal.kind === 'database' && !signal.ok))
        fail(new Error(JSON.stringify(signal), { cause: signal.cause }))
    },
  })
  const cpu = process.cpuUsage()
  const called = performance.now()
  await relay.start()
  const began = performance.now()
  // What does not come is lost, and is counted below.
  lastAt = began
  const watch = setInterval(() => {
    if (performance.now() - lastAt > longestSilenceMs) finish()
  }, 1000)
  await done.finally(() => clearInterval(watch))
  const { user, system } = process.cpuUsage(cpu)
  await relay.stop()
  return {
    events,
    seconds: (lastAt - began) / 1000,
    startSeconds: (began - called) / 1000,
    cpuSeconds: (user + system) / 1e6,
    runs,
    settles,
    finds,
    left: await count(url, "status <> 'published'"),
  }
}

async function count(url: string, where: string): Promise<number> {
  await using client = await openClient(url)
  const { rows } = await client.query<{ count: string }>(`select count(*) from outbox.events where ${where}`)
  return Number(rows[0]?.count)
}
