import { describe, expect, it } from 'vitest'
import { OutboxError } from '../../src/contract/errors.ts'
import {
  discardRules,
  type EventFilter,
  type FilterRules,
  readFilter,
  replayRules,
  requeueRules,
  rescheduleRules,
} from '../../src/operate/filter.ts'

function refusal(filter: unknown, rules: FilterRules = requeueRules): OutboxError {
  try {
    readFilter('requeue', filter as EventFilter, rules)
  } catch (error) {
    if (error instanceof OutboxError) return error
    throw error
  }
  throw new Error('the filter was taken')
}

const uuid = '018f3c1e-0000-7000-8000-000000000001'

describe('a filter', () => {
  it.each([{}, { topic: undefined }, { ids: undefined, key: undefined }])('that is empty is refused: %o', (filter) => {
    for (const rules of [requeueRules, discardRules, rescheduleRules, replayRules])
      expect(refusal(filter, rules).code).toBe('FILTER_EMPTY')
  })

  it('is refused with everything that is wrong with it at once', () => {
    const wrong = {
      ids: [1],
      topic: '',
      key: 'a\0b',
      lane: '9223372036854775808',
      status: ['failed', 'published'],
      failedAfter: new Date(Number.NaN),
      createdBefore: '2024-01-01',
      cause: 5,
      topics: ['orders'],
    }
    const { code, problems } = refusal(wrong)
    expect(code).toBe('OPTIONS_INVALID')
    expect(problems.map(({ path }) => path).sort()).toEqual(
      Object.keys(wrong)
        .map((name) => `filter.${name}`)
        .sort(),
    )
  })

  it.each([
    ['a number for an id', { ids: [5] }],
    ['an id that is no number', { ids: ['5x'] }],
    ['an id beyond 64 bits', { ids: ['9223372036854775808'] }],
    ['a negative id', { ids: ['-1'] }],
    ['no id in the list', { ids: [] }],
    ['more ids than one call takes', { ids: Array.from({ length: 10_001 }, String) }],
    ['an id alone', { ids: '5' }],
    ['an event id that is no UUID', { eventIds: ['5'] }],
    ['both kinds of ids', { ids: ['5'], eventIds: [uuid] }],
    ['an empty list of states', { status: [] }],
    ['a state that the verb does not work on', { status: 'pending' }],
    ['a stretch of time that ends before it begins', { createdAfter: new Date(2000), createdBefore: new Date(1000) }],
    ['a stretch of no length', { failedAfter: new Date(1000), failedBefore: new Date(1000) }],
    ['nothing at all', null],
    ['text', 'orders'],
    ['a list', ['orders']],
  ])('is refused with %s', (_, filter) => {
    expect(refusal(filter).code).toBe('OPTIONS_INVALID')
  })

  it('takes what each verb knows, and no more', () => {
    expect(refusal({ publishedFrom: new Date() }).problems).toMatchObject([{ path: 'filter.publishedFrom' }])
    expect(refusal({ failedAfter: new Date() }, replayRules).problems).toMatchObject([{ path: 'filter.failedAfter' }])
    expect(refusal({ status: 'published' }, replayRules).problems).toMatchObject([{ path: 'filter.status' }])
    expect(refusal({ failedAfter: new Date() }, rescheduleRules).problems).toHaveLength(1)
  })

  it('means every state of its verb unless it names some', () => {
    expect(readFilter('requeue', { topic: 'orders' }, requeueRules).criteria.statuses).toEqual(['failed', 'held'])
    expect(readFilter('requeue', { status: 'held' }, requeueRules).criteria.statuses).toEqual(['held'])
    expect(readFilter('replay', { topic: 'orders' }, replayRules).criteria.statuses).toEqual(['published'])
  })

  it('takes an empty key, the largest id and both ends of the lanes', () => {
    const { criteria, given, text } = readFilter('requeue', { key: '', ids: ['9223372036854775807'] }, requeueRules)
    expect(criteria.key).toBe('')
    expect(given).toEqual({ column: 'id', values: ['9223372036854775807'] })
    expect(JSON.parse(text)).toEqual({ key: '', ids: ['9223372036854775807'] })
    for (const lane of ['-9223372036854775808', '9223372036854775807'])
      expect(readFilter('requeue', { lane }, requeueRules).criteria.lane).toBe(lane)
  })
})
