import pc from 'picocolors'
import type { StandOptions } from './stand-options.ts'
import type { Verdict } from './verdict.ts'

const colours = pc.createColors(process.stdout.isTTY && process.env.NO_COLOR === undefined)

/** Prints the table, every duplicate with its reason, and with `--json` the figures as the last line. */
export function printVerdict({ proof, broken, figures }: Verdict, options: StandOptions): void {
  const attempts = figures.attempts as Record<string, number>
  const zero = (count: number): string => (count === 0 ? colours.green('0') : colours.red(String(count)))
  const rows: [string, string][] = [
    ['publisher', options.publisher],
    ['processes', `${options.relays} relays, ${options.writers} writers`],
    ['seed', String(options.seed)],
    ['written', `${proof.written} events, ${options.keys} keys`],
    ['published', String(proof.published)],
    ['lost', zero(proof.lost.length)],
    ['out of order', zero(proof.outOfOrder.length)],
    ['duplicates', `${proof.duplicates.length}, unexplained ${zero(proof.unexplained)}`],
    ['never committed', zero(proof.phantoms.length)],
    ...Object.entries(attempts).map(([outcome, count]): [string, string] => [`attempts ${outcome}`, String(count)]),
    ['acknowledgements lost', String(figures.lostAcks)],
    ['relays killed', String(figures.killed)],
    ['seconds', String(figures.seconds)],
  ]
  for (const [name, value] of rows) console.log(`${name.padEnd(22)} ${value}`)
  for (const { eventId, why } of proof.duplicates)
    console.log(`duplicate ${eventId}: ${why ?? colours.red('UNEXPLAINED')}`)
  for (const what of broken) console.log(colours.red(`BROKEN ${what}`))
  if (options.json) console.log(JSON.stringify(figures))
}
