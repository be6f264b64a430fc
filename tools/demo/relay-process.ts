import { createOutbox, fromPg } from '@inorder/core'
import pg from 'pg'
import { liveWithParent, readOrders, tellParent } from '../../test/stand/parent-channel.ts'
import { type PublishReply, type PublishRequest, remotePublisher } from '../../test/stand/remote-publisher.ts'

export interface RelayOrders {
  readonly name: string
  readonly databaseUrl: string
  readonly leaseMs: number
  readonly backoffMs: number
}

export type ToRelay = PublishReply | { readonly kind: 'stop' }

export type FromRelay = PublishRequest | { readonly kind: 'slots'; readonly owned: number; readonly gained: number }

// One relay in a process of its own, so that it can be killed in the middle of whatever it does.

liveWithParent()
const orders = readOrders() as RelayOrders
const tell = (message: FromRelay): void => void tellParent(message)
const publisher = remotePublisher(orders.name, tell)
const pool = new pg.Pool({ connectionString: orders.databaseUrl, max: 8, application_name: orders.name })
pool.on('error', () => undefined)
const outbox = createOutbox({ client: fromPg(pool) })
const relay = outbox.relay({
  publisher,
  leaseMs: orders.leaseMs,
  backoffBaseMs: orders.backoffMs,
  onSignal(signal) {
    if (signal.kind === 'slots') tell({ kind: 'slots', owned: signal.owned, gained: signal.gained })
  },
})

async function stop(): Promise<void> {
  await outbox.close()
  await pool.end()
  process.exit(0)
}

process.on('message', (message: ToRelay) => {
  if (message.kind === 'published') publisher.answer(message)
  else void stop()
})

await relay.start()
