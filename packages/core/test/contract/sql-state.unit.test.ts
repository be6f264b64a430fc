import { describe, expect, it } from 'vitest'
import { OutboxError } from '../../src/contract/errors.ts'
import { sqlFault, sqlState } from '../../src/contract/sql-state.ts'

const withCode = (code: unknown): Error =>
  Object.assign(new Error('relation "x" does not exist, deadlock detected'), { code })

describe('a failed statement says', () => {
  it.each([
    [
      'that the connection is of no use any more',
      'connection',
      ['08006', '08P01', '25006', '53300', '57P01', '57P02', '57P03', '57P05', '58030', 'XX000'],
    ],
    ['that it collided with another and may be repeated', 'conflict', ['40001', '40P01']],
    ['that the server session does not know the prepared statement', 'unprepared', ['26000', '42P05']],
    ['that the schema is not there', 'schema', ['3F000', '42P01', '42703', '42883']],
    ['that it is wrong itself', 'statement', ['22P02', '23505', '23514', '42501', '57014', '42601', '22P05']],
  ] as const)('%s', (_, fault, codes) => {
    for (const code of codes) expect([code, sqlFault(withCode(code))]).toEqual([code, fault])
  })

  it('that the connection is gone when no server said anything', () => {
    for (const error of [
      withCode('ECONNRESET'),
      withCode('EPIPE'),
      withCode(undefined),
      withCode(42),
      new Error('x'),
      'text',
      null,
      undefined,
    ]) {
      expect(sqlFault(error)).toBe('connection')
    }
  })
})

describe('a SQLSTATE', () => {
  it('is five digits or capitals, and no other code is taken for one', () => {
    expect(sqlState(withCode('42P01'))).toBe('42P01')
    for (const code of ['EPIPE1', '42p01', '4200', 42001, undefined]) expect(sqlState(withCode(code))).toBeUndefined()
  })

  // Five capitals that a socket answers with: as a SQLSTATE the statement would be blamed and the connection kept.
  it('is not what a socket says in five capitals', () => {
    expect(sqlFault(withCode('EPIPE'))).toBe('connection')
    expect(sqlFault(withCode('EBADF'))).toBe('connection')
    expect(sqlFault(withCode('EPERM'))).toBe('connection')
  })

  it.each<[string, object]>([
    ['TypeORM', { code: undefined, driverError: withCode('40001') }],
    ['Sequelize', { original: withCode('40001') }],
    ['Drizzle', { cause: withCode('40001') }],
    ['Prisma', { code: 'P2010', meta: { driverAdapterError: { cause: { originalCode: '40001' } } } }],
  ])('is found where %s keeps it', (_, fields) => {
    expect(sqlState(Object.assign(new Error('failed'), fields))).toBe('40001')
  })

  it('is neither a code of Prisma, nor inside an error of ours, nor in a circle', () => {
    expect(sqlState(withCode('P2028'))).toBeUndefined()
    expect(sqlState(withCode('P0001'))).toBe('P0001')
    expect(sqlState(new OutboxError('NOT_IN_TRANSACTION', 'over', { cause: withCode('25P02') }))).toBeUndefined()
    const circle = new Error('circle')
    circle.cause = circle
    expect(sqlState(circle)).toBeUndefined()
  })
})
