import { randomUUID } from 'node:crypto'
import {
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  ReceiveMessageCommand,
  SQSClient,
  type SQSClientConfig,
} from '@aws-sdk/client-sqs'
import type { Publisher } from '@inorder/core'
import { type OwnServer, startElasticMq, startKafka, startRabbitMq, startRedis } from '@inorder/harness'
import { decodeRecord, kafkaPublisher } from '@inorder/relay-kafka'
import { decodeMessage as decodeRabbitMq, rabbitMqPublisher } from '@inorder/relay-rabbitmq'
import { decodeEntry, redisStreamsPublisher } from '@inorder/relay-redis-streams'
import { decodeMessage as decodeSqs, sqsFifoPublisher } from '@inorder/relay-sqs-fifo'
import { connect } from 'amqplib'
import { Redis } from 'ioredis'
import kafkajs from 'kafkajs'

export interface Arrival {
  readonly eventId: string
  readonly key: string | null
}

/** A private broker, a publisher to its destination `orders`, and what arrived there. */
export interface Destination {
  readonly server: OwnServer
  readonly publisher: Publisher
  /** Everything that a consumer gets, in its order. Called once, at the end. */
  readonly arrivals: () => Promise<Arrival[]>
}

export async function redisDestination(): Promise<Destination> {
  const server = await startRedis({ appendOnly: true })
  return {
    server,
    publisher: redisStreamsPublisher({ connection: server.url }),
    async arrivals() {
      const redis = new Redis(server.url)
      const entries = await redis.xrangeBuffer('orders', '-', '+')
      redis.disconnect()
      return entries.map(([, fields]) => decodeEntry(fields))
    },
  }
}

export async function kafkaDestination(): Promise<Destination> {
  const server = await startKafka()
  const kafka = new kafkajs.Kafka({ brokers: [server.broker], logLevel: kafkajs.logLevel.NOTHING })
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic: 'orders', numPartitions: 3 }] })
  await admin.disconnect()
  return {
    server,
    publisher: kafkaPublisher({ config: { brokers: [server.broker] } }),
    async arrivals() {
      await admin.connect()
      const ends = await admin.fetchTopicOffsets('orders')
      await admin.disconnect()
      const open = new Map(ends.filter(({ high }) => high !== '0').map(({ partition, high }) => [partition, high]))
      const found: Arrival[] = []
      const consumer = kafka.consumer({ groupId: randomUUID() })
      await consumer.connect()
      await consumer.subscribe({ topic: 'orders', fromBeginning: true })
      await new Promise<void>((resolve, reject) => {
        consumer.on('consumer.crash', ({ payload }) => {
          if (!payload.restart) reject(payload.error)
        })
        void consumer.run({
          eachMessage({ partition, message }) {
            found.push(decodeRecord(message))
            if (BigInt(message.offset) + 1n >= BigInt(open.get(partition) ?? 0)) open.delete(partition)
            if (open.size === 0) resolve()
            return Promise.resolve()
          },
        })
      })
      await consumer.disconnect()
      return found
    },
  }
}

export async function rabbitMqDestination(): Promise<Destination> {
  const server = await startRabbitMq()
  const model = await connect(server.url)
  const channel = await model.createChannel()
  // Not a quorum queue: RabbitMQ 3.10 elects no leader for one of a single node that was killed.
  await channel.assertQueue('orders', { durable: true })
  await model.close()
  return {
    server,
    publisher: rabbitMqPublisher({ url: server.url, exchange: '' }),
    async arrivals() {
      const reader = await connect(server.url)
      const reading = await reader.createChannel()
      const found: Arrival[] = []
      for (;;) {
        const message = await reading.get('orders', { noAck: true })
        if (message === false) break
        found.push(decodeRabbitMq(message))
      }
      await reader.close()
      return found
    },
  }
}

export async function sqsDestination(): Promise<Destination> {
  const server = await startElasticMq()
  const config: SQSClientConfig = {
    endpoint: server.endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'x', secretAccessKey: 'x' },
  }
  const client = new SQSClient(config)
  const { QueueUrl } = await client.send(
    new CreateQueueCommand({ QueueName: 'orders.fifo', Attributes: { FifoQueue: 'true' } }),
  )
  return {
    server,
    publisher: sqsFifoPublisher({ config, queue: 'orders.fifo' }),
    async arrivals() {
      const found: Arrival[] = []
      for (;;) {
        const { Messages: got = [] } = await client.send(
          new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10, MessageAttributeNames: ['All'] }),
        )
        if (got.length === 0) break
        found.push(...got.map(decodeSqs))
        const entries = got.map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle }))
        await client.send(new DeleteMessageBatchCommand({ QueueUrl, Entries: entries }))
      }
      client.destroy()
      return found
    },
  }
}
