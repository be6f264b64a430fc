import { describe, expect, test } from 'vitest'
import { failureOf, findingsOf, type ServerSettings } from '../src/failure.ts'

describe('a reply about the server is an outage of all of it', () => {
  test.each([
    "OOM command not allowed when used memory > 'maxmemory'.",
    "READONLY You can't write against a read only replica.",
    'LOADING Redis is loading the dataset in memory',
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    'NOREPLICAS Not enough good replicas to write.',
    'CLUSTERDOWN The cluster is down',
    'BUSY Redis is busy running a script.',
    'MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist on disk.',
    'NOAUTH Authentication required.',
    'WRONGPASS invalid username-password pair or user is disabled.',
  ])('%s', (reply) => {
    for (const scope of ['script', 'entry'] as const) {
      const failure = failureOf(new Error(reply), 'orders', scope)
      expect(failure.kind).toBe('unavailable')
      expect(failure).not.toHaveProperty('destination')
    }
  })
})

describe('a reply about the stream is an outage of that stream', () => {
  test.each([
    'WRONGTYPE Operation against a key holding the wrong kind of value',
    'NOPERM this user has no permissions to access one of the keys used as arguments',
    'TRYAGAIN Multiple keys request during rehashing of slot',
    'MOVED 3999 127.0.0.1:6381',
    'ERR The stream has exhausted the last possible ID, unable to add more items',
    "ERR The user executing the script can't run this command or subcommand",
  ])('%s', (reply) => {
    expect(failureOf(new Error(reply), 'orders', 'entry')).toMatchObject({ kind: 'unavailable', destination: 'orders' })
  })
})

test('an entry that is too large is permanent, another refusal without a code of its own counts an attempt', () => {
  const kind = (reply: string) => failureOf(new Error(reply), 'orders', 'entry').kind
  expect(kind('ERR Elements are too large to be stored')).toBe('permanent')
  expect(kind('ERR wrong number of arguments')).toBe('rejected')
})

test('a refusal of the script as a whole says nothing about the event', () => {
  expect(failureOf(new Error("ERR unknown command 'EVALSHA'"), 'orders', 'script').kind).toBe('unavailable')
})

describe('check', () => {
  const safe: ServerSettings = {
    role: 'master',
    replicas: 1,
    maxmemory: '0',
    policy: 'noeviction',
    appendonly: 'yes',
    appendfsync: 'always',
    minReplicas: '1',
    maxBulkBytes: '536870912',
  }
  const used = { trims: false, fence: 'same-relay', waitReplicas: 1, maxEventBytes: 1000 } as const
  const severities = (server: Partial<ServerSettings>, options: object = {}) =>
    findingsOf({ ...safe, ...server }, { ...used, ...options }).map(({ severity }) => severity)

  test('finds nothing in safe settings', () => {
    expect(severities({})).toEqual([])
  })

  test.each<[string, Partial<ServerSettings>, object, string]>([
    ['a replica', { role: 'slave' }, {}, 'error'],
    ['eviction with a limit', { policy: 'allkeys-lru', maxmemory: '1000' }, {}, 'error'],
    ['eviction without a limit', { policy: 'allkeys-lru' }, {}, 'warning'],
    ['no append-only file', { appendonly: 'no' }, {}, 'warning'],
    ['an fsync every second', { appendfsync: 'everysec' }, {}, 'warning'],
    ['fewer replicas than waited for', { replicas: 0 }, {}, 'error'],
    ['writes without enough replicas', { minReplicas: '0' }, {}, 'warning'],
    ['a limit of the server below maxEventBytes', { maxBulkBytes: '500' }, {}, 'error'],
    ['trimming', {}, { trims: true }, 'warning'],
    ['no fence', {}, { fence: 'none' }, 'warning'],
    ['a setting that may not be read', { policy: undefined }, {}, 'warning'],
  ])('names %s', (_, server, options, severity) => {
    expect(severities(server, options)).toEqual([severity])
  })
})
