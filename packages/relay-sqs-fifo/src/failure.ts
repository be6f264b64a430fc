import type { Failure, Finding } from '@inorder/core'

/** How long SQS is left alone after it said that there were too many requests. */
const throttledMs = 1000

/** Answers about the queue or who may use it, whatever the message. Nothing was stored. */
const queueErrors: ReadonlySet<string> = new Set([
  'QueueDoesNotExist',
  'QueueDeletedRecently',
  'InvalidAddress',
  'InvalidSecurity',
  'UnsupportedOperation',
  'AccessDenied',
  'AccessDeniedException',
  'KmsAccessDenied',
  'KmsDisabled',
  'KmsInvalidKeyUsage',
  'KmsInvalidState',
  'KmsNotFound',
  'KmsOptInRequired',
])

/** Answers about who calls. Nothing was stored, and nothing will be, on any queue. */
const callerErrors: ReadonlySet<string> = new Set([
  'CredentialsProviderError',
  'ExpiredToken',
  'ExpiredTokenException',
  'IncompleteSignature',
  'InvalidClientTokenId',
  'MissingAuthenticationToken',
  'OptInRequired',
  'SignatureDoesNotMatch',
  'UnrecognizedClientException',
])

const throttles: ReadonlySet<string> = new Set([
  'KmsThrottled',
  'OverLimit',
  'RequestThrottled',
  'ThrottlingException',
  'TooManyRequestsException',
])

/** Answers about the message. It will never be stored. */
const messageErrors: ReadonlySet<string> = new Set([
  'InvalidMessageContents',
  'InvalidParameterValue',
  'MissingParameter',
  'BatchRequestTooLong',
])

/** Errors of a connection that was never made, so that nothing was sent. */
const unconnected: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH'])

/** What a rejected call means for the messages that it carried. Whatever is not known to be harmless is unknown. */
export function failureOf(error: unknown, queue: string): Failure {
  const { name, code, message } = shapeOf(error)
  if (throttles.has(name)) return { kind: 'unavailable', destination: queue, retryAfterMs: throttledMs, cause: error }
  if (queueErrors.has(name)) return { kind: 'unavailable', destination: queue, cause: error }
  if (callerErrors.has(name) || message === 'Region is missing') return { kind: 'unavailable', cause: error }
  if (unconnected.has(code)) return { kind: 'unavailable', cause: error }
  if (messageErrors.has(name)) return { kind: 'permanent', destination: queue, cause: error }
  return { kind: 'unknown', destination: queue, cause: error }
}

/** What one entry of a batch was answered. */
export function entryFailure(
  answer: {
    readonly Code?: string | undefined
    readonly Message?: string | undefined
    readonly SenderFault?: boolean | undefined
  },
  queue: string,
): Failure {
  const { Code: code = 'no code', Message: message = '', SenderFault: ours } = answer
  const cause = new Error(`${code}: ${message}`)
  cause.name = code
  const failure = failureOf(cause, queue)
  if (failure.kind !== 'unknown') return failure
  // An entry that is reported as failed was not stored, whatever the reason.
  return ours === true
    ? { kind: 'rejected', destination: queue, cause }
    : { kind: 'unavailable', destination: queue, cause }
}

function shapeOf(error: unknown): { name: string; code: string; message: string } {
  if (typeof error !== 'object' || error === null) return { name: '', code: '', message: String(error) }
  const { name = '', code = '', message = '' } = error as { name?: unknown; code?: unknown; message?: unknown }
  // Older endpoints answer with the name of the query protocol.
  return { name: String(name).replace(/^AWS\.SimpleQueueService\./, ''), code: String(code), message: String(message) }
}

/** Names what is unsafe in the attributes of a queue, or in how they fit the publisher's options. */
export function findingsOf(
  queue: string,
  attributes: Readonly<Record<string, string | undefined>>,
  maxEventBytes: number,
): Finding[] {
  const findings: Finding[] = []
  const add = (severity: Finding['severity'], what: string, fix: string): void =>
    void findings.push({ severity, what: `${queue}: ${what}`, fix })
  if (attributes.FifoQueue !== 'true')
    add('error', 'is no FIFO queue and keeps no order', 'Create a queue whose name ends with .fifo')
  if (attributes.RedrivePolicy !== undefined && attributes.RedrivePolicy !== '') {
    const what = 'has a dead-letter queue: a message that moves there lets its successors overtake it'
    add('warning', what, 'Remove the redrive policy where strict order matters, or let consumers bear a gap')
  }
  const maxMessage = Number(attributes.MaximumMessageSize ?? Number.NaN)
  if (maxMessage < maxEventBytes) {
    const fix = 'Raise MaximumMessageSize, or lower the option maxEventBytes so that such events are refused at enqueue'
    add('warning', `MaximumMessageSize is ${maxMessage}, below maxEventBytes (${maxEventBytes})`, fix)
  }
  if (Number(attributes.MessageRetentionPeriod ?? Number.NaN) < 86_400) {
    const what = `keeps messages for ${attributes.MessageRetentionPeriod ?? ''} s only: what no consumer reads by then is gone`
    add('warning', what, 'Raise MessageRetentionPeriod')
  }
  return findings
}
