import assert from 'node:assert/strict'
import type { RunResult } from '@inorder/core'
import type { CaseDefinition } from '../case.ts'
import { equal, expect, idsOf, why, within } from '../scene.ts'

/** How a publisher starts and how it ends. */
export const endingCases: readonly CaseDefinition[] = [
  {
    name: 'connect rejects when the broker cannot be reached',
    needs: ['createUnreachablePublisher'],
    async play({ subject, patienceMs }) {
      const publisher = subject.createUnreachablePublisher?.()
      if (publisher === undefined) return
      try {
        const outcome = publisher.connect(AbortSignal.timeout(patienceMs / 2)).then(
          () => 'connected',
          () => 'rejected',
        )
        equal(await within(outcome, patienceMs, 'connect to settle'), 'rejected', 'Outcome of connect without a broker')
      } finally {
        await publisher.close()
      }
    },
  },
  {
    name: 'publish reports and never rejects, whatever state it is in',
    needs: [],
    async play({ subject, publisher, event, publish, close }) {
      const fresh = subject.createPublisher()
      await mustReport('before connect', fresh.publish([event()], new AbortController().signal))
      await fresh.close()
      await mustReport('with an aborted signal', publish([event()], AbortSignal.abort(new Error('Aborted'))))
      await close()
      await mustReport('after close', publisher.publish([event()], new AbortController().signal))
    },
  },
  {
    name: 'nothing lands once close has resolved',
    needs: [],
    async play({ publisher, run, publish, close, read, readLater, patienceMs }) {
      const lanes = Array.from({ length: 20 }, (_, lane) =>
        run(Math.min(5, publisher.capabilities.maxRun), { key: `lane-${String(lane)}` }),
      )
      const inFlight = Promise.all(lanes.map((events) => publish(events)))
      await close()
      const atClose = await read(lanes.flat())
      const late = run(1, { key: 'late' })
      const afterClose = await publish(late)
      const results = await within(inFlight, patienceMs, 'publishes in flight at close to settle')
      equal(afterClose.acknowledged, 0, 'Acknowledged events of a publish after close')
      const delivered = new Set(idsOf(await readLater([...lanes.flat(), ...late])))
      equal(delivered.size, new Set(idsOf(atClose)).size, 'Events at the broker some time after close resolved')
      for (const [lane, result] of results.entries()) {
        const acknowledged = idsOf(lanes[lane] ?? []).slice(0, result.acknowledged)
        expect(
          acknowledged.every((eventId) => delivered.has(eventId)),
          'every acknowledged event at the broker',
          acknowledged,
        )
      }
    },
  },
  {
    name: 'close resolves although the broker does not answer',
    needs: ['stall'],
    async play({ event, publish, close, during, patienceMs }) {
      await during('stall', async () => {
        const inFlight = publish([event()], AbortSignal.timeout(2 * patienceMs))
        await close()
        const result = await within(inFlight, patienceMs, 'the publish in flight to settle')
        equal(result.acknowledged, 0, `Acknowledged events of a broker that does not answer (${why(result)})`)
      })
    },
  },
  {
    name: 'close can be called twice, also without a connection',
    needs: [],
    async play({ subject, close }) {
      await close()
      await assert.doesNotReject(close(), 'Expected the second close to resolve, saw a rejection')
      const fresh = subject.createPublisher()
      await fresh.close()
      await assert.doesNotReject(fresh.close(), 'Expected close without a connection to resolve twice, saw a rejection')
    },
  },
  {
    name: 'a closed publisher can be connected again',
    needs: [],
    async play({ publisher, run, publishAll, read, patienceMs }) {
      const [before, after] = [run(1), run(1)]
      await publishAll(before)
      await publisher.close()
      const outcome = publisher.connect(AbortSignal.timeout(patienceMs)).then(
        () => 'connected',
        (error: unknown) => `rejected: ${String(error)}`,
      )
      equal(
        await outcome,
        'connected',
        'Outcome of connect after close, which is how a relay replaces a stuck connection',
      )
      await publishAll(after)
      equal(idsOf(await read([...before, ...after])), idsOf([...before, ...after]), 'Delivered events')
    },
  },
]

async function mustReport(when: string, outcome: Promise<RunResult>): Promise<void> {
  const result = await outcome.catch((error: unknown) =>
    assert.fail(`Expected publish ${when} to report a failure, saw it reject with ${String(error)}`),
  )
  equal(result.acknowledged, 0, `Acknowledged events of a publish ${when}`)
  const kind = result.failure?.kind
  expect(kind === 'unavailable' || kind === 'unknown', `publish ${when} to be unavailable or unknown`, why(result))
}
