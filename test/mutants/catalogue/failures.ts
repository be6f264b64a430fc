import { at, core, type Mutant, type NamedTest } from '../mutant.ts'

const settle = core('relay/settle.ts')
const decided = (title: string): NamedTest => at('relay/settle.unit.test.ts', title)
const breaker = (title: string): NamedTest => at('relay/breaker.unit.test.ts', title)

/** What an answer of the broker means. */
export const failures: readonly Mutant[] = [
  {
    name: 'one-more-is-acknowledged',
    promise: 'P2',
    breaks: 'The event at which a run stopped is taken for published.',
    file: settle,
    text: 'acknowledgedEntries(run, written, outcome.acknowledged)',
    becomes: 'acknowledgedEntries(run, written, outcome.acknowledged + 1)',
    test: decided('that the relay itself stopped: what was acknowledged, and the lane goes on at the rest'),
  },
  {
    name: 'success-beside-a-failure-is-believed',
    promise: 'P2',
    breaks:
      'An adapter that acknowledges a whole run and reports a failure of it is taken at the better half of its word.',
    file: core('relay/outcome.ts'),
    text: "return failure === undefined ? { acknowledged } : outside('acknowledged the whole run and reported a failure')",
    becomes: 'return { acknowledged }',
    test: at('relay/outcome.unit.test.ts', 'everything, and a failure'),
  },
  {
    name: 'outage-spends-attempts',
    promise: 'P5',
    breaks: 'Every event that meets a broker which is down is a step nearer to failed.',
    file: settle,
    text: "if (failure.kind === 'unavailable') return { entries, next: stopped.id }",
    becomes: '',
    test: decided('spends nothing and writes nothing for the event that met it'),
  },
  {
    name: 'doubt-spends-attempts',
    promise: 'P5',
    breaks: 'Timeouts count although nothing says that the destination answers anybody.',
    file: settle,
    text: 'known !== undefined && judgement.acknowledgedNow > known.acknowledgedThen',
    becomes: 'known !== undefined',
    test: decided('is not counted while the destination acknowledges nobody else, and waits longer each time'),
  },
  {
    name: 'broker-waits-in-vain',
    promise: 'P5',
    breaks: 'The time that a broker asked for is spent on attempts.',
    file: settle,
    text: 'retryInMs: failure.retryAfterMs ?? backoffMs(',
    becomes: 'retryInMs: backoffMs(',
    test: decided('waits as long as the broker asked'),
  },
  {
    name: 'last-attempt-is-not-the-last',
    promise: 'P4',
    breaks: 'An event is tried once more than was asked for, and its key waits for that.',
    file: settle,
    text: 'attempts >= policy.maxAttempts',
    becomes: 'attempts > policy.maxAttempts',
    test: decided('ends the event with its last attempt, and not before'),
  },
  {
    name: 'backoff-without-cap',
    promise: 'P4',
    breaks: 'After a few failures a key waits for days.',
    file: core('relay/backoff.ts'),
    text: 'Math.min(capMs, baseMs * 2 **',
    becomes: 'Math.min(Infinity, baseMs * 2 **',
    test: at('relay/backoff.unit.test.ts', 'doubles from the base to the cap'),
  },
  {
    name: 'everybody-probes',
    promise: 'P5',
    breaks: 'A broker that comes back is met by every key at once.',
    file: core('relay/breaker.ts'),
    text: 'if (now < state.until || state.probe !== null)',
    becomes: 'if (now < state.until)',
    test: breaker('is probed by one lane at a time'),
  },
  {
    name: 'probes-without-end-of-growth',
    promise: 'P2',
    breaks: 'After a long outage nobody looks for hours whether it is over.',
    file: core('relay/breaker.ts'),
    text: 'Math.min(state.pauseMs * 2, pause.maxMs)',
    becomes: 'state.pauseMs * 2',
    test: breaker('is probed ever more rarely, up to the longest pause'),
  },
  {
    name: 'one-outage-for-all',
    promise: 'P4',
    breaks: 'A destination that is down stops all others.',
    file: core('relay/complete-run.ts'),
    text: 'failure.destination === undefined ? wholePublisher : destination',
    becomes: 'wholePublisher',
    test: at(
      'relay/broker-answers.test.ts',
      'opens the breaker of the one that is down, and the keys of the other go on',
    ),
  },
]
