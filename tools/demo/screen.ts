import pc from 'picocolors'

/** One word for what happened, at the start of each line. */
export type Happening = 'committed' | 'rolled back' | 'delivered' | 'again' | 'fault' | 'healed' | 'relay' | 'demo'

export interface Screen {
  /** Prints what happened, with the seconds since the start. */
  say(what: Happening, text: string): void
  line(text: string): void
  good(text: string): string
  bad(text: string): string
  faint(text: string): string
  strong(text: string): string
}

/** Writes plain lines; colours only where a person reads along. */
export function createScreen(out: NodeJS.WriteStream): Screen {
  const colours = pc.createColors(out.isTTY && process.env.NO_COLOR === undefined)
  const paint: Record<Happening, (text: string) => string> = {
    committed: colours.dim,
    'rolled back': colours.dim,
    delivered: colours.green,
    again: colours.yellow,
    fault: colours.red,
    healed: colours.cyan,
    relay: colours.cyan,
    demo: colours.bold,
  }
  const line = (text: string): void => {
    out.write(`${text}\n`)
  }
  return {
    // performance.now() counts from the start of the process, so the time that starting took is in it.
    say: (what, text) =>
      line(`${(performance.now() / 1000).toFixed(1).padStart(5)} s  ${paint[what](what.padEnd(11))}  ${text}`),
    line,
    good: colours.green,
    bad: colours.red,
    faint: colours.dim,
    strong: colours.bold,
  }
}
