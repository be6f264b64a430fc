import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { startProxy, type TcpProxy } from '../src/index.ts'

/** A server that answers each piece with the same piece, behind a proxy. */
async function echoBehindProxy(): Promise<{ proxy: TcpProxy; heard: string[]; open: () => Promise<Socket> }> {
  const heard: string[] = []
  const echo = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (piece) => {
      heard.push(piece.toString())
      socket.write(piece)
    })
  })
  echo.listen(0, '127.0.0.1')
  await once(echo, 'listening')
  const proxy = await startProxy((echo.address() as AddressInfo).port)
  onTestFinished(async () => {
    await proxy.close()
    echo.close()
  })
  const open = async (): Promise<Socket> => {
    const socket = connect({ port: proxy.port, host: '127.0.0.1' })
    // The proxy ends the connections that a test leaves open with RST, and then nobody waits for the error.
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    return socket
  }
  return { proxy, heard, open }
}

async function say(socket: Socket, words: string): Promise<string> {
  socket.write(words)
  const [piece] = (await once(socket, 'data')) as [Buffer]
  return piece.toString()
}

test('it carries both directions', async () => {
  const { open } = await echoBehindProxy()
  expect(await say(await open(), 'hello')).toBe('hello')
})

test('dropped replies still reach the server as requests', async () => {
  const { proxy, heard, open } = await echoBehindProxy()
  const socket = await open()
  proxy.dropReplies = true
  socket.write('lost answer')
  await expect.poll(() => heard).toEqual(['lost answer'])
  const other = await open()
  other.write('second')
  await expect.poll(() => heard).toEqual(['lost answer', 'second'])
  expect(socket.bytesRead + other.bytesRead).toBe(0)
})

test('dropped requests never reach the server', async () => {
  const { proxy, heard, open } = await echoBehindProxy()
  const socket = await open()
  await say(socket, 'before')
  proxy.dropRequests = true
  socket.end('swallowed')
  await once(socket.resume(), 'close')
  expect(heard).toEqual(['before'])
})

test('a frozen proxy keeps everything back and delivers it when thawed', async () => {
  const { proxy, heard, open } = await echoBehindProxy()
  const socket = await open()
  proxy.freeze()
  proxy.freeze()
  const answer = say(socket, 'patience')
  // The proxy accepts a connection made after the write, so it has had the chance to carry it.
  await open()
  expect(heard).toEqual([])
  proxy.thaw()
  expect(await answer).toBe('patience')
})

test('a reset reaches both ends as an error', async () => {
  const { proxy, open } = await echoBehindProxy()
  const socket = await open()
  await say(socket, 'hello')
  proxy.reset()
  const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException]
  expect(error.code).toBe('ECONNRESET')
  expect(proxy.connections()).toBe(0)
})

test('a stranded connection is dead at both ends and tells neither, and new ones work', async () => {
  const { proxy, heard, open } = await echoBehindProxy()
  const socket = await open()
  await say(socket, 'hello')
  proxy.strand()
  socket.write('into the void')
  expect(await say(await open(), 'welcome')).toBe('welcome')
  expect(heard).toEqual(['hello', 'welcome'])
  expect(socket.bytesRead).toBe('hello'.length)
  expect(socket.readyState).toBe('open')
})

test('a closed proxy keeps no end of a stranded connection', async () => {
  const { proxy, open } = await echoBehindProxy()
  const socket = await open()
  const closed = new Promise((resolve) => socket.once('close', resolve))
  proxy.strand()
  await proxy.close()
  await closed
  expect(proxy.connections()).toBe(0)
})

test('a retargeted proxy sends new connections elsewhere and keeps the old', async () => {
  const first = await echoBehindProxy()
  const second = await echoBehindProxy()
  const old = await first.open()
  await say(old, 'hello')
  first.proxy.retarget(second.proxy.port)
  expect(await say(await first.open(), 'moved')).toBe('moved')
  expect(await say(old, 'still here')).toBe('still here')
  expect([first.heard, second.heard]).toEqual([['hello', 'still here'], ['moved']])
})

test('a refusing proxy ends new connections and keeps the old', async () => {
  const { proxy, open } = await echoBehindProxy()
  const old = await open()
  await say(old, 'hello')
  proxy.refuse(true)
  const refused = connect({ port: proxy.port, host: '127.0.0.1' })
  await expect(once(refused, 'data')).rejects.toMatchObject({ code: 'ECONNRESET' })
  expect(await say(old, 'still here')).toBe('still here')
  proxy.refuse(false)
  expect(await say(await open(), 'welcome')).toBe('welcome')
})

test('a delay holds each piece back', async () => {
  const { proxy, open } = await echoBehindProxy()
  const socket = await open()
  proxy.delayMs = 60
  const begin = performance.now()
  await say(socket, 'slow')
  // There and back; timers may fire a millisecond early.
  expect(performance.now() - begin).toBeGreaterThan(115)
})
