export type { SqsFifoPublisherOptions } from './options.ts'
export { sqsFifoPublisher } from './publisher.ts'
export { decodeMessage, groupOf, type SqsMessage } from './record.ts'
