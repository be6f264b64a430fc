import type { SqlClient, Statement } from '@inorder/core'
import { freshDatabase } from '@inorder/harness'
import { describe, expect, it } from 'vitest'
import { type CampaignOptions, runCampaign } from './campaign.ts'

/** Longer for a night: INORDER_STRESS_SECONDS=600. */
const seconds = Number(process.env['INORDER_STRESS_SECONDS'] ?? 3)
const seed = Number(process.env['INORDER_STRESS_SEED'] ?? 1)
const hold = { onExhausted: 'hold' } as const

const campaigns: Record<string, Partial<CampaignOptions>> = {
  'ten writers and two relays': {},
  'events that are held and put back in line': { relayOptions: hold },
  'arrivals that reach their limit in almost every find': { relayOptions: { findLimit: 3 } },
  'room for eight events': { relayOptions: { maxInFlight: 8, ...hold } },
  'one event at a time': { relayOptions: { maxRun: 1 } },
  'a connection cut twice a second': { cutEveryMs: 500, relayOptions: hold },
  'a relay that dies and is replaced': { kill: true },
  'a relay that dies while connections are cut': { kill: true, cutEveryMs: 700, relayOptions: hold },
}

describe('nothing is lost, nothing overtakes and no copy is unexplained, under', () => {
  it.each(Object.entries(campaigns))(
    '%s',
    async (_, options) => {
      const result = await runCampaign({ url: await freshDatabase(), seconds, seed, ...options })
      expect(result).toMatchObject({ lost: 0, phantoms: 0, outOfOrder: 0, unexplained: 0, left: 0 })
      expect(result.pairs).toBeGreaterThan(20)
      expect(result.duplicates).toBeGreaterThan(0)
    },
    seconds * 1000 + 60_000,
  )
})

describe('the campaign notices', () => {
  it('an engine that reads on from the last snapshot without its list of open transactions', async () => {
    const result = await runCampaign({
      url: await freshDatabase(),
      seconds: 4,
      seed,
      quietMs: 3000,
      relayOptions: { sweepIntervalMs: 60_000 },
      alter: (client) => withStatements(client, forgetOpenTransactions),
    })
    expect(result.left + result.outOfOrder + result.lost).toBeGreaterThan(0)
  }, 60_000)

  it('an engine that overlooks what arrived in a lane in flight', async () => {
    const result = await runCampaign({
      url: await freshDatabase(),
      seconds: 4,
      seed,
      quietMs: 3000,
      relayOptions: { sweepIntervalMs: 60_000 },
      alter: (client) => withStatements(client, overlookBusyArrivals),
    })
    expect(result.left + result.outOfOrder + result.lost).toBeGreaterThan(0)
  }, 60_000)
})

function withStatements<Tx, Db>(
  client: SqlClient<Tx, Db>,
  change: (statement: Statement) => Statement,
): SqlClient<Tx, Db> {
  return {
    ...client,
    async connect() {
      const connection = await client.connect()
      return { ...connection, run: (statement: Statement) => connection.run(change(statement)) }
    },
  }
}

const isFind = ({ name }: Statement): boolean => name?.startsWith('inorder_find') === true

function forgetOpenTransactions(statement: Statement): Statement {
  return isFind(statement)
    ? { ...statement, values: statement.values.map((value, index) => (index === 1 ? [] : value)) }
    : statement
}

function overlookBusyArrivals(statement: Statement): Statement {
  return isFind(statement)
    ? {
        name: `${statement.name ?? ''}_altered`,
        text: statement.text.replace('l.lane, l.arrived, e.*', 'l.lane, null::bigint, e.*'),
        values: statement.values,
      }
    : statement
}
