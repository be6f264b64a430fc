import { constants } from 'node:os'
import { parseArgs } from 'node:util'
import { judge } from './demo/promises.ts'
import { createScreen } from './demo/screen.ts'
import { runShow } from './demo/show.ts'
import { printTable } from './demo/table.ts'

// `npm run demo`: a small shop on an embedded PostgreSQL and an in-process broker, which breaks once, as does a relay.
// Exit codes: 0 every promise held, 1 one did not, 2 wrong options, 130 interrupted.

const usage = `npm run demo -- [--seconds N] [--json]

  --seconds N  how long the shop is open, from 2 (default: 15)
  --json       what happens goes to stderr, and the last line of stdout is one JSON object`

function readOptions(): { seconds: number; json: boolean } {
  try {
    const { values } = parseArgs({
      options: {
        seconds: { type: 'string', default: '15' },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    if (values.help) {
      console.log(usage)
      process.exit(0)
    }
    const seconds = Number(values.seconds)
    if (!(seconds >= 2 && seconds <= 3600))
      throw new Error(`--seconds must be a number from 2 to 3600, got '${values.seconds}'.`)
    return { seconds, json: values.json }
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`)
    process.exit(2)
  }
}

const { seconds, json } = readOptions()
const screen = createScreen(json ? process.stderr : process.stdout)
const interrupted = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.once(name, () => {
    process.exitCode = 128 + constants.signals[name]
    interrupted.abort(new Error(`ended by ${name}`))
  })
}

try {
  const { evidence, firstEventSeconds } = await runShow(seconds, screen, interrupted.signal)
  const verdict = judge(evidence)
  printTable(screen, evidence, verdict)
  if (json) {
    const { proof, promises, ok } = verdict
    const figures = {
      ok,
      written: proof.written,
      published: proof.published,
      lost: proof.lost.length,
      outOfOrder: proof.outOfOrder.length,
      duplicates: proof.duplicates.length,
      unexplained: proof.unexplained,
      rolledBack: evidence.rolledBack,
      promises: Object.fromEntries(promises.map(({ id, held }) => [id, held])),
      firstEventSeconds: Math.round(firstEventSeconds * 10) / 10,
      seconds,
    }
    console.log(JSON.stringify(figures))
  }
  process.exitCode = verdict.ok ? 0 : 1
} catch (error) {
  if (interrupted.signal.aborted) screen.say('demo', 'interrupted; everything was stopped and removed')
  else {
    console.error(error)
    process.exitCode = 1
  }
}
