import { createOutbox, fromPg } from '@inorder/core'
import pg from 'pg'
import { readOrders, tellParent } from '../../stand/parent-channel.ts'
import { type PublishReply, type PublishRequest, remotePublisher } from '../../stand/remote-publisher.ts'

// A relay as an application runs it: SIGTERM stops it, a second one ends it at once. Its broker is the parent process.
// It never calls exit after a stop, so it ends only if the stop left nothing behind that would keep a process alive.

export interface ProgramOrders {
  readonly databaseUrl: string
  readonly graceMs: number
  readonly leaseMs: number
}

export type FromProgram =
  | PublishRequest
  | { readonly kind: 'started' }
  /** The first SIGTERM has arrived. */
  | { readonly kind: 'stopping' }
  /** The relay knows that the broker has so many events of a run. */
  | { readonly kind: 'acknowledged'; readonly events: number }

function tell(message: FromProgram): void {
  void tellParent(message)
}

const orders = readOrders() as ProgramOrders
const publisher = remotePublisher('parent', tell)
const pool = new pg.Pool({ connectionString: orders.databaseUrl, max: 6 })
pool.on('error', () => undefined)
const outbox = createOutbox({ client: fromPg(pool) })
const relay = outbox.relay({
  publisher,
  leaseMs: orders.leaseMs,
  publishTimeoutMs: 60_000,
  onSignal(signal) {
    if (signal.kind === 'published') tell({ kind: 'acknowledged', events: signal.acknowledged })
  },
})

async function stop(): Promise<void> {
  await relay.stop({ graceMs: orders.graceMs })
  await outbox.close()
  await pool.end()
}

let signals = 0
process.on('SIGTERM', () => {
  signals += 1
  if (signals > 1) process.exit(143)
  tell({ kind: 'stopping' })
  void stop()
})
process.on('disconnect', () => process.exit(1))
process.on('message', (reply: PublishReply) => {
  publisher.answer(reply)
})

await relay.start()
tell({ kind: 'started' })
// From now on only the relay keeps this process alive, and not that it listens to its parent.
process.channel?.unref()
