export { type Latency, type MemoryBroker, type MemoryBrokerOptions, memoryBroker } from './broker.ts'
export type { Delivery, Match } from './delivery.ts'
export type { Fault } from './faults.ts'
export { type MemoryPublisherOptions, memoryPublisher } from './publisher.ts'
