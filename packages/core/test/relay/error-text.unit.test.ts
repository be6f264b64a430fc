import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { errorText } from '../../src/relay/error-text.ts'

describe('the text of a failure', () => {
  it('can always be stored: no NUL, no half of a pair, at most 2,000 characters', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 50 }),
        fc.integer({ min: 1, max: 200 }),
        (units, times) => {
          const text = errorText(new Error(String.fromCharCode(...units).repeat(times)))
          expect(text.isWellFormed()).toBe(true)
          expect(text).not.toContain('\0')
          expect(Array.from(text).length).toBeLessThanOrEqual(2000)
        },
      ),
    )
  })

  it('is cut on a whole character', () => {
    for (const shift of ['', 'a']) {
      const text = errorText(shift + '\u{1f600}'.repeat(3000))
      expect(text).toMatch(/^a?(\u{1f600})+…?$/u)
    }
    expect(errorText('x'.repeat(2001))).toBe(`${'x'.repeat(1999)}…`)
    expect(errorText('x'.repeat(2000))).toBe('x'.repeat(2000))
  })

  it('names the kind, the code and the causes', () => {
    const root = Object.assign(new TypeError('socket hang up'), { code: 'ECONNRESET' })
    expect(errorText(new Error('cannot publish', { cause: root }))).toBe(
      'Error: cannot publish < TypeError [ECONNRESET]: socket hang up',
    )
  })

  it('is there for an object that has none in JSON', () => {
    for (const toJSON of [(): void => undefined, () => () => 'x', () => Symbol('x')])
      expect(errorText({ toJSON })).toBe('an error without a text')
  })

  it('ends with causes that go in a circle', () => {
    const error = new Error('round')
    error.cause = error
    expect(errorText(error)).toBe('Error: round < Error: round < Error: round < Error: round')
  })

  it.each<[string, unknown, string]>([
    ['text', 'no route', 'no route'],
    ['an object', { status: 503 }, '{"status":503}'],
    ['a number', 42, '42'],
    ['nothing', undefined, 'unknown error'],
    ['null', null, 'unknown error'],
    ['a symbol', Symbol('x'), 'Symbol(x)'],
    ['a function', () => 1, 'a function'],
    ['a BigInt', 12n, '12'],
    [
      'a hostile object',
      {
        toJSON: (): never => {
          throw new Error('no')
        },
      },
      'an error that cannot be shown',
    ],
  ])('says something of %s', (_, cause, text) => {
    expect(errorText(cause)).toBe(text)
  })

  it.each([
    ['a URL', 'connect amqp://app:hunter2@rabbit:5672/ failed', 'hunter2'],
    ['a bearer token', 'header Authorization: Bearer eyJhbGciOi.x-y_z refused', 'eyJhbGciOi'],
    ['basic credentials', 'Authorization: Basic aHVudGVyMg==', 'aHVudGVyMg'],
    ['a field', '{"user":"app","password":"hunter2"}', 'hunter2'],
    ['a parameter', 'https://sqs/?token=hunter2&x=1', 'hunter2'],
    ['a URL whose password holds an at sign', 'amqp://app:x@hunter2@rabbit/ failed', 'hunter2'],
    ['a URL whose password holds a slash', 'amqp://app:x/hunter2@rabbit/ failed', 'hunter2'],
    ['a longer name', 'client_secret=hunter2', 'hunter2'],
    ['a camel-cased name', '{"accessToken":"hunter2"}', 'hunter2'],
    ['an environment variable', 'PGPASSWORD=hunter2 psql', 'hunter2'],
    ['an account key', 'AccountKey=hunter2==', 'hunter2'],
    ['a signature', 'https://q/?X-Amz-Signature=hunter2', 'hunter2'],
    ['a header without a scheme', 'authorization: hunter2', 'hunter2'],
    ['a quoted value of several words', 'password: "correct hunter2"', 'hunter2'],
    ['a setting', 'api_key = hunter2; region = eu', 'hunter2'],
  ])('holds no secret from %s', (_, cause, secret) => {
    const text = errorText(new Error(cause))
    expect(text).not.toContain(secret)
    expect(text).toContain('***')
  })

  it('takes no longer for a broker that echoes a whole payload', () => {
    const started = performance.now()
    errorText(new Error('a'.repeat(1_000_000)))
    errorText(new Error('secret'.repeat(100_000)))
    expect(performance.now() - started).toBeLessThan(500)
  })
})
