import type { Failure, Finding } from '@inorder/core'

/** RabbitMQ took the message and had no queue for it. */
export function unroutable(destination: string): Failure {
  const what = `No queue is bound for ${destination}. Bind one, or set mandatory: false where messages nobody wants may go`
  return { kind: 'unavailable', destination, cause: new Error(what) }
}

/** A queue that is full and rejects, or one that has no quorum. Another queue of a fan-out may have the message. */
export function refused(destination: string): Failure {
  const cause = new Error(`RabbitMQ refused a message for ${destination}: a queue behind it is full or has no quorum`)
  return { kind: 'unavailable', destination, cause }
}

/** The exchange could not be looked at: it is not there, or this user may not. Nothing was published. */
export function exchangeFailure(error: unknown, exchange: string, destination: string): Failure {
  const cause = new Error(`The exchange ${exchange} cannot be published to. Declare it, or allow this user to`, {
    cause: error,
  })
  return { kind: 'unavailable', destination, cause }
}

/** What is known of the server and of what was published to. */
export interface ServerFacts {
  readonly version: string | undefined
  readonly blocked: string | undefined
  readonly missing: readonly { readonly exchange: string; readonly error: unknown }[]
}

export interface UsedOptions {
  readonly mandatory: boolean
  readonly fence: 'same-relay' | 'none'
  readonly maxRunInFlight: number
  readonly maxEventBytes: number
}

/** Since 4.0 a message may have 16 MiB, before that 128 MiB. */
const sinceVersion4 = 16 * 1024 * 1024

/** Names what is unsafe in the state of the server, or in how it fits the publisher's options. */
export function findingsOf(server: ServerFacts, used: UsedOptions): Finding[] {
  const findings: Finding[] = []
  const add = (severity: Finding['severity'], what: string, fix: string): void =>
    void findings.push({ severity, what, fix })
  if (server.blocked !== undefined)
    add('error', `RabbitMQ takes nothing: ${server.blocked}`, 'Free memory or disk of the server')
  for (const { exchange, error } of server.missing) {
    const fix = 'Declare the exchange, or correct the option exchange'
    add('error', `The exchange ${exchange} cannot be published to: ${String(error)}`, fix)
  }
  if (!used.mandatory) {
    const what = 'mandatory is false: a message that no queue is bound for is acknowledged and gone'
    add('warning', what, 'Leave mandatory true where every event must arrive')
  }
  if (used.fence === 'none') {
    const what = 'fence is none: what a frozen connection still has can land after its successors'
    add('warning', what, "Allow this user to declare a queue, and use fence 'same-relay'")
  }
  if (used.maxRunInFlight > 1) {
    const what = `maxRunInFlight is ${used.maxRunInFlight}: a queue that refuses one of them and takes the next breaks the order of a key`
    add('warning', what, 'Leave maxRunInFlight at 1 where queues can be full')
  }
  const major = Number(server.version?.split('.')[0] ?? Number.NaN)
  if (major >= 4 && used.maxEventBytes > sinceVersion4) {
    const fix = 'Lower maxEventBytes, or raise max_message_size on the server'
    add('warning', `maxEventBytes is ${used.maxEventBytes}, above the 16 MiB that RabbitMQ 4 takes by default`, fix)
  }
  return findings
}
