import type { Evidence, Verdict } from './promises.ts'
import type { Screen } from './screen.ts'

/** Prints the count and, for every promise, whether it held. */
export function printTable(screen: Screen, { deliveries }: Evidence, { proof, promises }: Verdict): void {
  const zero = (count: number): string => (count === 0 ? screen.good('0') : screen.bad(String(count)))
  const width = Math.max(...promises.map(({ promise }) => promise.length))
  screen.line('')
  screen.line(`written        ${proof.written}`)
  screen.line(`published      ${proof.published}  ${screen.faint(`in ${deliveries.length} deliveries`)}`)
  screen.line(`lost           ${zero(proof.lost.length)}`)
  screen.line(`out of order   ${zero(proof.outOfOrder.length)}`)
  screen.line(`duplicates     ${proof.duplicates.length}  ${screen.faint('unexplained')} ${zero(proof.unexplained)}`)
  const reasons = new Map<string, number>()
  for (const { why } of proof.duplicates) if (why !== undefined) reasons.set(why, (reasons.get(why) ?? 0) + 1)
  for (const [why, count] of reasons) screen.line(screen.faint(`               ${count} because ${why}`))
  screen.line('')
  for (const { id, promise, held, evidence } of promises) {
    const word = held ? screen.good('held    ') : screen.bad('NOT HELD')
    screen.line(`${screen.strong(id)}  ${promise.padEnd(width)}  ${word}  ${screen.faint(evidence)}`)
  }
}
