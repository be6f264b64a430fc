import type { Rule } from './rule.ts'
import { namesPromise, type Search } from './spin.ts'

/** The last line of a trace names the promise that it breaks. */
export function brokenPromise({ steps }: Search): string {
  return namesPromise.exec(steps.at(-1) ?? '')?.[1] ?? ''
}

/** Steps before the one that says what is broken. */
export function traceLength({ steps }: Search): number {
  return Math.max(0, steps.length - 1)
}

/** The kept form of a counterexample. */
export function traceText(rule: Rule, found: Search): string {
  const relays = Number(rule.within['RELAYS'] ?? 1)
  const steps = found.steps.map((step) => inWords(step, relays))
  const end = (steps.at(-1) ?? '').replace(namesPromise, '').trim()
  return `# ${rule.name}

${rule.rule}

Without it (\`${rule.without}\`) this breaks ${promiseNames[brokenPromise(found)] ?? 'a promise'}:

${steps
  .slice(0, -1)
  .map((step, index) => `${String(index + 1)}. ${step}`)
  .join('\n')}

So ${end}
`
}

const promiseNames: Readonly<Record<string, string>> = {
  P2: 'P2, every committed event is published',
  P3: 'P3, first deliveries are in causal order',
  Attempts: 'the count of attempts',
  Repeats: 'the promise that repeats have a reason',
}

/** Sets are printed as `{ A B }`. With one relay there is no need to number it. */
function inWords(step: string, relays: number): string {
  const named = step.replace(/\{([^}]*)\}/g, (_, inside: string) => inside.trim().split(/\s+/).join(', ') || 'nothing')
  const worded = named.replaceAll('the arrivals nothing', 'no arrivals').replaceAll('the run nothing', 'no run')
  const plain = relays > 1 ? worded : worded.replace(/^Relay 1:/, 'The relay:')
  return plain
    .replace(/^((?:The relay|Relay \d)): /, '$1 ')
    .replace(/^(The relay|Relay \d) (find|sweep|settle) /, "$1's $2 ")
}
