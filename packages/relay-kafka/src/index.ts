export type { KafkaPublisherOptions } from './options.ts'
export { kafkaPublisher } from './publisher.ts'
export { decodeRecord, type KafkaRecord, murmur2, partitionOf } from './record.ts'
