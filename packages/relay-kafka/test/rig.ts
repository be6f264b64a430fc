import { randomUUID } from 'node:crypto'
import kafkajs, { type Admin, type KafkaMessage } from 'kafkajs'
import { decodeRecord, type KafkaRecord } from '../src/index.ts'

const { Kafka, logLevel } = kafkajs

/** A plain client beside the publisher, to look at the cluster and to change it. */
export interface Observer extends AsyncDisposable {
  readonly admin: Admin
  /** Creates a topic of so many partitions and waits for its leaders. */
  createTopic(topic: string, partitions?: number, config?: Record<string, string>): Promise<void>
  /** All records of a topic, partition by partition. */
  messages(topic: string): Promise<KafkaMessage[]>
  read(topic: string): Promise<KafkaRecord[]>
}

export async function observe(broker: string): Promise<Observer> {
  const kafka = new Kafka({
    brokers: [broker],
    logLevel: logLevel.NOTHING,
    retry: { retries: 10, initialRetryTime: 50 },
  })
  const admin = kafka.admin()
  await admin.connect()

  async function messages(topic: string): Promise<KafkaMessage[]> {
    const ends = await admin.fetchTopicOffsets(topic)
    const wanted = new Map(
      ends.flatMap(({ partition, high, low }) => (high === low ? [] : [[partition, BigInt(high)]])),
    )
    const found = ends.map((): KafkaMessage[] => [])
    if (wanted.size === 0) return []
    const consumer = kafka.consumer({ groupId: randomUUID(), retry: { retries: 10, initialRetryTime: 50 } })
    await consumer.connect()
    try {
      await consumer.subscribe({ topic, fromBeginning: true })
      await new Promise<void>((resolve, reject) => {
        consumer.on('consumer.crash', ({ payload }) => {
          if (!payload.restart) reject(payload.error)
        })
        const eachMessage = ({ partition, message }: { partition: number; message: KafkaMessage }): Promise<void> => {
          found[partition]?.push(message)
          if (BigInt(message.offset) + 1n >= (wanted.get(partition) ?? 0n)) wanted.delete(partition)
          if (wanted.size === 0) resolve()
          return Promise.resolve()
        }
        consumer.run({ eachMessage }).catch(reject)
      })
    } finally {
      await consumer.disconnect()
    }
    return found.flat()
  }

  return {
    admin,
    messages,
    async createTopic(topic, partitions = 3, config = {}) {
      const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }))
      await admin.createTopics({ topics: [{ topic, numPartitions: partitions, configEntries }] })
    },
    read: async (topic) => (await messages(topic)).map(decodeRecord),
    [Symbol.asyncDispose]: () => admin.disconnect(),
  }
}
