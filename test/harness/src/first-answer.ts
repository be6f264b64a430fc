import { connect } from 'node:net'

/** Sends these bytes to a port of this machine and resolves with the first that come back, to see who listens there. */
export async function firstAnswer(port: number, request: Buffer, timeoutMs: number): Promise<Buffer> {
  const socket = connect({ port, host: '127.0.0.1' })
  try {
    return await new Promise<Buffer>((resolve, reject) => {
      socket.setTimeout(timeoutMs, () => reject(new Error(`Nothing answers on port ${port}.`)))
      socket.once('error', reject)
      socket.once('close', () => reject(new Error(`The server on port ${port} closed the connection.`)))
      socket.once('data', resolve)
      socket.write(request)
    })
  } finally {
    socket.destroy()
  }
}
