/** Servers that a test writes itself, on a free port of this machine. */
import { once } from 'node:events'
import type { AddressInfo, Server, Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'

/** Its end is that of the server and of every connection to it. */
export interface Listening extends AsyncDisposable {
  readonly port: number
  /** `http://127.0.0.1:1234`, without a slash at its end. */
  readonly url: string
}

export const listening = async (server: Server, port = 0): Promise<Listening> => {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await once(server.listen(port, '127.0.0.1'), 'listening')
  const address = server.address() as AddressInfo
  return {
    port: address.port,
    url: `${server instanceof TlsServer ? 'https' : 'http'}://127.0.0.1:${address.port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
