import {
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  GetQueueUrlCommand,
  type Message,
  QueueDoesNotExist,
  ReceiveMessageCommand,
  SQSClient,
  type SQSClientConfig,
} from '@aws-sdk/client-sqs'
import { decodeMessage, type SqsMessage } from '../src/index.ts'

export function configFor(endpoint: string): SQSClientConfig {
  return { endpoint, region: 'us-east-1', credentials: { accessKeyId: 'x', secretAccessKey: 'x' } }
}

/** A plain client beside the publisher, that creates queues and consumes them. */
export interface Observer extends AsyncDisposable {
  readonly client: SQSClient
  createQueue(name: string, attributes?: Record<string, string>): Promise<void>
  /** Everything that a queue ever had, as one consumer gets it that deletes what it has. */
  messages(name: string): Promise<readonly Message[]>
  read(name: string): Promise<SqsMessage[]>
}

export function observe(endpoint: string): Observer {
  const client = new SQSClient(configFor(endpoint))
  const consumed = new Map<string, Message[]>()

  async function messages(name: string): Promise<readonly Message[]> {
    const all = consumed.get(name) ?? []
    consumed.set(name, all)
    const QueueUrl = await urlOf(name)
    if (QueueUrl === undefined) return all
    for (;;) {
      const { Messages: got = [] } = await client.send(
        new ReceiveMessageCommand({
          QueueUrl,
          MaxNumberOfMessages: 10,
          MessageAttributeNames: ['All'],
          MessageSystemAttributeNames: ['All'],
        }),
      )
      if (got.length === 0) return all
      all.push(...got)
      const entries = got.map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle }))
      await client.send(new DeleteMessageBatchCommand({ QueueUrl, Entries: entries }))
    }
  }

  /** Undefined for a queue that is not there. */
  async function urlOf(name: string): Promise<string | undefined> {
    try {
      return (await client.send(new GetQueueUrlCommand({ QueueName: name }))).QueueUrl
    } catch (error) {
      if (error instanceof QueueDoesNotExist) return undefined
      throw error
    }
  }

  return {
    client,
    messages,
    async createQueue(name, attributes = {}) {
      await client.send(new CreateQueueCommand({ QueueName: name, Attributes: { FifoQueue: 'true', ...attributes } }))
    },
    read: async (name) => (await messages(name)).map(decodeMessage),
    [Symbol.asyncDispose]: () => {
      client.destroy()
      return Promise.resolve()
    },
  }
}
