export type { RabbitMqPublisherOptions } from './options.ts'
export { rabbitMqPublisher } from './publisher.ts'
export { decodeMessage, type RabbitMqMessage, shardOf } from './record.ts'
