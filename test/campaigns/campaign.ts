import { constants } from 'node:os'
import { available } from '@inorder/harness'
import { readCampaignOptions } from './campaign-options.ts'
import { catalogue } from './catalogue.ts'
import { readFigures } from './figures.ts'
import { judge } from './judge.ts'
import { keepEvidence } from './keep-evidence.ts'
import { printFigures } from './report.ts'
import { runCampaign } from './run-campaign.ts'
import { saveResult } from './results.ts'

// `npm run campaign -- NAME`: relay and writer processes, one kind of trouble, and a comparison of what was written with
// what the broker has. Exit codes: 0 every invariant held, 1 one did not, 2 wrong options, 130 interrupted.

const list = catalogue.map(({ name, about }) => `  ${name.padEnd(18)} ${about}`).join('\n')
const options = readCampaignOptions(process.argv.slice(2), list)
const campaign = catalogue.find(({ name }) => name === options.name)
if (campaign === undefined || !(campaign.needs ?? []).every((server) => available(server, { own: true }))) {
  if (campaign === undefined)
    console.error(
      `${options.name === '' ? 'Name a campaign' : `There is no campaign ${options.name}`}. There are:\n${list}`,
    )
  process.exit(2)
}

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
  const run = { ms: options.minutes * 60_000, seed: options.seed, say, signal: interrupted.signal }
  const evidence = await runCampaign(campaign, run)
  const verdict = judge(evidence, campaign.check?.(evidence))
  const figures = readFigures(evidence, verdict)
  printFigures(figures)
  if (!figures.ok && campaign.fails !== true) say(`both ledgers are in ${await keepEvidence(evidence, verdict)}`)
  if (options.save) await saveResult(figures, options.minutes)
  if (options.json) console.log(JSON.stringify(figures))
  process.exitCode = figures.ok ? 0 : 1
} catch (error) {
  if (!interrupted.signal.aborted) {
    console.error(error)
    process.exitCode = 1
  } else say('interrupted; everything was stopped and removed')
}

// Everything was stopped and printed. Left to end by itself, Node 20.20 now and then spins for ever in its own clean-up of
// connections that were reset: in three of five campaigns behind the pooler.
process.exit()
