/** The host side of HTTP/1.1 on a bare socket: one connection, one exchange at a time, and the reading of a reply as JSON-RPC. */
import { connect, type Socket } from 'node:net'
import { header, messageReader, type OnMessage } from './http.ts'

const SILENCE_MS = 30_000

/** One keep-alive connection with at most one exchange under way. `lost` rejects when it ends before `close`. */
export interface Connection {
  readonly send: (message: string, onReply: OnMessage) => void
  readonly lost: Promise<never>
  readonly close: () => void
}

/** Resolves when connected, rejects when refused; a connection without a byte for 30 s is lost. */
export const openConnection = async ({ hostname, port }: URL): Promise<Connection> => {
  const socket: Socket = connect({ host: hostname, port: Number(port), noDelay: true })
  let receive: OnMessage = () => {}
  const lost = Promise.withResolvers<never>()
  lost.promise.catch(() => {})
  const read = messageReader((head, body) => receive(head, body))
  socket.on('data', (chunk: Buffer) => {
    try {
      read(chunk)
    } catch (error) {
      socket.destroy(error as Error)
    }
  })
  socket.on('error', (error) => lost.reject(error))
  socket.on('close', () => lost.reject(new Error('the connection was closed')))
  socket.setTimeout(SILENCE_MS, () => socket.destroy(new Error(`no reply for ${SILENCE_MS} ms`)))
  await Promise.race([new Promise((resolve) => socket.once('connect', resolve)), lost.promise])
  return {
    send: (message, onReply) => {
      receive = onReply
      socket.write(message, 'latin1')
    },
    lost: lost.promise,
    close: () => socket.destroy(),
  }
}

export interface Reply {
  readonly status: number
  readonly head: string
  /** The JSON-RPC response, out of a JSON body or the last event of a stream; undefined when there is no body. */
  readonly message: { readonly result?: Record<string, unknown>; readonly error?: { readonly message: string } } | undefined
}

export const parseReply = (head: string, body: Buffer): Reply => {
  const text = body.toString()
  const json = header(head, 'content-type').startsWith('text/event-stream') ? text.slice(text.lastIndexOf('data: ') + 6) : text
  return { status: head === '' ? 200 : Number(head.slice(9, 12)), head, message: json === '' ? undefined : JSON.parse(json) }
}
