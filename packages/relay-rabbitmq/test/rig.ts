import { type Channel, type ChannelModel, connect } from 'amqplib'
import { decodeMessage, type RabbitMqMessage } from '../src/index.ts'

/** A plain client beside the publisher, that declares queues and consumes them. */
export interface Observer extends AsyncDisposable {
  readonly model: ChannelModel
  readonly channel: Channel
  /** Declares a durable queue; the default exchange brings it what has its name as the routing key. */
  createQueue(name: string, options?: Record<string, unknown>): Promise<void>
  /** Everything that a queue ever had, as one consumer gets it. */
  read(queue: string): Promise<RabbitMqMessage[]>
}

export async function observe(url: string): Promise<Observer> {
  const model = await connect(url)
  model.on('error', () => undefined)
  const channel = await model.createChannel()
  const consumed = new Map<string, RabbitMqMessage[]>()
  return {
    model,
    channel,
    async createQueue(name, options = {}) {
      await channel.assertQueue(name, { durable: true, arguments: { 'x-queue-type': 'quorum' }, ...options })
    },
    async read(queue) {
      const all = consumed.get(queue) ?? []
      consumed.set(queue, all)
      // A queue that is not there closes the channel that asks for it, and has nothing.
      const own = await model.createChannel()
      own.on('error', () => undefined)
      try {
        for (;;) {
          const message = await own.get(queue, { noAck: true })
          if (message === false) break
          all.push(decodeMessage(message))
        }
        await own.close()
      } catch (error) {
        if ((error as { code?: number }).code !== 404) throw error
      }
      return all
    },
    [Symbol.asyncDispose]: () => model.close(),
  }
}
