import { type BrokenPublisher, breakSubject } from './broken-publisher.ts'
import { brokenContent } from './content.ts'
import { brokenDoubt } from './doubt.ts'
import { brokenEnding } from './ending.ts'
import { brokenOrder } from './order.ts'

export { type BrokenPublisher, breakSubject }

/**
 * One broken publisher for every case. An author of an adapter runs the suite on them to see that the hooks of the
 * subject show what they should: a case that no broken publisher fails proves nothing.
 */
export const brokenPublishers: readonly BrokenPublisher[] = [
  ...brokenOrder,
  ...brokenContent,
  ...brokenDoubt,
  ...brokenEnding,
]
