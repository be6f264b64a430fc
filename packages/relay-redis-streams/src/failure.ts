import type { Failure, Finding } from '@inorder/core'

/**
 * What an error reply of Redis says about the event at which a run stopped. The code is the first word of the reply.
 * `scope` is who reported it: the whole script was refused, or the entry that the script tried to append.
 */
export function failureOf(error: Error, stream: string, scope: 'script' | 'entry'): Failure {
  const code = replyCode(error.message)
  if (serverCodes.has(code)) return { kind: 'unavailable', cause: error }
  if (code !== 'ERR') return { kind: 'unavailable', destination: stream, cause: error }
  if (scope === 'script') return { kind: 'unavailable', destination: stream, cause: error }
  if (tooLarge.test(error.message)) return { kind: 'permanent', destination: stream, cause: error }
  if (streamIsUnusable.test(error.message)) return { kind: 'unavailable', destination: stream, cause: error }
  return { kind: 'rejected', destination: stream, cause: error }
}

/** The code of an error reply: OOM, READONLY, WRONGTYPE, or ERR for everything that has none of its own. */
export function replyCode(message: string): string {
  return /^-?([A-Z]+)(?: |$)/.exec(message)?.[1] ?? 'ERR'
}

/**
 * Replies about the server or its state, whatever the event: memory is full, it is a replica, it loads its data, it
 * lost its primary or its replicas, the cluster is down, a script runs for too long, the disk failed, the credentials
 * are wrong. Nothing was appended. Every other code is about one stream: WRONGTYPE, NOPERM, MOVED, TRYAGAIN.
 */
const serverCodes: ReadonlySet<string> = new Set([
  'OOM',
  'READONLY',
  'LOADING',
  'MASTERDOWN',
  'NOREPLICAS',
  'CLUSTERDOWN',
  'BUSY',
  'MISCONF',
  'NOAUTH',
  'WRONGPASS',
  'UNKILLABLE',
])

// Redis gives these no code of their own; matching their text is the only way to tell them from each other. A wording
// that changes makes the outcome `rejected`, which is visible and never drops an event.
const tooLarge = /too large|maximum allowed size/i
const streamIsUnusable = /exhausted the last possible ID|can't (?:run|access)|No permissions/i

/** The settings that `check` reads. A value is undefined when the server did not let it be read. */
export interface ServerSettings {
  readonly role: string | undefined
  readonly replicas: number | undefined
  readonly maxmemory: string | undefined
  readonly policy: string | undefined
  readonly appendonly: string | undefined
  readonly appendfsync: string | undefined
  readonly minReplicas: string | undefined
  readonly maxBulkBytes: string | undefined
}

/** What the publisher itself was asked to do, as far as it can be unsafe. */
export interface UsedOptions {
  readonly trims: boolean
  readonly fence: 'same-relay' | 'none'
  readonly waitReplicas: number
  readonly maxEventBytes: number
}

/** Names what is unsafe in the server's settings, or in how they fit the publisher's options. */
export function findingsOf(server: ServerSettings, used: UsedOptions): Finding[] {
  const findings: Finding[] = []
  const error = (what: string, fix: string): void => void findings.push({ severity: 'error', what, fix })
  const warning = (what: string, fix: string): void => void findings.push({ severity: 'warning', what, fix })

  if (server.role === 'slave') error('The server is a replica and refuses every write', 'Connect to the primary')
  if (server.policy?.startsWith('allkeys-') === true) {
    const what = `maxmemory-policy is ${server.policy}: Redis may delete whole streams that nobody has read`
    if (server.maxmemory === '0')
      warning(`${what} as soon as maxmemory is set`, 'CONFIG SET maxmemory-policy noeviction')
    else error(what, 'CONFIG SET maxmemory-policy noeviction')
  }
  if (server.appendonly === 'no') {
    warning('appendonly is no: acknowledged events are lost when Redis stops', 'CONFIG SET appendonly yes')
  } else if (server.appendfsync !== undefined && server.appendfsync !== 'always') {
    warning(
      `appendfsync is ${server.appendfsync}: a power loss takes the last second or more of acknowledged events`,
      'CONFIG SET appendfsync always, or accept the loss',
    )
  }
  if (server.replicas !== undefined && server.replicas < used.waitReplicas) {
    error(
      `waitReplicas asks for ${String(used.waitReplicas)} replicas and ${String(server.replicas)} are connected`,
      'Connect the replicas, or lower waitReplicas.count',
    )
  }
  if (server.minReplicas !== undefined && Number(server.minReplicas) < used.waitReplicas) {
    warning(
      'A missing replica is noticed only after the append, so each retry appends the event again',
      `CONFIG SET min-replicas-to-write ${String(used.waitReplicas)}`,
    )
  }
  if (server.maxBulkBytes !== undefined && Number(server.maxBulkBytes) < used.maxEventBytes) {
    error(
      `proto-max-bulk-len is ${server.maxBulkBytes}, below maxEventBytes: a larger event would close the connection`,
      'Lower the option maxEventBytes, or raise proto-max-bulk-len',
    )
  }
  if (used.trims) warning('trim removes entries that nobody has read yet', 'Keep more than the slowest consumer needs')
  if (used.fence === 'none') {
    warning(
      'fence is none: a publish that timed out can land after its successors',
      "Allow CLIENT KILL and use fence 'same-relay'",
    )
  }
  if (Object.values(server).includes(undefined)) {
    warning('Not every setting could be read', 'Allow CONFIG|GET and INFO for this user, or check the settings by hand')
  }
  return findings
}
