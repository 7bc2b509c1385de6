/** How a test server in one process speaks stdio to many relays (test/support/relay.ts): each connection to its port is a pair of pipes. */
import { createServer } from 'node:net'
import type { Server, Socket } from 'node:net'

/** `connect` attaches a server of its own to each connection, and returns how that ends. */
export const pipeListener = (connect: (socket: Socket) => () => unknown): Server =>
  createServer((socket) => {
    const end = connect(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => void end())
  })
