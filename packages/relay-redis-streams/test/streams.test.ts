import { exampleEvent as event } from '@inorder/conformance'
import { crc32 } from 'node:zlib'
import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { idsOf, publish, publishUntilAcknowledged, run } from './rig.ts'
import { ownRedis } from './own-redis.ts'

const { server, redis, observer, connected } = await ownRedis()

test('nothing is trimmed by default', async () => {
  const publisher = await connected()
  for (let sent = 0; sent < 10_050; sent += 1005) await publishUntilAcknowledged(publisher, run(1005))
  expect(await redis.xlen('orders')).toBe(10_050)
})

test('trimming to a length is opt-in and warned about', async () => {
  const exact = await connected({ trim: { maxLength: 1000, approximate: false } })
  const rough = await connected({ trim: { maxLength: 1000 } })
  const events = run(1500)
  for (let at = 0; at < events.length; at += 500) {
    await publishUntilAcknowledged(exact, events.slice(at, at + 500))
    await publishUntilAcknowledged(rough, run(500, { topic: 'rough' }))
  }
  expect(await observer.eventIds('orders')).toEqual(idsOf(events.slice(500)))
  expect(await redis.xlen('rough')).toBeGreaterThanOrEqual(1000)
  expect(await redis.xlen('rough')).toBeLessThan(1500)
  expect((await exact.check()).findings.map(({ what }) => what)).toContain(
    'trim removes entries that nobody has read yet',
  )
})

test('trimming by age removes what is older on the clock of the server, and keeps what is not', async () => {
  const publisher = await connected({ trim: { olderThanMs: 60_000 } })
  const pipeline = redis.pipeline()
  for (let id = 1; id <= 300; id++) pipeline.xadd('orders', `${String(id)}-0`, 'field', 'value')
  await pipeline.exec()
  const events = run(5)
  await publishUntilAcknowledged(publisher, events)
  // Whole nodes of 100 entries go, so an incomplete one may stay.
  expect(await redis.xlen('orders')).toBeLessThan(150)
  const newest = await redis.xrevrange('orders', '+', '-', 'COUNT', 5)
  expect(newest.map(([, fields]) => fields[1]).reverse()).toEqual(idsOf(events))
})

test('fields are the same names in the same order, each one value, whatever the event holds', async () => {
  const publisher = await connected()
  const everyByte = Buffer.from(Uint8Array.from({ length: 256 }, (_, byte) => byte))
  const events = [
    event({ payload: Uint8Array.from(everyByte), headers: { a: '1', nested: '{"b":[1,2]}' } }),
    event({ payload: everyByte.subarray(128), key: '' }),
    event({ payload: null, key: null, type: null }),
    event({ payload: new Uint8Array() }),
  ]
  await publishUntilAcknowledged(publisher, events)
  const entries = await redis.xrangeBuffer('orders', '-', '+')
  const names = entries.map(([, fields]) => fields.filter((_, index) => index % 2 === 0).map(String))
  const all = [
    'outbox-event-id',
    'outbox-id',
    'outbox-topic',
    'outbox-key',
    'outbox-type',
    'outbox-attempt',
    'outbox-requeues',
    'outbox-created-at',
    'content-type',
    'headers',
    'payload',
  ]
  expect(names).toEqual([all, all, all.filter((name) => !['outbox-key', 'outbox-type', 'payload'].includes(name)), all])
  const payloads = (await observer.read('orders')).map(({ payload }) => payload)
  expect(payloads).toEqual([everyByte, everyByte.subarray(128), null, Buffer.alloc(0)])
})

test('a key lives in one shard, named by its CRC-32, and keeps its order there', async () => {
  const publisher = await connected({ shards: 8 })
  const lanes = Array.from({ length: 100 }, (_, lane) => run(5, { key: `customer-${String(lane)}` }))
  await Promise.all(lanes.map((events) => publishUntilAcknowledged(publisher, events)))
  for (const events of lanes) {
    const key = events[0]?.key ?? ''
    const stream = `{orders:${String(crc32(key) % 8)}}`
    expect(publisher.destination(event({ key }))).toBe(stream)
    expect(idsOf((await observer.read(stream)).filter((entry) => entry.key === key))).toEqual(idsOf(events))
  }
  const lengths = await Promise.all(Array.from({ length: 8 }, (_, shard) => redis.xlen(`{orders:${String(shard)}}`)))
  expect(lengths.reduce((sum, length) => sum + length)).toBe(500)
  expect(Math.min(...lengths)).toBeGreaterThan(0)
})

test('the option stream names the stream', async () => {
  const publisher = await connected({ stream: ({ topic }) => `shop.${topic}` })
  const result = await publish(publisher, run(1))
  expect(result.receipts).toMatchObject([{ destination: 'shop.orders' }])
  expect(result.receipts?.[0]?.position).toMatch(/^\d+-\d+$/)
  expect(await redis.xlen('shop.orders')).toBe(1)
})

test("a client of the user's is not used, only where it connects", async () => {
  const client = new Redis(server.url, { lazyConnect: true, enableAutoPipelining: true, db: 3 })
  const publisher = await connected({ connection: client })
  await publishUntilAcknowledged(publisher, run(1))
  expect(client.status).toBe('wait')
  await redis.select(3)
  expect(await redis.xlen('orders')).toBe(1)
  await redis.select(0)
  client.disconnect()
})

test('check names eviction, missing persistence and what could not be read', async () => {
  const publisher = await connected()
  const warned = await publisher.check()
  expect(warned.ok).toBe(true)
  expect(warned.findings.map(({ severity, what }) => `${severity}: ${what}`)).toEqual([
    'warning: appendonly is no: acknowledged events are lost when Redis stops',
  ])
  await redis.config('SET', 'maxmemory-policy', 'allkeys-lru', 'maxmemory', '1gb')
  const evicting = await publisher.check()
  await redis.config('SET', 'maxmemory-policy', 'noeviction', 'maxmemory', '0')
  expect(evicting).toMatchObject({ ok: false })
  expect(evicting.findings[0]).toMatchObject({ severity: 'error', fix: 'CONFIG SET maxmemory-policy noeviction' })

  await redis.call('ACL', 'SETUSER', 'relay', 'on', '>secret', '~*', '+@all', '-config', '-info')
  const denied = await connected({
    connection: { host: '127.0.0.1', port: server.port, username: 'relay', password: 'secret' },
  })
  expect(await denied.check()).toMatchObject({
    ok: true,
    findings: [{ severity: 'warning', what: 'Not every setting could be read' }],
  })
})
