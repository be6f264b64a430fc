export { type BrokenPublisher, breakSubject, brokenPublishers } from './broken/broken-publishers.ts'
export type { ConformanceCase } from './case.ts'
export type { ConformanceSubject, Delivered, Hook, Restore } from './subject.ts'
export { conformanceCases } from './suite.ts'
