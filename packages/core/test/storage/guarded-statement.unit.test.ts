import { describe, expect, it } from 'vitest'
import { guardedStatement, readRecord } from '../../src/storage/guarded-statement.ts'

describe('a record', () => {
  it.each([
    ['()', [null]],
    ['(1)', ['1']],
    ['(1,,t)', ['1', null, 't']],
    ['(,)', [null, null]],
    ['("",a)', ['', 'a']],
    ['("a b","{1,2}","(x)")', ['a b', '{1,2}', '(x)']],
    [String.raw`("say ""hi""","back\\slash",end)`, ['say "hi"', 'back\\slash', 'end']],
    ['("line\nbreak,")', ['line\nbreak,']],
  ])('%s is read back into its columns', (text, columns) => {
    expect(readRecord(text)).toEqual(columns)
  })

  it('is not what has no end', () => {
    for (const text of ['', '(', '(1', '("a)']) expect(() => readRecord(text)).toThrow('no record')
  })
})

describe('a guarded statement', () => {
  it('keeps its values, and returns rows where the statement returns none', () => {
    const values = [[1]]
    const inner = (text: string): string => guardedStatement({ text, values }).text.split('\n')[0] ?? ''
    expect(guardedStatement({ text: 'select 1', values }).values).toBe(values)
    expect(inner('select 1')).toBe('with r as (select 1)')
    expect(inner('delete from t')).toBe('with r as (delete from t returning 1)')
    expect(inner('delete from t returning id')).toBe('with r as (delete from t returning id)')
  })
})
