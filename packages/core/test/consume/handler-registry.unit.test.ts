import { describe, expect, expectTypeOf, it } from 'vitest'
import { handlerPublisher } from '../../src/consume/handler-publisher.ts'
import { defineEvents } from '../../src/contract/event-registry.ts'
import type { OutboxEvent } from '../../src/contract/event.ts'
import { connected, event, never } from '../support/handled-event.ts'
import { shop } from '../support/shop-events.ts'

describe('with a registry', () => {
  it('a handler gets its own payload', async () => {
    const got: unknown[] = []
    const publisher = await connected(
      handlerPublisher(
        {
          'order.placed': ({ name, payload, key }) => {
            expectTypeOf(name).toEqualTypeOf<'order.placed'>()
            expectTypeOf(payload.total).toEqualTypeOf<number>()
            got.push([name, payload, key])
          },
          profiles({ payload }) {
            expectTypeOf(payload).toEqualTypeOf<{ user: string } | null>()
            got.push(payload)
          },
        },
        { events: shop },
      ),
    )
    await publisher.publish([event()], never)
    await publisher.publish([event({ topic: 'profiles', type: null, payload: null })], never)
    expect(got).toEqual([['order.placed', { id: 'o-1', total: 0 }, 'a'], null])
    // @ts-expect-error no such event
    expect(() => handlerPublisher({ 'order.payd': () => undefined }, { events: shop })).toThrow('registry')
    // @ts-expect-error a member that the payload does not have
    handlerPublisher({ stock: ({ payload: { wings } }) => typeof wings }, { events: shop })
  })

  it.each<[string, Partial<OutboxEvent>]>([
    ['a payload that its schema refuses', { payload: Buffer.from('{}') }],
    ['no JSON', { payload: Buffer.from('{') }],
    ['no payload where there must be one', { payload: null }],
  ])('%s fails at once, and no handler sees it', async (_, part) => {
    const publisher = await connected(
      handlerPublisher({ 'order.placed': () => expect.fail('handled') }, { events: shop }),
    )
    expect(await publisher.publish([event(part)], never)).toMatchObject({
      acknowledged: 0,
      failure: { kind: 'permanent', cause: { message: expect.stringContaining('/payload') as string } },
    })
  })

  it('a schema that throws is tried again', async () => {
    const validate = (): never => {
      throw new RangeError('no connection')
    }
    const events = defineEvents({
      orders: { schema: { '~standard': { version: 1, vendor: 'hand', validate } }, key: () => null },
    })
    const publisher = await connected(handlerPublisher({ orders: () => undefined }, { events }))
    expect(await publisher.publish([event()], never)).toMatchObject({ failure: { kind: 'rejected' } })
  })
})
