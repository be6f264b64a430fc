import { describe, expect, it } from 'vitest'
import type { NewEvent } from '../../src/storage/insert-events.ts'
import { checkEvent, type EventInput } from '../../src/write/validate-event.ts'

const limits = { maxPayloadBytes: 100, serialize: undefined }
const good: EventInput = { topic: 'orders', key: 'a', payload: { x: 1 } }

function eventOf(changes: Partial<EventInput>): NewEvent {
  const checked = checkEvent({ ...good, ...changes }, limits)
  if ('problems' in checked) throw new Error(JSON.stringify(checked.problems))
  return checked.event
}

function pathsOf(changes: object): string[] {
  const checked = checkEvent({ ...good, ...changes }, limits)
  return 'problems' in checked ? checked.problems.map(({ path }) => path) : []
}

describe('an event', () => {
  it('with nothing but topic, key and payload is written for now, in the mode of the outbox', () => {
    expect(eventOf({})).toEqual({
      eventId: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      chosenId: false,
      topic: 'orders',
      key: 'a',
      type: null,
      payload: Buffer.from('{"x":1}'),
      contentType: 'application/json',
      headers: '{}',
      ordering: null,
      delayMs: null,
      availableAt: null,
    })
  })

  it('keeps everything that was given', () => {
    const given = {
      key: null,
      type: 'order.placed',
      contentType: 'x/y',
      ordering: 'total',
      headers: { a: 'b' },
      payload: null,
    } as const
    expect(eventOf({ ...given, eventId: 'F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6', availableAt: new Date(1) })).toEqual({
      ...given,
      topic: 'orders',
      headers: '{"a":"b"}',
      eventId: 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6',
      chosenId: true,
      delayMs: null,
      availableAt: '1970-01-01T00:00:00.001Z',
    })
  })

  it('takes members that are undefined for absent', () => {
    const nothing = {
      type: undefined,
      headers: undefined,
      contentType: undefined,
      ordering: undefined,
      eventId: undefined,
      delayMs: undefined,
      availableAt: undefined,
    }
    expect(pathsOf(nothing)).toEqual([])
  })

  it('is refused with everything that is wrong, not only the first', () => {
    const paths = pathsOf({
      topic: '',
      key: 1,
      payload: 1n,
      type: '',
      contentType: '',
      ordering: 'fifo',
      eventId: 'x',
      delayMs: -1,
      headers: [],
      extra: 1,
    })
    expect(paths).toEqual([
      '/extra',
      '/topic',
      '/key',
      '/type',
      '/contentType',
      '/ordering',
      '/eventId',
      '/delayMs',
      '/headers',
      '/payload',
    ])
  })

  it.each<[string, object, string[]]>([
    ['a payload of as many bytes as allowed', { payload: Buffer.alloc(100) }, []],
    ['a payload with one byte more', { payload: Buffer.alloc(101) }, ['/payload']],
    ['a payload whose text is short and whose bytes are many', { payload: 'é'.repeat(50) }, ['/payload']],
    ['no delay', { delayMs: 0 }, []],
    ['a delay of a century', { delayMs: 100 * 365 * 24 * 3600 * 1000 }, []],
    ['a delay of more', { delayMs: 100 * 365 * 24 * 3600 * 1000 + 1 }, ['/delayMs']],
    ['a delay without end', { delayMs: Infinity }, ['/delayMs']],
    ['a delay that is none', { delayMs: Number.NaN }, ['/delayMs']],
    ['a delay as text', { delayMs: '5' }, ['/delayMs']],
    ['a date that is none', { availableAt: new Date(Number.NaN) }, ['/availableAt']],
    ['a date before 1970', { availableAt: new Date(-1) }, ['/availableAt']],
    ['a date after the year 9999', { availableAt: new Date('+010000-01-01T00:00:00Z') }, ['/availableAt']],
    ['a date as text', { availableAt: '2030-01-01' }, ['/availableAt']],
    ['a delay and a date', { delayMs: 1, availableAt: new Date(1) }, ['/availableAt']],
    ['a key of 1,024 bytes', { key: 'é'.repeat(512) }, []],
    ['a key of 1,025 bytes', { key: `${'é'.repeat(512)}a` }, ['/key']],
    ['an empty key', { key: '' }, []],
    ['a key that is undefined', { key: undefined }, ['/key']],
    ['a topic of 255 bytes', { topic: 't'.repeat(255) }, []],
    ['a topic of 256 bytes', { topic: 't'.repeat(256) }, ['/topic']],
    ['a header of 65,536 bytes', { headers: { a: 'x'.repeat(65_536) } }, []],
    ['a header of 65,537 bytes', { headers: { a: 'x'.repeat(65_537) } }, ['/headers/a']],
    ['a header whose name needs escaping', { headers: { 'a/b~': {} } }, ['/headers/a~1b~0']],
    ['a header that claims an identity', { headers: { 'outbox-x': 'y' } }, ['/headers/outbox-x']],
  ])('is judged at its limits: %s', (_, changes, paths) => {
    expect(pathsOf(changes)).toEqual(paths)
  })

  it.each([null, undefined, 'text', 1, () => 1])('is an object: %s is none', (input) => {
    expect(checkEvent(input as never, limits)).toEqual({ problems: [{ path: '', message: 'must be an object' }] })
  })
})
