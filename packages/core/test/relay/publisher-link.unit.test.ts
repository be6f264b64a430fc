import { describe, expect, it } from 'vitest'
import type { Publisher } from '../../src/contract/publisher.ts'
import { createPublisherLink, type PublisherLink } from '../../src/relay/publisher-link.ts'
import { gate } from '../support/gate.ts'
import { testPublisher } from '../support/test-publisher.ts'
import { createWatch } from '../support/watch.ts'

interface Bench {
  readonly link: PublisherLink
  /** `connect` and `close` in the order in which they were called. */
  readonly calls: string[]
  /** Resolves when `connect` succeeded so many times. */
  readonly ready: (times: number) => Promise<unknown>
  /** Resolves when the publisher was told so many things. */
  readonly told: (calls: number) => Promise<unknown>
}

function bench(changes: Partial<Pick<Publisher, 'connect' | 'close'>> = {}): Bench {
  const calls: string[] = []
  const { changed, until } = createWatch()
  let times = 0
  const broker = testPublisher(() => ({ acknowledged: 0 }), changes)
  const link = createPublisherLink({
    publisher: testPublisher(() => ({ acknowledged: 0 }), {
      connect(signal) {
        calls.push('connect')
        changed()
        return broker.connect(signal)
      },
      close() {
        calls.push('close')
        changed()
        return broker.close()
      },
    }),
    timeoutMs: 10_000,
    emit: changed,
    onReady() {
      times += 1
      changed()
    },
    onStuck: changed,
  })
  return {
    link,
    calls,
    ready: (count) => until(() => (times >= count ? times : undefined)),
    told: (count) => until(() => (calls.length >= count ? calls : undefined)),
  }
}

describe('the connection to a broker', () => {
  it('is replaced for a publish that hangs, but not again for another one of the connection before', async () => {
    const { link, calls, ready } = bench()
    link.start()
    await ready(1)
    const before = link.generation
    link.replace(new Error('the first that hung'), before)
    await ready(2)
    link.replace(new Error('the second that hung'), before)
    expect([link.state, link.generation]).toEqual(['ready', before + 1])
    expect(calls).toEqual(['connect', 'close', 'connect'])
    link.replace(new Error('one of the new connection'), link.generation)
    await ready(3)
    expect(calls).toEqual(['connect', 'close', 'connect', 'close', 'connect'])
  })

  it('is replaced once for two publishes that hang at the same time', async () => {
    const { link, calls, ready } = bench()
    link.start()
    await ready(1)
    for (const each of ['first', 'second']) link.replace(new Error(each), 1)
    await ready(2)
    expect(calls).toEqual(['connect', 'close', 'connect'])
  })

  it('that comes about only after the end is closed, because nobody else would', async () => {
    const connected = gate()
    const { link, calls, told } = bench({ connect: () => connected.opened })
    link.start()
    await told(1)
    await link.close()
    expect(calls).toEqual(['connect', 'close'])
    connected.open()
    await told(3)
    expect(calls).toEqual(['connect', 'close', 'close'])
    expect(link.state).toBe('closed')
  })

  it('is told to come about no more when the end comes, and is not tried again', async () => {
    let aborted = false
    const { link, calls } = bench({
      connect: (signal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            aborted = true
            reject(new Error('given up'))
          })
        }),
    })
    link.start()
    await link.close()
    expect(aborted).toBe(true)
    expect(calls).toEqual(['connect', 'close'])
  })
})
