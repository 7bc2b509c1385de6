/** HTTP+SSE of a host: one stream that is the session and carries every answer, and posts that are only accepted. */
import { connect } from 'node:net'
import { type Connection, openConnection } from './connection.ts'
import type { OnMessage } from './http.ts'
import { authorization, post as posted } from './http-lane.ts'
import { type Lane, Pending } from './lane.ts'
import { endlessReply, splitter } from './streams.ts'

const DATA = 'data: '

/** Resolves when the stream at `url` has said where to post. */
export const openSseLane = async (url: URL, bearer: string): Promise<Lane> => {
  const pending = new Pending()
  const endpoint = Promise.withResolvers<URL>()
  const lost = Promise.withResolvers<never>()
  lost.promise.catch(() => {})
  const hear = (event: Buffer) => {
    const at = event.indexOf(DATA, 0, 'latin1')
    if (at < 0) return
    const data = event.subarray(at + DATA.length)
    if (event.toString('latin1', 0, at).includes('event: endpoint')) endpoint.resolve(new URL(data.toString().trim(), url))
    else pending.take(data)
  }
  const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true })
  const read = endlessReply(splitter('\n\n', hear))
  socket.on('data', (chunk: Buffer) => {
    try {
      read(chunk)
    } catch (error) {
      socket.destroy(error as Error)
    }
  })
  socket.on('error', (error) => lost.reject(error))
  socket.on('close', () => lost.reject(new Error('the stream was closed')))
  const head = `GET ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nUser-Agent: bench\r\nAccept: text/event-stream\r\n`
  socket.write(`${head}${authorization(bearer)}\r\n`)
  const messages = await Promise.race([endpoint.promise, lost.promise])

  /** The server may close the connection for posts while it idles, because only the stream is busy: the next post opens another. */
  const open: Lane['open'] = async () => {
    const failed = Promise.withResolvers<never>()
    let connection: Connection | undefined
    let isAccepted = true
    const use = (opened: Connection): Connection => {
      opened.lost.catch((error: unknown) => {
        if (!isAccepted) failed.reject(error)
        connection = undefined
      })
      return (connection = opened)
    }
    const post = (on: Connection, framed: string, onRefusal: OnMessage) => {
      isAccepted = false
      on.send(framed, (head, body) => {
        isAccepted = true
        if (!/^HTTP\/1\.1 20[02]/.test(head)) onRefusal(head, body)
      })
    }
    use(await openConnection(messages))
    return {
      send: (framed, id, onReply) => {
        pending.wait(id, onReply)
        if (connection !== undefined) post(connection, framed, onReply)
        else openConnection(messages).then((opened) => post(use(opened), framed, onReply), failed.reject)
      },
      lost: Promise.race([failed.promise, lost.promise]),
      close: () => connection?.close(),
    }
  }
  return {
    frame: (message) => posted(messages, bearer, '', message),
    open,
    tell: async (framed) => {
      const connection = await openConnection(messages)
      const accepted = new Promise<void>((resolve) => connection.send(framed, () => resolve()))
      await Promise.race([accepted, connection.lost]).finally(connection.close)
    },
    joined: () => {},
    async [Symbol.asyncDispose]() {
      socket.destroy()
    },
  }
}
