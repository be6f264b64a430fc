import { type } from 'arktype'
import * as v from 'valibot'
import { z } from 'zod'
import { defineEvents } from '../../src/contract/event-registry.ts'

const placed = z.object({
  id: z.string().min(1),
  total: z.number().default(0),
  note: z.string().trim().optional(),
})
const paid = v.object({ order: v.string(), by: v.picklist(['card', 'cash']) })
const stock = type({ item: 'string', left: 'number >= 0' })
const profile = z.object({ user: z.string() }).nullable()

/** One registry with schemas of three libraries. */
export const shop = defineEvents({
  'order.placed': { topic: 'orders', schema: placed, key: (order) => order.id },
  'order.paid': { topic: 'orders', schema: paid, key: (payment) => payment.order },
  stock: { schema: stock, key: () => null },
  profiles: { schema: profile, key: ({ user }) => user },
})
