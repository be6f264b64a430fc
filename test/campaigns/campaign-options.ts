import { Command, InvalidArgumentError } from 'commander'

export interface CampaignOptions {
  readonly name: string
  readonly minutes: number
  readonly seed: number
  readonly json: boolean
  readonly save: boolean
}

/** Reads the command line; prints what is wrong with it and ends the process with 2. */
export function readCampaignOptions(args: readonly string[], list: string): CampaignOptions {
  const command = new Command('npm run campaign --')
    .description(
      'Relays and writers in processes of their own, one kind of trouble, and two ledgers that are compared.',
    )
    .argument('[name]', 'which campaign')
    .option('--minutes <n>', 'how long there is trouble; fractions are fine', minutes, 1)
    .option('--seed <n>', 'repeats what is written and what is broken, as far as processes allow', whole, random())
    .option('--json', 'one JSON object as the last line', false)
    .option('--save', 'write the result into test/campaigns/results and the table in its README', false)
    .addHelpText('after', `\nCampaigns:\n${list}`)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .parse(args, { from: 'user' })
  const [name = ''] = command.args
  return { name, ...command.opts<Omit<CampaignOptions, 'name'>>() }
}

function random(): number {
  return Math.floor(Math.random() * 1e9)
}

function minutes(text: string): number {
  const value = Number(text)
  if (!(value > 0 && value <= 24 * 60)) throw new InvalidArgumentError('It must be above 0 and at most a day.')
  return value
}

function whole(text: string): number {
  const value = Number(text)
  if (text === '' || !Number.isInteger(value) || value < 0)
    throw new InvalidArgumentError('It must be a whole number from 0.')
  return value
}
