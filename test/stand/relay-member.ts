import { type Member, startMember } from './members.ts'
import type { FromRelay, RelayOrders, ToRelay } from './messages.ts'
import type { StandBroker } from './stand-broker.ts'

/** What a relay process says beside `started` and what it publishes through its parent. */
export type RelayNews = Exclude<FromRelay, { readonly kind: 'started' | 'publish' }>

export interface RelayMember extends Member<ToRelay> {
  /** Resolves when it is at work. Rejects when it ends before. */
  readonly started: Promise<void>
}

export interface RelayParts {
  readonly broker: StandBroker
  readonly hear: (member: Member<ToRelay>, news: RelayNews) => void
  /** More options of node. */
  readonly nodeOptions?: readonly string[]
}

const program = new URL('./relay-process.ts', import.meta.url)

/** Starts one relay in a process of its own, and publishes for it when its broker is in this process. */
export function startRelay(orders: RelayOrders, { broker, hear, nodeOptions }: RelayParts): RelayMember {
  let atWork = (): void => undefined
  const began = new Promise<void>((resolve) => (atWork = resolve))
  const member = startMember<ToRelay>(
    program,
    orders,
    (given) => {
      const message = given as FromRelay
      if (message.kind === 'started') atWork()
      else if (message.kind === 'publish') {
        void broker.publish(member.name, message).then((reply) => {
          member.send(reply)
        })
      } else hear(member, message)
    },
    nodeOptions,
  )
  const ended = member.gone.then((how) => Promise.reject(new Error(`${member.name} ended with ${how}`)))
  const started = Promise.race([began, ended])
  // Whoever waits for it hears of it; the end itself is told by `gone`.
  started.catch(() => undefined)
  return { ...member, started }
}
