/** Every process below this one, at any depth, in no particular order. */
export function descendantsOf(pid: number): number[]

/** Whether the process still runs. A zombie does not. */
export function isAlive(pid: number): boolean

/** Sends a signal; a process that is already gone is no error. */
export function send(pid: number, signal: NodeJS.Signals): void
