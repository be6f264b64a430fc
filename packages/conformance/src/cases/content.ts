import type { OutboxEvent } from '@inorder/core'
import type { CaseDefinition } from '../case.ts'
import { equal, expect, type Scene, why } from '../scene.ts'
import type { Delivered } from '../subject.ts'

/** Numbers, spaces and key order that a parser would change, and a text whose bytes are not its characters. */
const exactTexts = [
  '{"account":9007199254740993,"amount":10.00,"ratio":0.10000000000000000001,"big":1e400}',
  '{"b":2,"a":1,  "c":"é"}',
  '{"a":1,"a":2}',
  ' "\\u0000" \n',
]

/** What arrives is what was enqueued. */
export const contentCases: readonly CaseDefinition[] = [
  {
    name: 'every byte of a payload arrives unchanged',
    needs: [],
    async play(scene) {
      const payloads = [
        Uint8Array.from({ length: 256 }, (_, byte) => byte),
        Uint8Array.of(0, 0, 0, 0, 7, 0xff, 0xfe, 0x80),
      ]
      for (const payload of payloads) {
        const seen = await deliver(scene, scene.event({ payload, contentType: 'application/x-protobuf' }))
        equal(hex(seen.payload), hex(payload), 'Bytes of the payload')
      }
    },
  },
  {
    name: 'text that a parser would change arrives byte for byte',
    needs: [],
    async play(scene) {
      for (const text of exactTexts) {
        const seen = await deliver(scene, scene.event({ payload: Buffer.from(text) }))
        equal(seen.payload === null ? null : Buffer.from(seen.payload).toString(), text, 'Text of the payload')
      }
    },
  },
  {
    name: 'a payload of 1 MB arrives whole',
    needs: [],
    exempts: ({ maxEventBytes }) =>
      maxEventBytes < 1_000_000 ? `maxEventBytes is ${String(maxEventBytes)}` : undefined,
    async play(scene) {
      const payload = Buffer.alloc(1_000_000, '0123456789')
      const seen = await deliver(scene, scene.event({ payload }))
      expect(
        seen.payload !== null && payload.equals(seen.payload),
        '1,000,000 unchanged bytes',
        seen.payload?.byteLength,
      )
    },
  },
  {
    name: 'a tombstone, an empty payload and the text null stay three things',
    needs: [],
    exempts: ({ tombstones }) => (tombstones ? undefined : 'the broker has no tombstones'),
    async play(scene) {
      for (const payload of [null, new Uint8Array(), Buffer.from('null')]) {
        const seen = await deliver(scene, scene.event({ payload }))
        equal(hex(seen.payload), hex(payload), 'Payload')
      }
    },
  },
  {
    name: 'headers arrive unchanged',
    needs: [],
    exempts: ({ headers }) => (headers ? undefined : 'the broker has no headers'),
    async play(scene) {
      const headers = {
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        'Tenant-Id': 'Ärger & Söhne',
        empty: '',
        long: 'x'.repeat(1000),
      }
      const seen = await deliver(scene, scene.event({ headers }))
      for (const [name, value] of Object.entries(headers)) equal(seen.headers[name], value, `Header ${name}`)
    },
  },
  {
    name: 'the identity of an event arrives unchanged',
    needs: [],
    async play(scene) {
      const createdAt = new Date('2026-01-02T03:04:05.678Z')
      const parts: Partial<OutboxEvent>[] = [
        { key: 'customer-9', type: 'order.placed', id: '9223372036854775807', attempt: 3, requeues: 2, createdAt },
        { key: '', type: null, contentType: 'text/plain; charset=utf-8' },
        { key: null },
        { key: 'schlüssel/🔑 {1}' },
      ]
      for (const part of parts) {
        const event = scene.event(part)
        const seen = await deliver(scene, event)
        for (const name of ['eventId', 'id', 'topic', 'key', 'type', 'contentType', 'attempt', 'requeues'] as const) {
          equal(seen[name], event[name], name)
        }
        equal(seen.createdAt.getTime(), event.createdAt.getTime(), 'createdAt')
      }
    },
  },
]

/** Publishes one event and returns it as a consumer sees it. One topic serves a whole case, in one partition or several. */
async function deliver(scene: Scene, event: OutboxEvent): Promise<Delivered> {
  const result = await scene.publish([event])
  equal(result.acknowledged, 1, `Acknowledged events (${why(result)})`)
  const seen = (await scene.read([event])).findLast(({ eventId }) => eventId === event.eventId)
  expect(seen !== undefined, 'the event at the broker', 'nothing')
  return seen
}

function hex(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : Buffer.from(bytes).toString('hex')
}
