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
}

export async function startProxy(targetPort: number): Promise<TcpProxy> {
  const links = new Set<Link>()
  let refusing = false
  let frozen: { readonly end: Promise<void>; thaw(): void } | undefined

  const server = createServer({ allowHalfOpen: true }, (client) => {
    if (refusing) {
      client.resetAndDestroy()
      return
    }
    const upstream = connect({ port: targetPort, host: '127.0.0.1', allowHalfOpen: true })
    const link = { client, upstream }
    links.add(link)
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true)
      // The loops below see the error too, unless theirs has ended already; then nobody would listen.
      socket.on('error', () => undefined)
    }
    void carry(client, upstream, () => proxy.dropRequests)
    void carry(upstream, client, () => proxy.dropReplies)
    client.once('close', () => {
      links.delete(link)
    })
  })

  async function carry(from: Socket, to: Socket, dropping: () => boolean): Promise<void> {
    try {
      for await (const piece of from as AsyncIterable<Buffer>) {
        if (proxy.delayMs > 0) await delay(proxy.delayMs)
        while (frozen !== undefined) await frozen.end
        if (!dropping() && to.writable) to.write(piece)
      }
      to.end()
    } catch {
      // One side was reset: the other side learns it the same way.
      to.resetAndDestroy()
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
    refuse(value) {
      refusing = value
    },
    connections: () => links.size,
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
