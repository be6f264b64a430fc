import { createHash, randomUUID } from 'node:crypto'
import { type Redis, ReplyError } from 'ioredis'
import { replyCode, type ServerSettings } from './failure.ts'
import type { Settings } from './options.ts'
import { appendScript } from './record.ts'

const scriptHash = createHash('sha1').update(appendScript).digest('hex')

/**
 * One connection from its first byte to its last. It is never reconnected: a client that reconnects by itself also
 * sends again by itself, and that duplicates or reorders. What follows it is another session.
 *
 * - open: `current` points at it, publishes go through it.
 * - retired: it ended, or was ended because a publish was given up. Its socket is destroyed, what was in flight is
 *   `unknown`, and no other session serves publishes before this one is fenced.
 * - fenced: the server has confirmed that the connection is gone, so nothing of it can land any more.
 */
export interface Session {
  readonly redis: Redis
  readonly clientName: string
  readonly clientId: string
  inFlight: number
  /** Set when retired: resolves when the session is fenced, or when waiting for that has taken too long. */
  fenceWait: Promise<void> | undefined
  fenced: () => void
  /** The WAIT that is on its way, and the one that has yet to be sent and that publishes can still join. */
  wait: Promise<number> | undefined
  nextWait: Promise<number> | undefined
}

/**
 * Opens a connection and makes it usable: its credentials are accepted, the script is loaded, and every retired
 * session is fenced. Rejects with the reply of the server where there is one, or when any of the signals aborts.
 */
export async function openSession(
  settings: Settings,
  unfenced: Set<Session>,
  // Listened to one by one: on Node 20 AbortSignal.any never fires when a garbage collection took its timeout signal.
  signals: readonly AbortSignal[],
): Promise<Session> {
  for (const signal of signals) signal.throwIfAborted()
  const clientName = `${settings.name}-${randomUUID()}`
  const redis = settings.client(clientName)
  let problem: unknown
  redis.on('error', (error) => (problem = error))
  const giveUp = (): void => destroy(redis)
  for (const signal of signals) signal.addEventListener('abort', giveUp, { once: true })
  try {
    await redis.connect()
    const clientId = String(await redis.client('ID'))
    await redis.script('LOAD', appendScript)
    if (settings.fence !== 'none') {
      // Tries what the fence needs while nothing depends on it, so that a user who may not do it is refused here and
      // not after the first timeout. No client has this id. ioredis ignores it when the name is refused.
      await redis.client('KILL', 'ID', '9223372036854775807')
      if (!(await isListed(redis, clientId, clientName))) {
        throw new Error("The server does not show this connection's name: allow CLIENT SETNAME, or set fence to 'none'")
      }
      for (const session of unfenced) {
        await fence(redis, session)
        unfenced.delete(session)
      }
    }
    return {
      redis,
      clientName,
      clientId,
      inFlight: 0,
      fenceWait: undefined,
      fenced: noop,
      wait: undefined,
      nextWait: undefined,
    }
  } catch (error) {
    destroy(redis)
    throw problem ?? signals.find((signal) => signal.aborted)?.reason ?? error
  } finally {
    for (const signal of signals) signal.removeEventListener('abort', giveUp)
  }
}

/**
 * Makes sure that nothing of a retired session can land: bytes of it may still wait in a buffer of the server or of
 * the network. Its name is compared because a restarted server gives out the same client ids again.
 */
async function fence(redis: Redis, session: Session): Promise<void> {
  if (await isListed(redis, session.clientId, session.clientName)) await redis.client('KILL', 'ID', session.clientId)
  session.fenced()
}

async function isListed(redis: Redis, clientId: string, clientName: string): Promise<boolean> {
  return String(await redis.client('LIST', 'ID', clientId)).includes(` name=${clientName} `)
}

/** Appends the entries and returns their ids and, when one was refused, the error text. */
export async function runScript(
  session: Session,
  stream: string,
  args: (string | Buffer)[],
): Promise<[string[], string?]> {
  try {
    return (await session.redis.evalsha(scriptHash, 1, stream, ...args)) as [string[], string?]
  } catch (error) {
    const unknownScript = error instanceof ReplyError && replyCode((error as Error).message) === 'NOSCRIPT'
    // A retired session has been given up on; sending on it would be the late write that the fence is against.
    if (!unknownScript || session.fenceWait !== undefined) throw error
    return (await session.redis.eval(appendScript, 1, stream, ...args)) as [string[], string?]
  }
}

/**
 * Says why the replicas do not have what this session wrote so far. WAIT covers all earlier writes of its connection
 * and blocks it meanwhile, so publishes that finish while one is on its way share the next.
 */
export async function replicaShortfall(
  session: Session,
  wanted: NonNullable<Settings['waitReplicas']>,
): Promise<unknown> {
  session.nextWait ??= Promise.resolve(session.wait)
    .catch(noop)
    .then(() => {
      session.nextWait = undefined
      session.wait = session.redis.wait(wanted.count, wanted.timeoutMs)
      return session.wait
    })
  try {
    const reached = await session.nextWait
    if (reached >= wanted.count) return undefined
    return new Error(
      `${String(reached)} of ${String(wanted.count)} replicas confirmed within ${String(wanted.timeoutMs)} ms`,
    )
  } catch (error) {
    // The append was answered, so it cannot land late whatever became of WAIT: no fence is needed.
    return error
  }
}

/** Reads what `check` looks at. Whatever the user may not read is undefined. */
export async function readServerSettings(redis: Redis): Promise<ServerSettings> {
  const setting = async (name: string): Promise<string | undefined> => {
    // One name per call: several at once need Redis 7.
    const reply = (await redis.config('GET', name).catch(() => [])) as string[]
    return reply[1]
  }
  const replication = await redis.info('replication').catch(() => '')
  const replicas = /^connected_slaves:(\d+)/m.exec(replication)?.[1]
  return {
    role: /^role:(\w+)/m.exec(replication)?.[1],
    replicas: replicas === undefined ? undefined : Number(replicas),
    maxmemory: await setting('maxmemory'),
    policy: await setting('maxmemory-policy'),
    appendonly: await setting('appendonly'),
    appendfsync: await setting('appendfsync'),
    minReplicas: await setting('min-replicas-to-write'),
    maxBulkBytes: await setting('proto-max-bulk-len'),
  }
}

/** What ioredis itself asks before it writes. Without it a command would be refused with an error that has no code. */
export function canSend(redis: Redis): boolean {
  return redis.status === 'ready' && redis.stream.writable
}

/** `disconnect` alone ends the socket politely, which first writes what is still buffered. */
export function destroy(redis: Redis): void {
  redis.disconnect()
  const socket = redis.stream as Redis['stream'] | undefined
  socket?.destroy()
}

function noop(): void {}
