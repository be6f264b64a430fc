import { Command, InvalidArgumentError, Option } from 'commander'

export interface StandOptions {
  readonly publisher: 'memory' | 'redis'
  readonly events: number
  readonly keys: number
  readonly relays: number
  readonly writers: number
  readonly rejected: number
  readonly unavailable: number
  readonly lostAcks: number
  /** How many relays are killed. */
  readonly kill: number
  readonly leaseMs: number
  readonly backoffMs: number
  readonly seed: number
  /** Seconds after which whatever is not published counts as lost. */
  readonly timeout: number
  readonly json: boolean
}

interface Given extends Omit<StandOptions, 'kill' | 'leaseMs'> {
  readonly leaseMs?: number
  readonly kill?: number | true
}

/** Reads the command line; prints what is wrong with it and ends the process with 2. */
export function readStandOptions(args: readonly string[]): StandOptions {
  const command = new Command('npm run stand --')
    .description('Relays and writers in processes of their own, a broker that fails, and the count of what went wrong.')
    .addOption(
      new Option('--publisher <name>', 'memory: a broker in this process; redis: a real one')
        .choices(['memory', 'redis'])
        .default('memory'),
    )
    .option('--events <n>', 'events to write', whole(1), 600)
    .option('--keys <n>', 'keys they are spread over', whole(1), 25)
    .option('--relays <n>', 'relay processes; maxRun is 1, 5 and 20 in turn', whole(1), 4)
    .option('--writers <n>', 'writer processes', whole(1), 2)
    .option('--rejected <share>', 'share of tries that are answered rejected', share, 0.05)
    .option('--unavailable <share>', 'share of tries that are answered unavailable', share, 0.03)
    .option('--lost-acks <n>', 'acknowledgements that the broker gives and no relay gets', whole(0), 0)
    .option('--kill [n]', 'relays to kill with runs in flight, and to replace', whole(0))
    .option('--lease-ms <ms>', 'lease of a relay (default: 10000, with --kill 2000)', whole(300))
    .option('--backoff-ms <ms>', 'first wait after a rejection', whole(0), 50)
    .option(
      '--seed <n>',
      'repeats the keys, the sizes and the faults of a run',
      whole(0),
      Math.floor(Math.random() * 1e9),
    )
    .option('--timeout <s>', 'seconds until what is not published counts as lost', whole(1), 120)
    .option('--json', 'one JSON object as the last line', false)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .parse(args, { from: 'user' })
  const given = command.opts<Given>()
  const kill = given.kill === true ? 1 : (given.kill ?? 0)
  // The default of the library, unless a killed relay's share would have to wait for it.
  return { ...given, kill, leaseMs: given.leaseMs ?? (kill > 0 ? 2000 : 10_000) }
}

function whole(min: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (text === '' || !Number.isInteger(value) || value < min)
      throw new InvalidArgumentError(`It must be a whole number from ${min}.`)
    return value
  }
}

function share(text: string): number {
  const value = Number(text)
  if (text === '' || !(value >= 0 && value < 1)) throw new InvalidArgumentError('It must be a share from 0 to below 1.')
  return value
}
