import { Command, InvalidArgumentError } from 'commander'

export interface MutantOptions {
  /** Empty for all of them. */
  readonly only: readonly string[]
  readonly workers: number
  readonly json: boolean
  readonly save: boolean
}

/** Reads the command line; prints what is wrong with it and ends the process with 2. */
export function readMutantOptions(args: readonly string[], names: readonly string[]): MutantOptions {
  const known = (name: string, before: readonly string[]): readonly string[] => {
    if (!names.includes(name)) throw new InvalidArgumentError('There is no such mutant.')
    return [...before, name]
  }
  return new Command('npm run mutants --')
    .description('Makes one line of the engine wrong at a time, in a copy, and shows which test fails.')
    .option('--only <name>', 'this mutant; may be given several times', known, [])
    .option('--workers <n>', 'mutants at a time', whole, 2)
    .option('--json', 'one JSON object as the last line', false)
    .option('--save', 'write the results into test/mutants/results.json and the table in its README', false)
    .addHelpText('after', `\nMutants:\n${names.map((name) => `  ${name}`).join('\n')}`)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .parse(args, { from: 'user' })
    .opts<MutantOptions>()
}

function whole(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('It must be a whole number from 1.')
  return value
}
