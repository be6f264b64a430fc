import { type BrokenPublisher, changing } from './broken-publisher.ts'

/** Publishers that deliver something else than what was enqueued. */
export const brokenContent: readonly BrokenPublisher[] = [
  {
    name: 'sends the payload as UTF-8 text',
    breaks: ['every byte of a payload arrives unchanged'],
    wrap: changing(({ payload }) => ({
      payload: payload === null ? null : Buffer.from(Buffer.from(payload).toString('utf8')),
    })),
  },
  {
    name: 'parses the payload and serialises it again',
    breaks: ['text that a parser would change arrives byte for byte'],
    wrap: changing(({ payload }) => ({ payload: reserialised(payload) })),
  },
  {
    name: 'cuts the payload at 64 KiB',
    breaks: ['an event above maxEventBytes is permanent, and stops its run there', 'a payload of 1 MB arrives whole'],
    wrap: changing(({ payload }) => ({ payload: payload?.subarray(0, 65_536) ?? null })),
  },
  {
    name: 'sends a tombstone as an empty payload',
    breaks: ['a tombstone, an empty payload and the text null stay three things'],
    wrap: changing(({ payload }) => ({ payload: payload ?? new Uint8Array() })),
  },
  {
    name: 'lower-cases the names of headers',
    breaks: ['headers arrive unchanged'],
    wrap: changing(({ headers }) => ({
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    })),
  },
  {
    name: 'takes the empty key for no key',
    breaks: ['the identity of an event arrives unchanged'],
    wrap: changing(({ key }) => ({ key: key === '' ? null : key })),
  },
]

function reserialised(payload: Uint8Array | null): Uint8Array | null {
  if (payload === null) return null
  try {
    return Buffer.from(JSON.stringify(JSON.parse(Buffer.from(payload).toString())))
  } catch {
    return payload
  }
}
