import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/** A connection between a client and a server that can go wrong on command. */
export interface TcpProxy extends AsyncDisposable {
  readonly port: number
  /** Swallows what the server says: requests arrive, their answers are lost. Then `reset()`, the stream has a hole. */
  dropReplies: boolean
  /** Swallows what the client says. */
  dropRequests: boolean
  /** Holds back every piece, in both directions, by this many milliseconds. Default: 0. */
  delayMs: number
  /** Keeps every connection open and moves nothing, as a network that went away does. */
  freeze(): void
  thaw(): void
  /** Ends every live connection with RST. */
  reset(): void
  /**
   * Leaves every live connection open and dead, as a router does that forgot it: nothing moves on it any more, neither
   * end is told, not even of the other's end. New connections work.
   */
  strand(): void
  /** Sends new connections to another port, as a name that moves to another server does. Live ones stay. */
  retarget(port: number): void
  /** Whether new connections are ended as soon as they are made. */
  refuse(refusing: boolean): void
  /** Live client connections. */
  connections(): number
  /** Resolves when nothing listens and nothing is connected. */
  close(): Promise<void>
}

interface Link {
  readonly client: Socket
  readonly upstream: Socket
  stranded: boolean
}

export async function startProxy(targetPort: number): Promise<TcpProxy> {
  const links = new Set<Link>()
  let target = targetPort
  let refusing = false
  let frozen: { readonly end: Promise<void>; thaw(): void } | undefined

  const server = createServer({ allowHalfOpen: true }, (client) => {
    if (refusing) {
      client.resetAndDestroy()
      return
    }
    const upstream = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true })
    const link: Link = { client, upstream, stranded: false }
    links.add(link)
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true)
      // The loops below see the error too, unless theirs has ended already; then nobody would listen.
      socket.on('error', () => undefined)
    }
    void carry(link, client, upstream, () => proxy.dropRequests)
    void carry(link, upstream, client, () => proxy.dropReplies)
    for (const socket of [client, upstream]) {
      // A stranded connection loses its ends one by one, and the second must still be known to `close`.
      socket.once('close', () => {
        if (client.destroyed && upstream.destroyed) links.delete(link)
      })
    }
  })

  async function carry(link: Link, from: Socket, to: Socket, dropping: () => boolean): Promise<void> {
    try {
      for await (const piece of from as AsyncIterable<Buffer>) {
        if (proxy.delayMs > 0) await delay(proxy.delayMs)
        while (frozen !== undefined) await frozen.end
        if (!link.stranded && !dropping() && to.writable) to.write(piece)
      }
      if (!link.stranded) to.end()
    } catch {
      // One side was reset: the other side learns it the same way.
      if (!link.stranded) to.resetAndDestroy()
    }
  }

  const proxy: TcpProxy = {
    port: await listen(server),
    dropReplies: false,
    dropRequests: false,
    delayMs: 0,
    freeze() {
      if (frozen !== undefined) return
      let thaw = (): void => undefined
      const end = new Promise<void>((resolve) => {
        thaw = resolve
      })
      frozen = { end, thaw }
    },
    thaw() {
      frozen?.thaw()
      frozen = undefined
    },
    reset() {
      for (const { client, upstream } of links) {
        client.resetAndDestroy()
        upstream.resetAndDestroy()
      }
    },
    strand() {
      for (const link of links) link.stranded = true
    },
    retarget(port) {
      target = port
    },
    refuse(value) {
      refusing = value
    },
    connections: () => [...links].filter(({ client }) => !client.destroyed).length,
    async close() {
      refusing = true
      proxy.thaw()
      proxy.reset()
      await new Promise<void>((resolve) => {
        server.close(() => {
          resolve()
        })
      })
    },
    [Symbol.asyncDispose]: () => proxy.close(),
  }
  return proxy
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The proxy listens on no TCP port.')
  return address.port
}
