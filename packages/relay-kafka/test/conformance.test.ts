import { randomBytes } from 'node:crypto'
import { conformanceCases } from '@inorder/conformance'
import { available, startKafka, startProxy } from '@inorder/harness'
import { afterAll, describe, expect, test } from 'vitest'
import { kafkaPublisher, type KafkaPublisherOptions } from '../src/index.ts'
import { observe } from './rig.ts'

const maxMessageBytes = 3_000_000

describe.skipIf(!available('kafka'))('kafkaPublisher keeps the publish contract', async () => {
  // Clients go where the broker says it is, so it has to name the proxy.
  const proxy = await startProxy(1)
  const server = await startKafka({
    advertisedPort: proxy.port,
    settings: { 'message.max.bytes': String(maxMessageBytes) },
  })
  proxy.retarget(server.port)
  const direct = await observe(`127.0.0.1:${proxy.port}`)

  afterAll(async () => {
    await direct[Symbol.asyncDispose]()
    await proxy.close()
    await server.stop()
  })

  describe.each<[string, Omit<KafkaPublisherOptions, 'config'>]>([
    ['with an idempotent producer', {}],
    ['without one', { idempotent: false }],
  ])('%s', (_, options) => {
    const create = (port: number): ReturnType<typeof kafkaPublisher> =>
      kafkaPublisher({ config: { brokers: [`127.0.0.1:${port}`] }, maxEventBytes: 5_000_000, ...options })
    const cases = conformanceCases({
      createPublisher: () => create(proxy.port),
      // Port 1 is reserved and nothing listens there.
      createUnreachablePublisher: () => create(1),
      createTopic: (topic) => direct.createTopic(topic),
      read: (topic) => direct.read(topic),
      poison: (event) => ({ ...event, payload: randomBytes(maxMessageBytes + 1) }),
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
      patienceMs: 20_000,
    })

    for (const { name, run, skipped } of cases) if (skipped === undefined) test(name, run, 60_000)

    test('no case is skipped but the one about a fence, which Kafka has none of', () => {
      const skipped = cases.flatMap((each) => (each.skipped === undefined ? [] : [`${each.name}: ${each.skipped}`]))
      expect(skipped).toEqual(['what was given up on does not land after its successors: its fence is none'])
    })
  })
})
