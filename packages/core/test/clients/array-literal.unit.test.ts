import { describe, expect, it } from 'vitest'
import { asParameter } from '../../src/clients/array-literal.ts'

describe('a parameter', () => {
  it('that is no array stays what it is', () => {
    const bytes = Uint8Array.of(1)
    for (const value of ['{a}', 1, true, null, bytes]) expect(asParameter(value)).toBe(value)
  })

  it.each([
    [[], '{}'],
    [['a', '', ' ', null, undefined, 'NULL'], '{"a",""," ",NULL,NULL,"NULL"}'],
    [['"', '\\', '{,}', "'"], String.raw`{"\"","\\","{,}","'"}`],
    [[1, 1.5, -1n, true], '{1,1.5,-1,true}'],
    [[Uint8Array.of(0, 255), new Uint8Array()], String.raw`{"\\x00ff","\\x"}`],
    [[Buffer.from('abcd').subarray(1, 3)], String.raw`{"\\x6263"}`],
  ])('that is an array becomes the text of one', (value, text) => {
    expect(asParameter(value)).toBe(text)
  })
})
