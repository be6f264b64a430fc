/** The orders that the parent process gave this one when it started it. */
export function readOrders(): unknown {
  return JSON.parse(process.argv[2] ?? 'null')
}

/** Resolves when the parent can have the message. Everything arrives in the order in which it was sent. */
export function tellParent(message: unknown): Promise<void> {
  return new Promise((resolve) => {
    // A parent that is gone ends this process by `disconnect`, so an error here needs no answer.
    process.send?.(message, undefined, {}, () => {
      resolve()
    })
  })
}

/** Ends with the parent, whatever becomes of it, and leaves Ctrl-C, which goes to the whole group, to it. */
export function liveWithParent(): void {
  process.on('disconnect', () => process.exit(1))
  process.on('SIGINT', () => undefined)
  process.on('SIGTERM', () => undefined)
}
