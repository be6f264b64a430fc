/** What the project promises: P1 to P8 as the README numbers them, and what follows for copies, consumers and operators. */
export const promises = {
  P1: 'an event exists if and only if its transaction committed',
  P2: 'nothing that was committed is dropped silently',
  P3: 'first deliveries of a key are in order',
  P4: 'a key or destination that fails or is slow delays no other',
  P5: 'an outage of the broker costs no attempts',
  P6: 'finding work costs what was found',
  P7: 'payloads arrive byte for byte',
  P8: 'enqueuing blocks no other writer',
  copies: 'nothing is delivered again without a reason',
  inbox: 'a copy has no effect on its consumer',
  operator: 'an operator changes what was named, once, and nothing else',
} as const

/** A test, by its file and by the title as it stands there. */
export interface NamedTest {
  readonly file: string
  readonly title: string
}

/** One line of the engine turned into a wrong one, and the test that has to notice. */
export interface Mutant {
  readonly name: string
  readonly promise: keyof typeof promises
  /** What goes wrong with it. */
  readonly breaks: string
  readonly file: string
  /** Stands in the file exactly once. */
  readonly text: string
  readonly becomes: string
  readonly test: NamedTest
  /** A test that passes all the same, where the usual one cannot. */
  readonly control?: NamedTest
}

/** Names a file of the engine. */
export const core = (path: string): string => `packages/core/src/${path}`

/** Names a test of the engine. */
export const at = (file: string, title: string): NamedTest => ({ file: `packages/core/test/${file}`, title })

/**
 * Passes with every mutant that was meant: a run, a failed try, a retry and an acknowledgement. A statement that the
 * server refuses would let any test of the relay fail, and show nothing.
 */
export const usualControl = at(
  'relay/order-and-failures.test.ts',
  'goes on with the first event that was not acknowledged when a run stops in the middle',
)

/** What is run beside the test that has to fail; nothing beside one without a server, which ends by what it throws. */
export function controlOf({ test, control }: Mutant): NamedTest | undefined {
  return test.file.endsWith('.unit.test.ts') ? undefined : (control ?? usualControl)
}

/** What is wrong with where the mutant is to be made; undefined when its text stands there exactly once. */
export function misplaced({ file, text, becomes }: Mutant, content: string): string | undefined {
  const times = content.split(text).length - 1
  if (times !== 1) return `its text stands ${times} times in ${file}`
  return text === becomes ? 'it changes nothing' : undefined
}

/** The file with the mutant in it. */
export function mutate({ text, becomes }: Mutant, content: string): string {
  const from = content.indexOf(text)
  return content.slice(0, from) + becomes + content.slice(from + text.length)
}
