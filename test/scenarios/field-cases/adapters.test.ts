import type { RunResult } from '@inorder/core'
import { memoryPublisher } from '@inorder/relay-memory'
import { describe, expect, it } from 'vitest'
import { asking, observe } from './observed.ts'
import { json, openScene } from './scene.ts'

describe('an event is published only when the broker has it, and not when its adapter', () => {
  const answers: [string, () => unknown][] = [
    ['answers nothing', () => undefined],
    ['answers with a list of outcomes, one for each event', () => [true, true, true]],
    ['answers for fewer events than it was given', () => ({ acknowledged: 1 })],
    ['answers for more events than it was given', () => ({ acknowledged: 4 })],
    ['answers with outcomes by id', () => ({ '1': 'ok', '2': 'ok', '3': 'ok' })],
    ['counts in text', () => ({ acknowledged: '3' })],
    ['reports success and a failure at once', () => ({ acknowledged: 3, failure: { kind: 'rejected', cause: 'x' } })],
    [
      'throws at once',
      () => {
        throw new Error('a bug')
      },
    ],
    ['rejects', () => Promise.reject(new Error('a bug'))],
  ]

  it.each(answers)('%s', async (_, answer) => {
    await using scene = await openScene()
    const publisher = memoryPublisher(scene.broker)
    let calls = 0
    const { relay, signals, until } = observe(scene, {
      backoffBaseMs: 20,
      publisher: {
        ...publisher,
        // Not async: what it throws is thrown into the relay's own call.
        publish(run, signal) {
          calls += 1
          return calls === 1 ? (answer() as Promise<RunResult>) : publisher.publish(run, signal)
        },
      },
    })
    await scene.enqueue(...[1, 2, 3].map((payload) => ({ topic: 'orders', key: 'k', payload })))
    await relay.start()
    await until(() => signals.some(({ kind }) => kind === 'fault'))
    // Nothing is settled before the fault is told, and nothing of that run afterwards.
    expect(signals.filter(({ kind }) => kind === 'settled')).toEqual([])
    await until(() => relay.counts().published === 3)
    await relay.stop()
    expect(scene.broker.deliveries.map(json)).toEqual([1, 2, 3])
    const { rows } = await scene.pool.query('select distinct status, attempts from outbox.events')
    expect(rows).toEqual([{ status: 'published', attempts: 0 }])
  })

  it('answers for its prefix only: what was not acknowledged is published later, once', async () => {
    await using scene = await openScene()
    let calls = 0
    const publisher = memoryPublisher(scene.broker)
    const relay = scene.relay({
      publisher: asking(publisher, async (run, signal) => {
        calls += 1
        if (calls > 1) return undefined
        await publisher.publish(run.slice(0, 2), signal)
        return { acknowledged: 2, failure: { kind: 'unavailable', cause: new Error('then it went down') } }
      }),
    })
    await scene.enqueue(...[1, 2, 3, 4].map((payload) => ({ topic: 'orders', key: 'k', payload })))
    await relay.drain()
    expect(scene.broker.deliveries.map(json)).toEqual([1, 2, 3, 4])
  })
})
