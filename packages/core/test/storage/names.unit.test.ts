import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { namesOf, quoteIdentifier, statementName } from '../../src/storage/names.ts'

describe('an identifier', () => {
  it('is quoted, so that no name can end it', () => {
    expect(quoteIdentifier('Out-Box "v2"')).toBe('"Out-Box ""v2"""')
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (name) => {
        const quoted = quoteIdentifier(name)
        expect(quoted.slice(1, -1).replaceAll('""', '')).not.toContain('"')
        expect(quoted.slice(1, -1).replaceAll('""', '"')).toBe(name)
      }),
    )
  })
})

describe('the names of an outbox', () => {
  it('are qualified with its schema', () => {
    expect(namesOf('Out-Box "v2"').table('events')).toBe('"Out-Box ""v2""".events')
  })

  it('have a channel of at most 63 bytes that differs from schema to schema', () => {
    const schemas = ['outbox', 'Outbox', 'outbox ', 'x'.repeat(63), 'ż'.repeat(31)]
    const channels = schemas.map((schema) => namesOf(schema).channel)
    expect(new Set(channels).size).toBe(schemas.length)
    for (const channel of channels) expect(Buffer.byteLength(channel)).toBeLessThanOrEqual(63)
  })
})

describe('the name of a prepared statement', () => {
  it('differs wherever the text differs, stays the same where it does not, and fits', () => {
    const [a, b] = [statementName('find', 'select 1'), statementName('find', 'select 2')]
    expect(a).not.toBe(b)
    expect(statementName('find', 'select 1')).toBe(a)
    expect(Buffer.byteLength(a)).toBeLessThanOrEqual(63)
  })
})
