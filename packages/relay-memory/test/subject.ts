import type { ConformanceSubject } from '@inorder/conformance'
import { memoryBroker, memoryPublisher } from '../src/index.ts'

/** The in-process broker as the suite sees it. */
export function memorySubject(): ConformanceSubject {
  const broker = memoryBroker()
  const unreachable = memoryBroker()
  unreachable.unavailable()
  return {
    createPublisher: () => memoryPublisher(broker, { maxEventBytes: 2_000_000 }),
    createUnreachablePublisher: () => memoryPublisher(unreachable),
    read: (destination) => Promise.resolve(broker.to(destination)),
    poison(event) {
      broker.reject({ eventId: event.eventId })
      return event
    },
    loseAcknowledgements: () => broker.loseAcknowledgement({ times: Infinity }).end,
    stall: () => broker.hang().end,
    patienceMs: 1500,
    quietMs: 60,
  }
}
