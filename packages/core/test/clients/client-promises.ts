import { describe } from 'vitest'
import { consumePromises } from './consume-promises.ts'
import { contentPromises } from './content-promises.ts'
import type { Features, OpenLibrary } from './library.ts'
import { refusalPromises } from './refusal-promises.ts'
import { sessionPromises } from './session-promises.ts'
import { transactionPromises } from './transaction-promises.ts'

/** What every client promises, kept with the real library and a real server. */
export function clientPromises(name: string, features: Features, open: OpenLibrary): void {
  describe(`${name}: an event and its transaction`, () => {
    transactionPromises(open, features)
  })
  describe(`${name}: what is no open transaction`, () => {
    refusalPromises(open)
  })
  describe(`${name}: what is written`, () => {
    contentPromises(open)
  })
  describe(`${name}: what waits for another transaction`, () => {
    consumePromises(open)
  })
  describe(`${name}: the sessions of migrate and relays`, () => {
    sessionPromises(open, features)
  })
}
