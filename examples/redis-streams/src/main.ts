import { parseArgs } from 'node:util'
import { createOutbox, fromPg } from '@inorder/core'
import { startPostgres, startRedis } from '@inorder/harness'
import { redisStreamsPublisher } from '@inorder/relay-redis-streams'
import pg from 'pg'
import { createConsumerTables, startConsumer } from './consumer.ts'
import { printProof, proveOrder } from './proof.ts'
import { createShopTables, orderEvents, runShop, topic, webhookEvents } from './shop.ts'

const { values } = parseArgs({ options: { events: { type: 'string' }, orders: { type: 'string', default: '10' } } })
const events = values.events === undefined ? orderEvents(Number(values.orders)) : webhookEvents(values.events)

console.log('Starting PostgreSQL and Redis …')
await using postgres = await startPostgres()
await using redis = await startRedis()
// Two pools, as two services would have. The relay keeps up to five connections of its pool.
const pool = new pg.Pool({ connectionString: postgres.url(), max: 8 })
const consumerPool = new pg.Pool({ connectionString: postgres.url(), max: 2 })

const outbox = createOutbox({ client: fromPg(pool) })
await outbox.migrate()
await createShopTables(pool)
await createConsumerTables(consumerPool)

const relay = outbox.relay({ publisher: redisStreamsPublisher({ connection: redis.url }) })
await relay.start()
const place = { redisUrl: redis.url, pool: consumerPool, stream: topic, name: 'billing' }
const first = startConsumer({ ...place, crashAfter: 5 })

console.log(`The shop writes ${events.length} events in as many transactions …`)
await runShop(pool, outbox, events)
await first.done
console.log('The consumer has crashed before it acknowledged. Another one takes its place …')
const second = startConsumer(place)
await relay.drain()
second.stop()
await second.done

const proof = await proveOrder(consumerPool)
printProof(proof, second.dropped)
process.exitCode = proof.length > 0 && proof.every(({ same }) => same) ? 0 : 1

await outbox.close()
await pool.end()
await consumerPool.end()
