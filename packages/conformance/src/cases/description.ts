import type { RunResult } from '@inorder/core'
import type { CaseDefinition } from '../case.ts'
import { equal, expect, why } from '../scene.ts'

const failureKinds = ['rejected', 'permanent', 'transient', 'unavailable', 'unknown']

/** What a publisher says about itself, its outcomes and its broker. */
export const descriptionCases: readonly CaseDefinition[] = [
  {
    name: 'a publisher describes itself with usable values',
    needs: [],
    async play({ publisher }) {
      const { name, capabilities } = publisher
      expect(name !== '', 'a name', name)
      expect(capabilities.maxEventBytes >= 1, 'maxEventBytes of at least 1', capabilities.maxEventBytes)
      expect(
        Number.isInteger(capabilities.maxRun) && capabilities.maxRun >= 1,
        'maxRun as a whole number from 1',
        capabilities.maxRun,
      )
      expect(['key', 'total'].includes(capabilities.order), 'order key or total', capabilities.order)
      expect(['broker', 'none'].includes(capabilities.dedupe.by), 'dedupe by broker or none', capabilities.dedupe)
      expect(
        capabilities.dedupe.by === 'none' ? capabilities.dedupe.windowMs === 0 : capabilities.dedupe.windowMs > 0,
        'a dedupe window exactly when the broker dedupes',
        capabilities.dedupe,
      )
      expect(
        ['same-relay', 'takeover', 'none'].includes(capabilities.fence),
        'fence same-relay, takeover or none',
        capabilities.fence,
      )
      expect(['durable', 'memory'].includes(capabilities.confirms), 'confirms durable or memory', capabilities.confirms)
      expect(
        typeof capabilities.tombstones === 'boolean' && typeof capabilities.headers === 'boolean',
        'tombstones and headers as true or false',
        capabilities,
      )
    },
  },
  {
    name: 'the destination of an event is pure and does not depend on how often it was tried',
    needs: [],
    async play({ publisher, subject, event }) {
      const first = event()
      const destination = publisher.destination(first)
      expect(typeof destination === 'string' && destination !== '', 'a destination as text', destination)
      equal(publisher.destination(structuredClone(first)), destination, 'Destination of the same event')
      equal(publisher.destination({ ...first, attempt: 7, requeues: 2 }), destination, 'Destination of a later try')
      equal(
        subject.createPublisher().destination(first),
        destination,
        'Destination according to a publisher without connection',
      )
    },
  },
  {
    name: 'a result names a failure exactly when it acknowledges less than the run',
    needs: [],
    async play({ publish, publisher, run, event }) {
      for (const length of [1, 2, Math.min(25, publisher.capabilities.maxRun)]) {
        const events = run(length)
        mustBeWellFormed(await publish(events), length)
      }
      const aborted = await publish([event()], AbortSignal.abort(new Error('Aborted before it was called')))
      mustBeWellFormed(aborted, 1)
    },
  },
  {
    name: 'check names what is unsafe, each with its fix, and is not ok with an error among it',
    needs: [],
    async play({ publisher }) {
      const { ok, findings } = await publisher.check()
      for (const finding of findings) {
        expect(['error', 'warning'].includes(finding.severity), 'severity error or warning', finding.severity)
        expect(finding.what !== '' && finding.fix !== '', 'what is unsafe and its fix', finding)
      }
      equal(
        ok,
        findings.every(({ severity }) => severity !== 'error'),
        `ok with ${String(findings.length)} findings`,
      )
    },
  },
]

/** A prefix, and a failure of a known kind exactly when it is not the whole run. */
export function mustBeWellFormed(result: RunResult, length: number): void {
  const { acknowledged, failure, receipts } = result
  const inRange = Number.isInteger(acknowledged) && acknowledged >= 0 && acknowledged <= length
  expect(inRange, `acknowledged as a whole number from 0 to ${String(length)}`, acknowledged)
  if (acknowledged === length) expect(failure === undefined, 'no failure with a fully acknowledged run', why(result))
  else expect(failure !== undefined && failureKinds.includes(failure.kind), 'a failure of a known kind', failure)
  if (receipts !== undefined)
    expect(receipts.length <= acknowledged, 'receipts only for acknowledged events', receipts.length)
}
