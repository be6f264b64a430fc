import type { Failure, Finding } from '@inorder/core'

/** What an error of a send means for what was sent. */
export type Verdict =
  /** An answer about the records themselves: nothing was written, and the producer is as good as before. */
  | 'record'
  /** An answer about the topic: nothing was written, and nothing else is affected. */
  | 'topic'
  /** May have been written, perhaps by an earlier try of the client; the producer must not be used again. */
  | 'unknown'

/** Answers about a batch that no other batch would get. Kafka checks them before it writes anything. */
const recordErrors: ReadonlySet<string> = new Set([
  'MESSAGE_TOO_LARGE',
  'RECORD_LIST_TOO_LARGE',
  'INVALID_RECORD',
  'INVALID_TIMESTAMP',
  'POLICY_VIOLATION',
])

/** Answers about a topic, whatever the batch. A person has to change something before it takes anything. */
const topicErrors: ReadonlySet<string> = new Set([
  'UNKNOWN_TOPIC_OR_PARTITION',
  'INVALID_TOPIC_EXCEPTION',
  'TOPIC_AUTHORIZATION_FAILED',
  'UNSUPPORTED_FOR_MESSAGE_FORMAT',
  'UNSUPPORTED_COMPRESSION_TYPE',
  'INVALID_REQUIRED_ACKS',
])

/** kafkajs has no name for codes above 88; INVALID_RECORD is one of them. */
const invalidRecordCode = 87

/**
 * What became of a batch whose send was rejected.
 *
 * kafkajs retries by itself and reports the last try only, so an error that says "nothing was written" says so of that
 * try: of 94 runs that such an error was taken for proof, all were in the log. So everything is unknown but answers that
 * an earlier try cannot have been spared.
 */
export function verdictOf(error: unknown): Verdict {
  const { type, code } = rootOf(error)
  if (recordErrors.has(type ?? '') || code === invalidRecordCode) return 'record'
  return topicErrors.has(type ?? '') ? 'topic' : 'unknown'
}

/** Whether the broker said that a topic is not there. */
function saysNoTopic(error: unknown): boolean {
  const { type } = rootOf(error)
  return type === 'UNKNOWN_TOPIC_OR_PARTITION' || type === 'INVALID_TOPIC_EXCEPTION'
}

/** Why the metadata of a topic could not be read: of the topic itself, or of the whole broker. */
export function metadataFailure(error: unknown, topic: string): Failure {
  const ofTopic = verdictOf(error) === 'topic'
  if (!ofTopic) return { kind: 'unavailable', cause: error }
  const cause = saysNoTopic(error)
    ? new Error(`The topic ${topic} does not exist. Create it, then its events are published`, { cause: error })
    : error
  return { kind: 'unavailable', destination: topic, cause }
}

interface RootCause {
  readonly type?: string
  readonly code?: number | string
}

/** The error that the broker or the connection gave, under the wrapping of the client's retries. */
function rootOf(error: unknown): RootCause {
  let root: unknown = error
  for (let depth = 0; depth < 5; depth++) {
    const cause: unknown = typeof root === 'object' && root !== null && 'cause' in root ? root.cause : undefined
    if (cause === undefined || cause === null) break
    root = cause
  }
  return typeof root === 'object' && root !== null ? root : {}
}

/** What `check` reads of a topic. A setting is undefined when the broker did not let it be read. */
export interface TopicSettings {
  readonly topic: string
  readonly partitions: number
  /** Partitions before somebody added some while this publisher ran. */
  readonly partitionsBefore: number | undefined
  readonly leastReplicas: number
  readonly withoutLeader: number
  readonly config: Readonly<Record<string, string>>
}

/** Names what is unsafe in the settings of a topic, or in how they fit the publisher's options. */
export function findingsOf(topic: TopicSettings, maxEventBytes: number): Finding[] {
  const findings: Finding[] = []
  const add = (severity: Finding['severity'], what: string, fix: string): void =>
    void findings.push({ severity, what: `${topic.topic}: ${what}`, fix })
  const { config, leastReplicas } = topic
  const inSync = Number(config['min.insync.replicas'] ?? Number.NaN)

  if (topic.withoutLeader > 0)
    add('error', `${topic.withoutLeader} partitions have no leader`, 'Start the brokers that hold them')
  if (leastReplicas < 2) {
    add('warning', 'one replica: acknowledged events are lost with its broker', 'Use a replication factor of 3')
  } else if (inSync < 2) {
    const what = `min.insync.replicas is ${inSync}: an acknowledgement can mean one replica`
    add('warning', what, 'Set min.insync.replicas to 2 on the topic')
  }
  if (inSync > leastReplicas)
    add('error', `min.insync.replicas is ${inSync} with ${leastReplicas} replicas: every write is refused`, 'Lower it')
  if (config['unclean.leader.election.enable'] === 'true') {
    const fix = 'Set unclean.leader.election.enable to false'
    add('warning', 'a replica that lacks acknowledged events may become leader', fix)
  }
  if (config['cleanup.policy']?.includes('compact') === true) {
    const what = 'compaction keeps only the newest event of a key'
    add('warning', what, 'Set cleanup.policy to delete unless the events are whole states')
  }
  const maxMessage = Number(config['max.message.bytes'] ?? Number.NaN)
  if (maxMessage < maxEventBytes) {
    const fix = 'Raise max.message.bytes, or lower the option maxEventBytes so that such events are refused at enqueue'
    add('warning', `max.message.bytes is ${maxMessage}, below maxEventBytes (${maxEventBytes})`, fix)
  }
  if (topic.partitionsBefore !== undefined) {
    const what = `partitions were added while events are published (${topic.partitionsBefore} before, ${topic.partitions} now): keys have moved, their order across the change is lost`
    add('warning', what, 'Add partitions when the outbox is empty, or pin the old number with the option partitions')
  }
  return findings
}
