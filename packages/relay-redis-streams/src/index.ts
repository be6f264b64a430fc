export type { RedisStreamsOptions } from './options.ts'
export { redisStreamsPublisher } from './publisher.ts'
export { decodeEntry, entryFields, type StreamEntry, streamOf, type Trim } from './record.ts'
