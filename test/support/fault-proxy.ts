/**
 * A TCP proxy that breaks what goes through it: what is set holds for connections and bytes from now on, both directions.
 * `target` may be changed, so that who connects here need not know that the other side was started again somewhere else.
 */
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'

export type Fault =
  | { readonly type: 'none' }
  /** New connections are closed at once, those that are open are reset. */
  | { readonly type: 'refuse' }
  /** Half-open: everything is taken, nothing is passed on, and no end is told to the other side. `from`: of connections from this address alone. */
  | { readonly type: 'swallow'; readonly from?: string }
  /** Nothing is read any more, so that whoever writes feels it. */
  | { readonly type: 'stall' }
  /** So many bytes at a time, one piece per turn of the event loop. */
  | { readonly type: 'dribble'; readonly bytes: number }
  /** Each connection is reset when so many more bytes have come from the target. */
  | { readonly type: 'cut'; readonly after: number }

export interface FaultProxy extends AsyncDisposable {
  readonly port: number
  /** Pairs of sockets that are open. */
  readonly open: number
  target: number
  set(fault: Fault): void
  /** Resets every connection that is open, or those from this address; new ones are served. */
  reset(from?: string): void
  readonly isOpen: boolean
  /** Nothing listens at the port until `resume`: new connections are refused, those that are open are reset. */
  shut(): void
  resume(): Promise<void>
  /** The same, but for connections on which a request has had nothing of its answer: those stay as they are, as in a rolling deployment. */
  drain(): void
}

interface Pair {
  readonly client: Socket
  readonly server: Socket
  /** Address of the client. */
  readonly from: string | undefined
  /** Bytes from the target that may still pass. */
  left: number
  /** The latest bytes came from the client. */
  isWaiting: boolean
}

export const openFaultProxy = async (target: number): Promise<FaultProxy> => {
  const pairs = new Set<Pair>()
  let fault: Fault = { type: 'none' }

  const end = (pair: Pair): void => {
    if (!pairs.delete(pair)) return
    pair.client.resetAndDestroy()
    pair.server.resetAndDestroy()
  }

  const isSwallowed = ({ from }: Pair): boolean => fault.type === 'swallow' && (fault.from === undefined || fault.from === from)

  const pass = (pair: Pair, from: Socket, to: Socket, chunk: Buffer): void => {
    pair.isWaiting = from === pair.client
    if (isSwallowed(pair)) return
    if (from === pair.server && chunk.length >= pair.left) {
      to.write(chunk.subarray(0, pair.left), () => end(pair))
      return
    }
    if (from === pair.server) pair.left -= chunk.length
    if (fault.type === 'dribble') return void dribble(to, from, chunk, fault.bytes)
    if (to.write(chunk)) return
    from.pause()
    to.once('drain', () => {
      if (fault.type !== 'stall') from.resume()
    })
  }

  const server = createServer((client) => {
    if (fault.type === 'refuse') return void client.resetAndDestroy()
    const pair: Pair = {
      client,
      server: connect(proxy.target, '127.0.0.1'),
      from: client.remoteAddress,
      left: fault.type === 'cut' ? fault.after : Infinity,
      isWaiting: false,
    }
    pairs.add(pair)
    const ways = [
      [pair.client, pair.server],
      [pair.server, pair.client],
    ] as const
    for (const [from, to] of ways) {
      from.setNoDelay(true)
      from.on('data', (chunk) => pass(pair, from, to, chunk))
      from.on('error', () => undefined)
      // A half-open connection says nothing when one side goes: the other waits.
      from.on('close', () => {
        if (!isSwallowed(pair)) end(pair)
      })
      from.on('end', () => {
        if (!isSwallowed(pair)) to.end()
      })
      if (fault.type === 'stall') from.pause()
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  const { port } = server.address() as AddressInfo
  const proxy: FaultProxy = {
    target,
    port,
    get open() {
      return pairs.size
    },
    set: (next: Fault) => {
      fault = next
      for (const pair of pairs) {
        pair.left = next.type === 'cut' ? next.after : Infinity
        if (next.type === 'refuse') end(pair)
        for (const socket of [pair.client, pair.server]) {
          if (next.type === 'stall') socket.pause()
          else socket.resume()
        }
      }
    },
    get isOpen() {
      return server.listening
    },
    reset: (from) => [...pairs].filter((pair) => from === undefined || pair.from === from).forEach(end),
    shut: () => {
      server.close()
      pairs.forEach(end)
    },
    resume: async () => {
      server.listen(proxy.port, '127.0.0.1')
      await once(server, 'listening')
    },
    drain: () => [...pairs].filter(({ isWaiting }) => !isWaiting).forEach(end),
    [Symbol.asyncDispose]: async () => {
      pairs.forEach(end)
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      await closed
    },
  }
  return proxy
}

const dribble = async (to: Socket, from: Socket, chunk: Buffer, bytes: number): Promise<void> => {
  from.pause()
  for (let at = 0; at < chunk.length && !to.destroyed; at += bytes) {
    to.write(chunk.subarray(at, at + bytes))
    await new Promise(setImmediate)
  }
  from.resume()
}
