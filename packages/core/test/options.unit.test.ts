import { describe, expect, it } from 'vitest'
import { OutboxError } from '../src/contract/errors.ts'
import { defineEvents } from '../src/contract/event-registry.ts'
import type { Publisher } from '../src/contract/publisher.ts'
import { readOutboxOptions, readRelayOptions, type RelayOptions } from '../src/options.ts'

const client = { name: 'none', session: 0, transaction: 0, connect: 0 } as never
const capabilities = { maxEventBytes: 1, maxRun: Infinity, dedupe: { by: 'none', windowMs: 0 } }
const publisher = {
  ...Object.fromEntries(['name', 'connect', 'destination', 'publish', 'check', 'close'].map((member) => [member, 0])),
  capabilities,
} as unknown as Publisher

function problemsOf(read: () => unknown): string[] {
  try {
    read()
  } catch (error) {
    if (error instanceof OutboxError && error.code === 'OPTIONS_INVALID') return error.problems.map(({ path }) => path)
    throw error
  }
  return []
}
const relayProblems = (options: object): string[] => problemsOf(() => readRelayOptions({ publisher, ...options }))

describe('the options of an outbox', () => {
  it('are its client and usual values for the rest', () => {
    expect(readOutboxOptions({ client })).toEqual({ client, schema: 'outbox', maxPayloadBytes: 1024 * 1024 })
    expect(readOutboxOptions({ client, schema: undefined as never })).toMatchObject({ schema: 'outbox' })
  })

  it('are refused all at once', () => {
    const bad = { schema: '', maxPayloadBytes: 64 * 1024 * 1024 + 1, serialize: 'json', shema: 'x' }
    expect(problemsOf(() => readOutboxOptions(bad as never))).toEqual([
      'schema',
      'maxPayloadBytes',
      'serialize',
      'shema',
      'client',
    ])
  })

  it('take a registry and nothing that only looks like one, and serializeWrites as a yes or no', () => {
    expect(problemsOf(() => readOutboxOptions({ client, serializeWrites: false, events: defineEvents({}) }))).toEqual(
      [],
    )
    for (const bad of [{ events: {} }, { events: { definitions: {} } }, { serializeWrites: 'yes' }])
      expect(problemsOf(() => readOutboxOptions({ client, ...bad } as never))).toEqual(Object.keys(bad))
  })
})

describe('the options of a relay', () => {
  const milliseconds = Object.keys(readRelayOptions({ publisher })).filter(
    (name) => name.endsWith('Ms') && name !== 'retainPublishedMs',
  )

  it('are its publisher and the documented values for the rest', () => {
    expect(readRelayOptions({ publisher })).toMatchObject({
      group: 'default',
      topics: null,
      pollMinMs: 10,
      pollMaxMs: 200,
      findLimit: 1000,
      maxRun: 100,
      maxRunBytes: 1024 * 1024,
      maxInFlight: 10_000,
      maxInFlightBytes: 64 * 1024 * 1024,
      maxInFlightPerDestination: 2500,
      publishTimeoutMs: 5000,
      publishGraceMs: 1000,
      leaseMs: 10_000,
      backoffBaseMs: 1000,
      backoffCapMs: 60_000,
      maxAttempts: 10,
      onExhausted: 'continue',
      breakerMinMs: 100,
      breakerMaxMs: 2000,
      listen: true,
    })
  })

  it('retain published events for any time up to a hundred years, for none, or for ever', () => {
    for (const retainPublishedMs of [0, 0.5, 2 ** 31, Infinity])
      expect(relayProblems({ retainPublishedMs })).toEqual([])
    for (const retainPublishedMs of [-1, NaN, 4e12, '7 days'])
      expect(relayProblems({ retainPublishedMs })).toEqual(['retainPublishedMs'])
  })

  it('take no time that a timer cannot hold, because it would fire at once', () => {
    expect(milliseconds.length).toBeGreaterThan(8)
    for (const name of milliseconds) {
      expect(relayProblems({ [name]: 2 ** 31 })).toContain(name)
      expect(relayProblems({ [name]: Infinity })).toContain(name)
      expect(relayProblems({ [name]: -1 })).toContain(name)
      expect(relayProblems({ [name]: '100' })).toContain(name)
    }
  })

  it.each<[keyof RelayOptions, keyof RelayOptions]>([
    ['pollMaxMs', 'pollMinMs'],
    ['backoffCapMs', 'backoffBaseMs'],
    ['breakerMaxMs', 'breakerMinMs'],
  ])('%s is at least %s, given or not', (most, least) => {
    expect(relayProblems({ [most]: 50, [least]: 51 })).toEqual([most])
    expect(relayProblems({ [most]: 50, [least]: 50 })).toEqual([])
    expect(relayProblems({ [least]: 1_000_000 })).toEqual([])
    expect(readRelayOptions({ publisher, [least]: 1_000_000 })[most]).toBe(1_000_000)
  })

  it('take Infinity where it is the strict mode, and nowhere else', () => {
    expect(relayProblems({ maxAttempts: Infinity })).toEqual([])
    for (const name of ['findLimit', 'maxRun', 'maxInFlight', 'maxInFlightBytes']) {
      expect(relayProblems({ [name]: Infinity })).toEqual([name])
    }
  })

  it.each<[string, unknown]>([
    ['none', undefined],
    ['a number in their place', 7],
    ['no longest run', { ...capabilities, maxRun: undefined }],
    ['a longest run of nothing', { ...capabilities, maxRun: 0 }],
    ['a longest run that is no number', { ...capabilities, maxRun: NaN }],
    ['a largest event below zero', { ...capabilities, maxEventBytes: -1 }],
    ['no window of deduplication', { ...capabilities, dedupe: undefined }],
    ['a window that is a text', { ...capabilities, dedupe: { by: 'broker', windowMs: '5 min' } }],
  ])('refuse a publisher whose capabilities are nonsense: %s', (_, given) => {
    expect(new Set(relayProblems({ publisher: { ...publisher, capabilities: given } }))).toEqual(new Set(['publisher']))
  })

  it('are refused all at once, missing and unknown ones included', () => {
    const bad = {
      publsher: publisher,
      maxRun: 0,
      topics: [],
      onExhausted: 'drop',
      listen: 1,
      pollMinMs: 300,
      pollMaxMs: 200,
    }
    expect(problemsOf(() => readRelayOptions(bad as never)).toSorted()).toEqual(
      ['publsher', 'publisher', 'maxRun', 'topics', 'onExhausted', 'listen', 'pollMaxMs'].toSorted(),
    )
    for (const nothing of [undefined, null, 'fast'])
      expect(problemsOf(() => readRelayOptions(nothing as never))).toEqual(['options'])
    expect(problemsOf(() => readRelayOptions({ publisher: { name: 'half' } as never }))).toEqual(['publisher'])
  })
})
