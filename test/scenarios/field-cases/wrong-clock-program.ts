import { createOutbox, fromPg, type RelaySignal } from '@inorder/core'
import { memoryBroker, memoryPublisher } from '@inorder/relay-memory'
import pg from 'pg'
import { liveWithParent, readOrders, tellParent } from '../../stand/parent-channel.ts'

// An application on a machine whose clock is wrong: it writes three events, and its relay publishes them.

export interface WrongClockOrders {
  readonly databaseUrl: string
  readonly offsetMs: number
  readonly leaseMs: number
}

export type FromWrongClock = { readonly kind: 'clock'; readonly now: number } | RelaySignal

liveWithParent()
const { databaseUrl, offsetMs, leaseMs } = readOrders() as WrongClockOrders

globalThis.Date = new Proxy(Date, {
  construct: (right, given) => new right(...((given.length === 0 ? [right.now() + offsetMs] : given) as [number])),
  get: (right, name, receiver): unknown =>
    name === 'now' ? () => right.now() + offsetMs : Reflect.get(right, name, receiver),
})

function tell(message: FromWrongClock): void {
  void tellParent(message)
}

tell({ kind: 'clock', now: Date.now() })
const pool = new pg.Pool({ connectionString: databaseUrl, max: 8 })
const outbox = createOutbox({ client: fromPg(pool) })
const broker = memoryBroker()
broker.reject({ key: 'bad' })
await outbox.transaction(pool, (tx) =>
  outbox.enqueue(tx, [
    { topic: 'orders', key: 'bad', payload: 1 },
    { topic: 'orders', key: 'later', payload: 1, delayMs: 30_000 },
    { topic: 'orders', key: 'now', payload: 1 },
  ]),
)
await outbox.relay({ publisher: memoryPublisher(broker), leaseMs, onSignal: tell }).start()
