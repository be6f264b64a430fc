import { describe, expect, it } from 'vitest'
import { findingsOf, metadataFailure, verdictOf } from '../src/failure.ts'

/** An error as kafkajs wraps it: its own around that of the broker. */
function wrapped(type: string, code: number): Error {
  const inner = Object.assign(new Error(type), { name: 'KafkaJSProtocolError', type, code })
  return Object.assign(new Error(type, { cause: inner }), { name: 'KafkaJSNumberOfRetriesExceeded' })
}

describe('what became of a batch', () => {
  it.each([
    ['MESSAGE_TOO_LARGE', 10],
    ['RECORD_LIST_TOO_LARGE', 18],
    ['INVALID_TIMESTAMP', 32],
    ['POLICY_VIOLATION', 44],
    ['INVALID_RECORD', 87],
  ])('is known with an answer about its records: %s', (type, code) => {
    expect(verdictOf(wrapped(type, code))).toBe('record')
  })

  it.each([
    ['UNKNOWN_TOPIC_OR_PARTITION', 3],
    ['TOPIC_AUTHORIZATION_FAILED', 29],
    ['INVALID_TOPIC_EXCEPTION', 17],
  ])('is known with an answer about its topic: %s', (type, code) => {
    expect(verdictOf(wrapped(type, code))).toBe('topic')
  })

  it.each([
    ['NOT_ENOUGH_REPLICAS', 19],
    ['NOT_ENOUGH_REPLICAS_AFTER_APPEND', 20],
    ['REQUEST_TIMED_OUT', 7],
    ['NOT_LEADER_FOR_PARTITION', 6],
    ['OUT_OF_ORDER_SEQUENCE_NUMBER', 45],
  ])('is unknown with everything that an earlier try may not have met: %s', (type, code) => {
    expect(verdictOf(wrapped(type, code))).toBe('unknown')
  })

  it.each([new Error('connect ECONNREFUSED'), 'text', undefined, null, { cause: { cause: {} } }])(
    'is unknown with whatever else is thrown',
    (error) => {
      expect(verdictOf(error)).toBe('unknown')
    },
  )
})

describe('metadata that cannot be read', () => {
  it('is an outage of the topic alone that is not there, and says what to do', () => {
    expect(metadataFailure(wrapped('UNKNOWN_TOPIC_OR_PARTITION', 3), 'orders')).toMatchObject({
      kind: 'unavailable',
      destination: 'orders',
      cause: expect.objectContaining({ message: expect.stringContaining('Create it') as string }) as Error,
    })
  })

  it('is an outage of the whole broker when the connection is', () => {
    const failure = metadataFailure(new Error('ECONNREFUSED'), 'orders')
    expect(failure.kind).toBe('unavailable')
    expect(failure.destination).toBeUndefined()
  })
})

describe('the settings of a topic', () => {
  const safe = {
    topic: 'orders',
    partitions: 6,
    partitionsBefore: undefined,
    leastReplicas: 3,
    withoutLeader: 0,
    config: {
      'min.insync.replicas': '2',
      'unclean.leader.election.enable': 'false',
      'cleanup.policy': 'delete',
      'max.message.bytes': '1048588',
    },
  }

  it('that are safe give no finding', () => {
    expect(findingsOf(safe, 1_000_000)).toEqual([])
  })

  it.each([
    [{ leastReplicas: 1, config: { ...safe.config, 'min.insync.replicas': '1' } }, 'one replica'],
    [{ config: { ...safe.config, 'min.insync.replicas': '1' } }, 'an acknowledgement can mean one replica'],
    [{ config: { ...safe.config, 'min.insync.replicas': '4' } }, 'every write is refused'],
    [{ config: { ...safe.config, 'unclean.leader.election.enable': 'true' } }, 'may become leader'],
    [{ config: { ...safe.config, 'cleanup.policy': 'compact,delete' } }, 'compaction'],
    [{ config: { ...safe.config, 'max.message.bytes': '1000' } }, 'max.message.bytes is 1000'],
    [{ partitionsBefore: 3 }, 'keys have moved'],
    [{ withoutLeader: 2 }, '2 partitions have no leader'],
  ])('are named where they are not: %o', (changes, words) => {
    const findings = findingsOf({ ...safe, ...changes }, 1_000_000)
    expect(findings.map(({ what }) => what)).toEqual([expect.stringContaining(words)])
    expect(findings.every(({ fix }) => fix !== '')).toBe(true)
  })
})
