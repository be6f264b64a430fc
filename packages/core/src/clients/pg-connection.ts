import type { SqlConnection } from '../contract/sql-client.ts'
import { type PgClient, runPg } from './pg-statement.ts'

/** A `pg` client that is connected, whoever connected it. */
export interface PgConnection extends PgClient {
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'end', listener: () => void): unknown
  on(event: 'notification', listener: (message: { channel: string }) => void): unknown
}

/** A session on a `pg` client that is the library's until it is closed. `destroy` ends the client, in no pool any more. */
export function ownedPgConnection<C extends PgConnection>(client: C, destroy: (client: C) => unknown): SqlConnection {
  let finish: (reason: Error | undefined) => void
  const ended = new Promise<Error | undefined>((resolve) => {
    finish = resolve
  })
  client.on('error', (error) => {
    finish(error)
  })
  client.on('end', () => {
    finish(new Error('the connection ended'))
  })
  let closed = false
  return {
    ended,
    run: (statement) => runPg(client, statement),
    onNotification(listener) {
      client.on('notification', ({ channel }) => {
        listener(channel)
      })
    },
    async close() {
      finish(undefined)
      if (closed) return
      closed = true
      await destroy(client)
    },
  }
}
