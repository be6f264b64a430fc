import type { Campaign } from './campaign-plan.ts'
import { brokerOutage } from './named/broker-outage.ts'
import { churn } from './named/churn.ts'
import { clockSkew } from './named/clock-skew.ts'
import { crashEvent } from './named/crash-event.ts'
import { crashLoop } from './named/crash-loop.ts'
import { cutConnections } from './named/cut-connections.ts'
import { everything } from './named/everything.ts'
import { failover, failoverPooler } from './named/failover.ts'
import { hotKey, hotKeySerialized } from './named/hot-key.ts'
import { killPostgres } from './named/kill-postgres.ts'
import { killRelays } from './named/kill-relays.ts'
import { killWriters } from './named/kill-writers.ts'
import { liars } from './named/liars.ts'
import { longTransactions } from './named/long-transactions.ts'
import { network } from './named/network.ts'
import { pauseRelays } from './named/pause-relays.ts'
import { pooler } from './named/pooler.ts'
import { rollingUpgrade } from './named/rolling-upgrade.ts'

/** Every campaign there is. */
export const catalogue: readonly Campaign[] = [
  killRelays,
  killWriters,
  pauseRelays,
  churn,
  clockSkew,
  killPostgres,
  failover,
  failoverPooler,
  pooler,
  cutConnections,
  network,
  brokerOutage,
  longTransactions,
  hotKey,
  hotKeySerialized,
  rollingUpgrade,
  crashEvent,
  crashLoop,
  everything,
  liars,
]
