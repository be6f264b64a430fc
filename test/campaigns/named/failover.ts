import { startProxy, startStandby } from '@inorder/harness'
import type { Campaign } from '../campaign-plan.ts'
import type { Evidence } from '../evidence.ts'
import { wallTime } from '../faults.ts'
import { serverSettings, type Stage } from '../stage.ts'
import { lasting } from '../tempo.ts'

/** How many transactions the standby has not got when it is promoted. */
const lag = 200
/** A lease outlives the lag, so that relays go on under what the new server remembers of their slots. */
const busy = { hands: 8, pauseMs: 15, leaseMs: 10_000 } as const

/**
 * The primary dies and a standby takes its place that is behind: what the last transactions wrote is gone, rows that
 * relays had settled are pending again, and ids that were given out are given out again, to other events.
 */
export const failover: Campaign = {
  name: 'failover',
  about: `a standby is promoted that is about ${lag} transactions behind, at an address that moves`,
  stage: { ...busy, route: 'proxy' },
  disturb: failOverAgainAndAgain,
  check: findNoReuse,
}

/** The same, hidden from relays and writers: their connections to the pooler live on. */
export const failoverPooler: Campaign = {
  name: 'failover-pooler',
  about: 'the same behind PgBouncer in transaction mode, which keeps the connections of relays and writers',
  needs: ['pgbouncer'],
  stage: { ...busy, route: 'pooler' },
  disturb: failOverAgainAndAgain,
  check: findNoReuse,
}

/** Ids that came back are what makes a failover more than a restart; without any this campaign has shown nothing. */
function findNoReuse({ transactions }: Evidence): string[] {
  const seen = new Map<string, string>()
  for (const { events } of transactions) {
    for (const { id, eventId } of events) {
      if ((seen.get(id) ?? eventId) !== eventId) return []
      seen.set(id, eventId)
    }
  }
  return ['no id was given out twice']
}

async function failOverAgainAndAgain(stage: Stage, until: AbortSignal): Promise<void> {
  do await failOver(stage)
  while (await lasting(1000 + stage.random.below(2000), until))
}

export async function failOver(stage: Stage): Promise<void> {
  const { postgres, relays, writers, random, faults, say } = stage
  await using wal = await startProxy(postgres.port)
  const standby = await startStandby(postgres, { via: wal.port, settings: serverSettings })
  say('a standby follows')
  await writers.written(lag)

  const cutAt = wallTime()
  wal.refuse(true)
  wal.reset()
  // A relay leaves, and the new server will think that it still owns what others have taken meanwhile.
  const leaver = relays.names.length > 1 ? random.pick(relays.names) : undefined
  await Promise.all([writers.written(lag), leaver === undefined ? undefined : relays.stop(leaver)])
  const over = faults.begin('failover')
  say(`PostgreSQL dies, and the standby is promoted without its last ${lag} transactions`)
  await postgres.kill()
  await standby.promote()
  stage.promoted(standby, cutAt)
  over()
  // Long enough for the ids that come back to be given out again.
  await Promise.all([writers.written(lag), leaver === undefined ? undefined : relays.start()])
}
