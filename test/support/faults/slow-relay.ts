/** A network that is slow in one direction. */
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'

/** Passes bytes on, those of the gateway a little at a time: a piece, then nothing for `restMs`. */
export const slowRelay = async (
  url: URL,
  restMs = 5,
): Promise<{ readonly url: URL; readonly sockets: Set<Socket> } & AsyncDisposable> => {
  const sockets = new Set<Socket>()
  const server = createServer((host) => {
    const gateway = connect(Number(url.port), url.hostname)
    for (const socket of [host, gateway]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        host.destroy()
        gateway.destroy()
      })
    }
    host.pipe(gateway)
    gateway.on('data', (chunk: Buffer) => {
      gateway.pause()
      host.write(chunk)
      setTimeout(() => gateway.resume(), restMs)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: new URL(url.pathname, `http://127.0.0.1:${port}`),
    sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
