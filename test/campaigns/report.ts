import pc from 'picocolors'
import type { Figures } from './figures.ts'

const colours = pc.createColors(process.stdout.isTTY && process.env.NO_COLOR === undefined)

/** Prints the table of one run, and what did not hold. */
export function printFigures(figures: Figures): void {
  const zero = (count: number): string => (count === 0 ? colours.green('0') : colours.red(String(count)))
  const { attempts } = figures
  const rows: [string, string][] = [
    ['campaign', `${figures.campaign}, seed ${figures.seed}, ${figures.seconds} s`],
    [
      'written',
      `${figures.events} events, ${figures.transactions} transactions, ${figures.unknownCommits} unknown commits`,
    ],
    ['faults', listed(figures.faults)],
    ['leases lost', String(figures.leasesLost)],
    ['deliveries', String(figures.deliveries)],
    ['lost', zero(figures.lost)],
    ['out of order', `${zero(figures.outOfOrder)} of ${figures.pairs} pairs`],
    ['duplicates explained', `${figures.duplicates - figures.unexplained} ${listed(figures.explained)}`],
    ['duplicates unexplained', zero(figures.unexplained)],
    ['never committed', zero(figures.phantoms)],
    ['forgotten by a failover', `${figures.forgotten} transactions`],
    ['answers', `rejected ${attempts.rejected}, unavailable ${attempts.unavailable}, unknown ${attempts.unknown}`],
    ['attempts counted', String(attempts.counted)],
    ['writers were told', listed(figures.writerErrors)],
    ['quiet after', `${figures.quietMs} ms`],
  ]
  for (const [name, value] of rows) console.log(`${name.padEnd(24)} ${value}`)
  for (const what of figures.broken) console.log(colours.red(`BROKEN ${what}`))
}

function listed(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ')
}
