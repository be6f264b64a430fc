import { conformanceCases } from '@inorder/conformance'
import { available, startElasticMq, startFauxqs, startProxy } from '@inorder/harness'
import { afterAll, describe, expect, test } from 'vitest'
import { sqsFifoPublisher, type SqsFifoPublisherOptions } from '../src/index.ts'
import { configFor, observe } from './rig.ts'

type Form = [string, Pick<SqsFifoPublisherOptions, 'format'>]
const attributes: Form = ['attributes', { format: 'attributes' }]
const structured: Form = ['a structured body', { format: 'structured' }]

const emulators = [
  ['ElasticMQ', available('elasticmq'), startElasticMq, [attributes, structured]],
  // It refuses characters above U+FFFF in a body, which SQS takes.
  ['fauxqs', true, startFauxqs, [attributes]],
] as const

describe.each(emulators)('on %s', (_, present, start, forms) => {
  describe.skipIf(!present)('sqsFifoPublisher keeps the publish contract', async () => {
    const server = await start()
    const proxy = await startProxy(server.port)
    const direct = observe(server.endpoint)

    afterAll(async () => {
      await direct[Symbol.asyncDispose]()
      await proxy.close()
      await server.stop()
    })

    describe.each(forms)('with %s', (__, options) => {
      const create = (port: number): ReturnType<typeof sqsFifoPublisher> =>
        sqsFifoPublisher({
          config: configFor(`http://127.0.0.1:${port}`),
          queue: ({ topic }) => `${topic}.fifo`,
          binary: 'base64',
          ...options,
        })
      const cases = conformanceCases({
        createPublisher: () => create(proxy.port),
        // Port 1 is reserved and nothing listens there.
        createUnreachablePublisher: () => create(1),
        createTopic: (topic) => direct.createQueue(`${topic}.fifo`),
        read: (queue) => direct.read(queue),
        // A queue that is not there takes nothing.
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
  })
})
