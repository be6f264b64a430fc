import { connect as connectPlain, isIP, Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { orAbort } from '@inorder/core'
import kafkajs, {
  type CompressionTypes,
  type ISocketFactory,
  type ISocketFactoryArgs,
  type KafkaConfig,
  type Message,
} from 'kafkajs'
import type { TopicSettings } from './failure.ts'

const { ConfigResourceTypes, Kafka, logLevel } = kafkajs

/** A producer and what belongs to it, used until anything was wrong with it. */
export interface Session {
  /** Batches on their way. */
  inFlight: number
  /** Resolves when no socket of it is open any more, after `destroy`. */
  readonly ended: Promise<void>
  /** Sends one batch and resolves with the offset of its first record. */
  send(topic: string, partition: number, records: Message[]): Promise<bigint>
  countPartitions(topic: string): Promise<number>
  describe(topic: string): Promise<Omit<TopicSettings, 'topic' | 'partitionsBefore'>>
  /** Closes all sockets and lets none open again, so that nothing of it reaches the wire from now on. */
  destroy(reason: Error): void
}

export interface SessionSettings {
  readonly config: KafkaConfig
  readonly compression: CompressionTypes
  readonly idempotent: boolean
  readonly requestTimeoutMs: number
}

/**
 * Tries of the client inside one send: its partition stays blocked meanwhile, and the deadline of the publish ends them.
 * With ten of at most a second they outlast the election of a leader.
 */
const retry = { retries: 10, initialRetryTime: 100, maxRetryTime: 1000 }
/** Looking something up fails soon, so that a topic that is not there is known at once. */
const lookUpRetry = { retries: 2, initialRetryTime: 50, maxRetryTime: 200 }
const keepAliveMs = 60_000
const configNames = [
  'min.insync.replicas',
  'unclean.leader.election.enable',
  'cleanup.policy',
  'max.message.bytes',
] as const

/**
 * Opens a session.
 *
 * @throws the client's error, or the reason of the first signal that aborts.
 */
export async function openSession(settings: SessionSettings, signals: readonly AbortSignal[]): Promise<Session> {
  const { config, compression, idempotent, requestTimeoutMs } = settings
  const sockets = createSockets(config.socketFactory ?? openSocket)
  const kafka = new Kafka({
    clientId: 'inorder',
    connectionTimeout: 3000,
    // kafkajs writes every try that fails to the console; whoever wants that gives a level or a creator.
    ...(config.logCreator === undefined ? { logLevel: logLevel.NOTHING } : {}),
    ...config,
    // It begins with the first of the list, and stays there for as long as that one answers nothing.
    brokers: Array.isArray(config.brokers) ? shuffled(config.brokers) : config.brokers,
    socketFactory: sockets.factory,
    requestTimeout: requestTimeoutMs,
    enforceRequestTimeout: true,
    retry: lookUpRetry,
  })
  const producer = kafka.producer({
    idempotent,
    retry,
    allowAutoTopicCreation: false,
    // The one of kafkajs would do the same, and write a warning.
    createPartitioner:
      () =>
      ({ message }) =>
        message.partition ?? 0,
  })
  const admin = kafka.admin({ retry: lookUpRetry })
  let administering: Promise<void> | undefined

  async function administer(): Promise<typeof admin> {
    administering ??= admin.connect()
    try {
      await administering
    } catch (error) {
      administering = undefined
      throw error
    }
    return admin
  }

  async function metadataOf(topic: string): Promise<{ leader: number; replicas: number[] }[]> {
    const { topics } = await (await administer()).fetchTopicMetadata({ topics: [topic] })
    return topics.find(({ name }) => name === topic)?.partitions ?? []
  }

  function destroy(reason: Error): void {
    sockets.destroy(reason)
    // Nothing can be sent any more; these stop timers of the client.
    void producer.disconnect().catch(noop)
    if (administering !== undefined) void admin.disconnect().catch(noop)
  }

  try {
    await orAbort(producer.connect(), ...signals)
  } catch (error) {
    destroy(error instanceof Error ? error : new Error(String(error)))
    throw error
  }
  return {
    inFlight: 0,
    ended: sockets.ended,
    destroy,
    async send(topic, partition, messages) {
      const timeout = Math.max(1, requestTimeoutMs - 500)
      const sent = await producer.send({ topic, acks: -1, timeout, compression, messages })
      // A send can resolve although nothing was written, after a leader moved for one. Only this says that it was.
      const [entry] = sent
      const written =
        sent.length === 1 && entry?.topicName === topic && entry.partition === partition && entry.errorCode === 0
      if (!written || entry.baseOffset === undefined)
        throw new Error(
          `kafkajs resolved without a write to partition ${partition} of ${topic}: ${JSON.stringify(sent)}`,
        )
      return BigInt(entry.baseOffset)
    },
    countPartitions: async (topic) => (await metadataOf(topic)).length,
    async describe(topic) {
      const partitions = await metadataOf(topic)
      const { resources } = await admin.describeConfigs({
        includeSynonyms: false,
        resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configNames: [...configNames] }],
      })
      const entries = resources.flatMap(({ configEntries }) => configEntries)
      return {
        partitions: partitions.length,
        leastReplicas: Math.min(...partitions.map(({ replicas }) => replicas.length)),
        withoutLeader: partitions.filter(({ leader }) => leader < 0).length,
        config: Object.fromEntries(entries.map(({ configName, configValue }) => [configName, configValue])),
      }
    },
  }
}

interface Sockets {
  readonly factory: ISocketFactory
  readonly ended: Promise<void>
  destroy(reason: Error): void
}

/** Keeps hold of every socket that the client opens, which it has no way to close at once. */
function createSockets(open: ISocketFactory): Sockets {
  const all = new Set<Socket>()
  let refusal: Error | undefined
  let finish: () => void = noop
  const ended = new Promise<void>((resolve) => (finish = resolve))
  const over = (): void => {
    if (refusal !== undefined && all.size === 0) finish()
  }
  return {
    ended,
    factory(args) {
      const socket = refusal === undefined ? open(args) : new Socket()
      all.add(socket)
      socket.once('close', () => {
        all.delete(socket)
        over()
      })
      if (refusal !== undefined) socket.destroy(refusal)
      return socket
    },
    destroy(reason) {
      refusal ??= reason
      // With an error: kafkajs does not notice that a socket was closed without one.
      for (const socket of all) socket.destroy(refusal)
      over()
    },
  }
}

/** What kafkajs does by itself, and without waiting to fill a packet. */
function openSocket({ host, port, ssl, onConnect }: ISocketFactoryArgs): Socket {
  // The types say that `ssl` is always there; it is null without TLS.
  const tls = ssl as ISocketFactoryArgs['ssl'] | null
  const named = isIP(host) === 0 ? { servername: host } : {}
  const socket =
    tls === null ? connectPlain({ host, port }, onConnect) : connectTls({ host, port, ...named, ...tls }, onConnect)
  socket.setKeepAlive(true, keepAliveMs)
  socket.setNoDelay(true)
  return socket
}

function shuffled<T>(list: readonly T[]): T[] {
  return list
    .map((value) => ({ value, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ value }) => value)
}

export function noop(): void {}
