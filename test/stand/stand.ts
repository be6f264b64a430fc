import { constants } from 'node:os'
import { runCampaign } from './campaign.ts'
import { printVerdict } from './report.ts'
import { readStandOptions } from './stand-options.ts'
import { judge } from './verdict.ts'

// `npm run stand`: several relay and writer processes, a broker that fails, and a count of what went wrong. Exit codes:
// 0 every promise held, 1 one did not, 2 wrong options, 130 interrupted.

const options = readStandOptions(process.argv.slice(2))
const interrupted = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.once(name, () => {
    process.exitCode = 128 + constants.signals[name]
    interrupted.abort(new Error(`ended by ${name}`))
  })
}

const began = performance.now()
function say(line: string): void {
  console.error(`${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s  ${line}`)
}

try {
  const verdict = judge(await runCampaign(options, say, interrupted.signal))
  printVerdict(verdict, options)
  process.exitCode = verdict.broken.length === 0 ? 0 : 1
} catch (error) {
  if (!interrupted.signal.aborted) {
    console.error(error)
    process.exitCode = 1
  } else say('interrupted; everything was stopped and removed')
}
