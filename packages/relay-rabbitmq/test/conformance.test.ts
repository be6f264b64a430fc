import { conformanceCases } from '@inorder/conformance'
import { available, startProxy, startRabbitMq } from '@inorder/harness'
import { afterAll, describe, expect, test } from 'vitest'
import { rabbitMqPublisher } from '../src/index.ts'
import { observe } from './rig.ts'

describe.skipIf(!available('rabbitmq'))('rabbitMqPublisher keeps the publish contract', async () => {
  const server = await startRabbitMq()
  const proxy = await startProxy(server.port)
  const direct = await observe(server.url)

  afterAll(async () => {
    await direct[Symbol.asyncDispose]()
    await proxy.close()
    await server.stop()
  })

  const create = (port: number): ReturnType<typeof rabbitMqPublisher> =>
    rabbitMqPublisher({ url: `amqp://guest:guest@127.0.0.1:${port}?heartbeat=2`, exchange: '' })

  const cases = conformanceCases({
    createPublisher: () => create(proxy.port),
    // Port 1 is reserved and nothing listens there.
    createUnreachablePublisher: () => create(1),
    createTopic: (topic) => direct.createQueue(topic),
    read: (queue) => direct.read(queue),
    // A queue that is not there takes nothing, and says so without closing anything.
    poison: (event) => ({ ...event, topic: `${event.topic}-missing` }),
    loseAcknowledgements() {
      proxy.dropReplies = true
      return () => {
        proxy.dropReplies = false
        proxy.reset()
      }
    },
    stall() {
      server.pause()
      return () => server.resume()
    },
    patienceMs: 15_000,
  })

  for (const { name, run } of cases) test(name, run, 60_000)

  test('no case is skipped', () => {
    expect(cases.flatMap(({ name, skipped }) => (skipped === undefined ? [] : [`${name}: ${skipped}`]))).toEqual([])
  })
})
