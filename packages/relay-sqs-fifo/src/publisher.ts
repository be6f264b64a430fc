import {
  coalesce,
  type Failure,
  type Finding,
  firstAbort,
  type Health,
  type OutboxEvent,
  type Publisher,
  type PublisherCapabilities,
  type Receipt,
  type Rejection,
  type RunResult,
  type Submit,
} from '@inorder/core'
import {
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  ListQueuesCommand,
  type MessageAttributeValue,
  SendMessageBatchCommand,
  type SendMessageBatchRequestEntry,
  type SQSClient,
} from '@aws-sdk/client-sqs'
import { entryFailure, failureOf, findingsOf } from './failure.ts'
import { type SqsFifoPublisherOptions, type Settings, settingsOf } from './options.ts'
import { type Entry, entryOf } from './record.ts'

const entriesOfABatch = 10
const bytesOfABatch = 1_048_576
/** For how long SQS drops a message whose deduplication id it has seen. */
const dedupeWindowMs = 300_000

interface Connection {
  readonly client: SQSClient
  readonly end: () => void
  readonly closing: AbortController
  readonly urls: Map<string, Promise<string>>
  readonly lanes: Map<string, Submit<Pending, Sent>>
  /** Batches on their way. */
  readonly sending: Set<Promise<unknown>>
}

interface Pending {
  readonly entry: Entry
  readonly signal: AbortSignal
}

type Sent = { readonly receipt: Receipt } | { readonly failure: Failure }

/**
 * A publisher for Amazon SQS FIFO queues. An acknowledgement means that SQS has stored the message.
 *
 * @throws OutboxError OPTIONS_INVALID, naming every option that is wrong.
 *
 * @example
 * const publisher = sqsFifoPublisher({ config: { region: 'eu-central-1' }, queue: 'orders.fifo' })
 */
export function sqsFifoPublisher(options: SqsFifoPublisherOptions): Publisher {
  const settings: Settings = settingsOf(options)
  let current: Connection | undefined

  const capabilities: PublisherCapabilities = {
    maxEventBytes: settings.maxEventBytes,
    maxRun: settings.maxRun,
    order: settings.oneGroup ? 'total' : 'key',
    dedupe: { by: 'broker', windowMs: dedupeWindowMs },
    // Whatever lands late has the deduplication id of an event that is there already.
    fence: 'takeover',
    tombstones: settings.binary === 'base64',
    headers: true,
    confirms: 'durable',
  }

  function messageOf(event: OutboxEvent): Entry | Rejection {
    const entry = entryOf(event, settings.format, settings.binary, settings.oneGroup)
    if ('reason' in entry || entry.bytes <= settings.maxEventBytes) return entry
    return { reason: `The message has ${entry.bytes} bytes, maxEventBytes is ${settings.maxEventBytes}` }
  }

  function laneOf(connection: Connection, queue: string): Submit<Pending, Sent> {
    const existing = connection.lanes.get(queue)
    if (existing !== undefined) return existing
    // A batch never has two messages of a group: a call sends its events one after another, and no other call has the
    // group. AWS promises nothing about the entries behind one that failed.
    const lane = coalesce<Pending, Sent>({
      maxItems: settings.oneGroup ? 1 : entriesOfABatch,
      maxSize: bytesOfABatch,
      sizeOf: ({ entry }) => entry.bytes,
      concurrency: settings.oneGroup ? 1 : settings.concurrency,
      send(batch) {
        const sending = sendBatch(connection, queue, batch).finally(() => connection.sending.delete(sending))
        connection.sending.add(sending)
        return sending
      },
    })
    connection.lanes.set(queue, lane)
    return lane
  }

  async function sendBatch(connection: Connection, queue: string, batch: readonly Pending[]): Promise<Sent[]> {
    const limit = firstAbort([connection.closing.signal, ...batch.map(({ signal }) => signal)])
    try {
      const url = await urlOf(connection, queue, limit.signal)
      const command = new SendMessageBatchCommand({ QueueUrl: url, Entries: batch.map(requestOf) })
      const { Successful = [], Failed = [] } = await connection.client.send(command, { abortSignal: limit.signal })
      const stored = new Map(Successful.map((answer) => [answer.Id, answer.SequenceNumber]))
      const failed = new Map(Failed.map((answer) => [answer.Id, answer]))
      return batch.map((_, index): Sent => {
        const id = String(index)
        const refused = failed.get(id)
        if (refused !== undefined) return { failure: entryFailure(refused, queue) }
        if (!stored.has(id)) {
          const cause = new Error('SQS answered neither that the message is stored nor that it is not')
          return { failure: { kind: 'unknown', destination: queue, cause } }
        }
        const position = stored.get(id)
        return { receipt: { destination: queue, ...(position === undefined ? {} : { position }) } }
      })
    } catch (error) {
      const failure = failureOf(limit.signal.aborted ? limit.signal.reason : error, queue)
      // One that is too long in some way that was not counted here is found alone.
      if (failure.kind === 'permanent' && batch.length > 1) {
        const alone: Sent[] = []
        for (const pending of batch) alone.push(...(await sendBatch(connection, queue, [pending])))
        return alone
      }
      return batch.map(() => ({ failure }))
    } finally {
      limit.release()
    }
  }

  /** The URL of a queue, looked up once. */
  function urlOf({ client, urls }: Connection, queue: string, signal: AbortSignal): Promise<string> {
    const known = urls.get(queue)
    if (known !== undefined) return known
    const looking = lookUpUrl(client, queue, signal)
    urls.set(queue, looking)
    looking.catch(() => urls.delete(queue))
    return looking
  }

  async function publish(run: readonly OutboxEvent[], signal: AbortSignal): Promise<RunResult> {
    const receipts: Receipt[] = []
    try {
      for (const event of run) {
        const queue = settings.queue(event)
        const entry = messageOf(event)
        if ('reason' in entry)
          return stopped(receipts, { kind: 'permanent', destination: queue, cause: new Error(entry.reason) })
        const connection = current
        if (connection === undefined)
          return stopped(receipts, { kind: 'unavailable', cause: new Error('Not connected: call connect first') })
        const sent = await laneOf(connection, queue)({ entry, signal }, signal)
        if (sent === undefined)
          return stopped(receipts, { kind: 'unavailable', destination: queue, cause: signal.reason })
        if ('failure' in sent) return stopped(receipts, sent.failure)
        receipts.push(sent.receipt)
      }
      return { acknowledged: receipts.length, receipts }
    } catch (error) {
      return stopped(receipts, { kind: 'unknown', cause: error })
    }
  }

  async function check(): Promise<Health> {
    const connection = current
    if (connection === undefined) {
      const finding = { severity: 'error' as const, what: 'Not connected', fix: 'Call connect first' }
      return { ok: false, findings: [finding] }
    }
    const findings: Finding[] = []
    const { signal } = connection.closing
    for (const queue of new Set([...settings.queues, ...connection.lanes.keys()])) {
      try {
        const url = await urlOf(connection, queue, signal)
        const command = new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['All'] })
        const { Attributes = {} } = await connection.client.send(command, { abortSignal: signal })
        findings.push(...findingsOf(queue, Attributes, settings.maxEventBytes))
      } catch (error) {
        const denied = failureOf(error, queue).kind === 'unavailable' && /denied/i.test(String(error))
        const fix = denied
          ? 'Allow sqs:GetQueueUrl and sqs:GetQueueAttributes for the check, or look at the queue by hand'
          : 'Create the queue, or correct its name, the region or the endpoint'
        findings.push({ severity: denied ? 'warning' : 'error', what: `${queue}: ${String(error)}`, fix })
      }
    }
    return { ok: findings.every(({ severity }) => severity !== 'error'), findings }
  }

  return {
    name: settings.name,
    capabilities,
    destination: settings.queue,
    publish,
    check,

    validate(event) {
      const entry = messageOf(event)
      return 'reason' in entry ? entry : undefined
    },

    async connect(signal) {
      if (current !== undefined) return
      const { client, end } = settings.open()
      const made: Connection = {
        client,
        end,
        closing: new AbortController(),
        urls: new Map(),
        lanes: new Map(),
        sending: new Set(),
      }
      try {
        await sayHello(made, settings.queues, signal)
      } catch (error) {
        end()
        throw error
      }
      current = made
    },

    async close() {
      const connection = current
      current = undefined
      if (connection === undefined) return
      connection.closing.abort(new Error('The publisher was closed'))
      // A call that was aborted has destroyed its socket by the time it rejects.
      await Promise.allSettled(connection.sending)
      connection.end()
    },
  }
}

/** A question that is answered without any right but to the queues that were named; being refused is an answer. */
async function sayHello(connection: Connection, queues: readonly string[], abortSignal: AbortSignal): Promise<void> {
  const [queue] = queues
  try {
    if (queue === undefined) await connection.client.send(new ListQueuesCommand({ MaxResults: 1 }), { abortSignal })
    else await lookUpUrl(connection.client, queue, abortSignal)
  } catch (error) {
    const failure = failureOf(error, queue ?? '')
    // A queue that is not there, or a right that is missing, is said by `check` and by each publish.
    if (failure.kind !== 'unavailable' || failure.destination === undefined) throw error
  }
}

async function lookUpUrl(client: SQSClient, queue: string, abortSignal: AbortSignal): Promise<string> {
  if (/^https?:\/\//.test(queue)) return queue
  const [, , , , account, nameOfArn] = queue.split(':')
  const owner = account === undefined || account === '' ? {} : { QueueOwnerAWSAccountId: account }
  const command = new GetQueueUrlCommand({ QueueName: nameOfArn ?? queue, ...owner })
  const { QueueUrl: url } = await client.send(command, { abortSignal })
  if (url === undefined) throw new Error(`SQS gave no URL for the queue ${queue}`)
  return url
}

function requestOf({ entry }: Pending, index: number): SendMessageBatchRequestEntry {
  const attributes = Object.entries(entry.attributes).map(([name, value]): [string, MessageAttributeValue] => [
    name,
    { DataType: 'String', StringValue: value },
  ])
  return {
    Id: String(index),
    MessageBody: entry.body,
    MessageGroupId: entry.group,
    MessageDeduplicationId: entry.dedupeId,
    ...(attributes.length === 0 ? {} : { MessageAttributes: Object.fromEntries(attributes) }),
  }
}

function stopped(receipts: readonly Receipt[], failure: Failure): RunResult {
  return { acknowledged: receipts.length, failure, receipts }
}
