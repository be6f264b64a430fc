import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

// Below the range from which systems take the ports of outgoing connections (32768 and up on Linux). A server that
// is killed and restarted on its port would otherwise lose it to a client that connected in between.
const LOWEST = 15_000
const HIGHEST = 32_000
const TRIES = 50

export async function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => {
      resolve(false)
    })
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      probe.close(() => {
        resolve(true)
      })
    })
  })
}

/** A random free port. Two callers can still get the same one, so whoever uses it tries again when it is taken. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const port = randomInt(LOWEST, HIGHEST)
    if (await isFree(port)) return port
  }
  throw new Error(`No free port on 127.0.0.1: ${TRIES} random ports between ${LOWEST} and ${HIGHEST} were all taken.`)
}
