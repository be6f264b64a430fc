import type { Delivery } from '@inorder/relay-memory'
import type { EventState } from '../../test/stand/attempts.ts'
import { type Departure, explainDuplicates } from '../../test/stand/explain.ts'
import { proveOrder, type Proof } from '../../test/stand/order-proof.ts'
import type { LedgerEntry } from './shop.ts'

/** What the demo saw. */
export interface Evidence {
  readonly ledger: readonly LedgerEntry[]
  readonly rolledBack: number
  readonly deliveries: readonly Delivery[]
  readonly states: readonly EventState[]
  readonly departures: readonly Departure[]
  readonly outage: { readonly ms: number; readonly waited: number; readonly attempts: number; readonly failed: number }
  readonly poison: { readonly key: string; readonly ms: number; readonly rejections: number; readonly others: number }
}

export interface PromiseLine {
  readonly id: string
  readonly promise: string
  readonly held: boolean
  readonly evidence: string
}

export interface Verdict {
  readonly proof: Proof
  readonly promises: readonly PromiseLine[]
  /** False when a promise did not hold or a duplicate has no reason. */
  readonly ok: boolean
}

/** Compares what the shop committed with what the broker has. Pure. */
export function judge(evidence: Evidence): Verdict {
  const { ledger, rolledBack, deliveries, states, outage, poison } = evidence
  const arrivals = deliveries.map(({ eventId, publisher }) => ({ eventId, relay: publisher }))
  const explanations = explainDuplicates(arrivals, states, { departures: evidence.departures, lostAcks: [] })
  const proof = proveOrder(ledger, arrivals, explanations)
  const payloads = new Map(ledger.map(({ eventId, payload }) => [eventId, payload]))
  const changed = deliveries.filter(
    ({ eventId, payload }) => payloads.get(eventId)?.equals(payload ?? Buffer.alloc(0)) === false,
  ).length
  const keys = new Set(ledger.map(({ key }) => key)).size
  const unfinished = states.filter(({ status }) => status !== 'published').length
  const promises: PromiseLine[] = [
    {
      id: 'P1',
      promise: 'An event exists if and only if its transaction committed',
      held: proof.phantoms.length === 0 && states.length === ledger.length,
      evidence: `${ledger.length} committed, ${rolledBack} transactions rolled back, ${proof.phantoms.length} of their events seen`,
    },
    {
      id: 'P2',
      promise: 'Nothing that was committed gets lost',
      held: proof.lost.length === 0 && unfinished === 0,
      evidence: `lost ${proof.lost.length}, given up or left ${unfinished}`,
    },
    {
      id: 'P3',
      promise: 'First deliveries of a key are in order',
      held: proof.outOfOrder.length === 0,
      evidence: `out of order ${proof.outOfOrder.length}, over ${keys} keys`,
    },
    {
      id: 'P4',
      promise: 'A key that fails delays no other',
      held: poison.rejections > 0 && poison.others > 0,
      evidence: `${poison.others} events of other keys went out while ${poison.key} waited ${seconds(poison.ms)}`,
    },
    {
      id: 'P5',
      promise: 'An outage costs no attempts',
      held: outage.waited > 0 && outage.attempts === 0 && outage.failed === 0,
      evidence: `${outage.waited} events waited ${seconds(outage.ms)}, attempts spent ${outage.attempts}, failed ${outage.failed}`,
    },
    {
      id: 'P7',
      promise: 'The bytes arrive exactly as they were enqueued',
      held: changed === 0,
      evidence: `${deliveries.length} payloads compared, changed ${changed}`,
    },
  ]
  return { proof, promises, ok: proof.unexplained === 0 && promises.every(({ held }) => held) }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
