import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { gate } from '../support/gate.ts'
import { inboxAccount } from '../support/inbox-account.ts'

const account = await inboxAccount()
const { pool, inbox } = account
afterAll(() => account[Symbol.asyncDispose]())

describe('an event', () => {
  it('has its effect once, and is a duplicate from then on, which is no error', async () => {
    const [eventId, before] = [randomUUID(), await account.balance()]
    expect(await account.deposit(eventId)).toEqual({ duplicate: false, result: 1 })
    for (let copy = 0; copy < 4; copy++)
      expect(await account.deposit(eventId.toUpperCase())).toEqual({ duplicate: true })
    expect(await account.balance()).toBe(before + 1)
  })

  it('that comes in 20 copies at once has its effect once; the others wait and are duplicates', async () => {
    const [eventId, before] = [randomUUID(), await account.balance()]
    const { opened, open } = gate()
    const copies = Array.from({ length: 20 }, () => account.deposit(eventId, { then: () => opened }))
    await account.waiting(19)
    open()
    const processed = await Promise.all(copies)
    expect(processed.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
    expect(await account.balance()).toBe(before + 1)
  })

  it.each(['repeatable read', 'serializable'])(
    'that comes in copies under %s has its effect once; a copy that lost says what to do, and doing it reports a duplicate',
    async (level) => {
      const [eventId, before] = [randomUUID(), await account.balance()]
      const [inside, done] = [gate(), gate()]
      const first = account.deposit(eventId, {
        level,
        then() {
          inside.open()
          return done.opened
        },
      })
      await inside.opened
      const second = account.deposit(eventId, { level })
      await account.waiting(1).finally(done.open)
      expect(await Promise.allSettled([first, second])).toMatchObject([
        { value: { duplicate: false, result: 1 } },
        {
          reason: {
            code: '40001',
            message: expect.stringContaining(`A copy of event ${eventId} was processed meanwhile`) as string,
          },
        },
      ])
      expect(await account.deposit(eventId, { level })).toEqual({ duplicate: true })
      expect(await account.balance()).toBe(before + 1)
    },
  )

  it('is handled by every consumer for itself', async () => {
    const [eventId, before] = [randomUUID(), await account.balance()]
    for (const by of ['billing', 'mail', 'mail', 'billing']) await account.deposit(eventId, { by })
    expect(await account.balance()).toBe(before + 2)
    expect(await account.noted(eventId)).toEqual(['billing', 'mail'])
  })
})

describe('an effect that throws', () => {
  it('leaves neither a note nor what it wrote, and is run again when the event comes again', async () => {
    const [eventId, before] = [randomUUID(), await account.balance()]
    const fault = new Error('the card service is down')
    await expect(account.deposit(eventId, { then: () => Promise.reject(fault) })).rejects.toBe(fault)
    expect([await account.noted(eventId), await account.balance()]).toEqual([[], before])
    expect(await account.deposit(eventId)).toEqual({ duplicate: false, result: 1 })
    expect(await account.balance()).toBe(before + 1)
  })

  it('leaves no note even where its error is swallowed and the transaction commits', async () => {
    const eventId = randomUUID()
    const client = await pool.connect()
    await client.query('begin')
    const thrown = inbox.processOnce(client, { consumer: 'billing', eventId }, () => {
      throw new Error('swallowed')
    })
    await expect(thrown).rejects.toThrow('swallowed')
    await client.query('commit')
    client.release()
    expect(await account.noted(eventId)).toEqual([])
  })

  it('keeps its own error where a statement of it failed, and leaves nothing', async () => {
    const eventId = randomUUID()
    await expect(
      account.deposit(eventId, {
        then: async (tx) => {
          await tx.query('select 1 / 0')
        },
      }),
    ).rejects.toMatchObject({ code: '22012' })
    expect(await account.noted(eventId)).toEqual([])
  })

  it('does not make the copies that wait for it duplicates: the next one runs', async () => {
    const [eventId, before] = [randomUUID(), await account.balance()]
    const [inside, done] = [gate(), gate()]
    const first = account.deposit(eventId, {
      async then() {
        inside.open()
        await done.opened
        throw new Error('late')
      },
    })
    await inside.opened
    const second = account.deposit(eventId)
    await account.waiting(1).finally(done.open)
    expect(await Promise.allSettled([first, second])).toMatchObject([
      { reason: { message: 'late' } },
      { value: { duplicate: false, result: 1 } },
    ])
    expect(await account.balance()).toBe(before + 1)
  })
})

it('a backend that dies between effect and commit leaves neither, and the redelivery has the effect once', async () => {
  const [eventId, before] = [randomUUID(), await account.balance()]
  const killed = account.deposit(eventId, {
    then: async (tx) => {
      const { processID } = tx as pg.PoolClient & { processID: number }
      await pool.query('select pg_terminate_backend($1)', [processID])
    },
  })
  await expect(killed).rejects.toThrow()
  expect([await account.noted(eventId), await account.balance()]).toEqual([[], before])
  await account.deposit(eventId)
  expect([await account.noted(eventId), await account.balance()]).toEqual([['billing'], before + 1])
})
