/**
 * Closes a connection whose host may still be sending (RFC 9112, 9.6): sends the written bytes and our end, then reads and drops bytes until
 * the host ends its side. After an immediate close the kernel would answer the next byte of the host with a reset. A host that writes its
 * whole request before it reads would then see a broken pipe in place of the answer.
 */
import type { Socket } from 'node:net'

/** Limits of a closing connection whose host continues to send. */
export interface LingerLimits {
  /** `listen.limits.unread_body`: bytes that are read and dropped. */
  readonly maxUnreadBytes: number
  /** `listen.limits.request_timeout`: the limit of a whole request, which also applies here. */
  readonly requestTimeoutMs: number
}

interface Reports {
  reached(option: string): void
}

/** `events.reached` receives the option of a limit that closed the connection before its host did. */
export const closeGently = (socket: Socket, limits: LingerLimits, events: Reports): void => {
  // The parser receives no more bytes. The new listener is added first, because node:http then returns the bytes of the socket.
  // Cast: an emitter does not know the types of its listeners.
  const readers = socket.listeners('data') as (() => void)[]
  dropAll(socket, limits, events)
  for (const reader of readers) socket.off('data', reader)
  const giveUp = (): void => {
    events.reached('listen.limits.request_timeout')
    socket.destroy()
  }
  const timer = setTimeout(giveUp, limits.requestTimeoutMs).unref()
  socket.once('close', () => clearTimeout(timer))
  socket.on('error', () => undefined)
  socket.resume()
  // The socket destroys itself when both sides have ended.
  socket.end()
}

/** The source of dropped bytes: a connection, or the body of a request. */
interface Source {
  readonly destroyed: boolean
  on(event: 'data', listener: (chunk: Buffer) => void): unknown
  destroy(): unknown
}

/** Reads `source` to its end. Destroys it after more than `maxUnreadBytes`; a body destroys its connection, too. */
export const dropAll = (source: Source, { maxUnreadBytes }: LingerLimits, events: Reports): void => {
  let left = maxUnreadBytes
  source.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left >= 0 || source.destroyed) return
    events.reached('listen.limits.unread_body')
    source.destroy()
  })
}
