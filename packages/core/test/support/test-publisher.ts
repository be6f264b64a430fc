import type { OutboxEvent } from '../../src/contract/event.ts'
import type { Publisher, RunResult } from '../../src/contract/publisher.ts'

/** A publisher whose broker is a function of the test. It is told about every run before it answers. */
export function testPublisher(
  publish: (run: readonly OutboxEvent[], signal: AbortSignal) => Promise<RunResult> | RunResult,
  changes: Partial<Publisher> = {},
): Publisher {
  return {
    name: 'test',
    capabilities: {
      maxEventBytes: 64 * 1024 * 1024,
      maxRun: 1000,
      order: 'key',
      dedupe: { by: 'none', windowMs: 0 },
      fence: 'same-relay',
      tombstones: true,
      headers: true,
      confirms: 'memory',
    },
    connect: () => Promise.resolve(),
    destination: ({ topic }) => topic,
    publish: async (run, signal) => publish(run, signal),
    check: () => Promise.resolve({ ok: true, findings: [] }),
    close: () => Promise.resolve(),
    ...changes,
  }
}
