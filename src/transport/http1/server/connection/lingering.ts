/**
 * Closes a connection whose host may still be sending: what was written goes out, then our end of the connection, and what still comes is
 * read and dropped until the host ends its own (RFC 9112, 9.6). Closed at once, the system answers the next byte of the host with a reset:
 * a host that writes all of its request before it reads then sees a broken pipe in place of the answer.
 */
import type { Socket } from 'node:net'

/** How long, and for how much, a connection is kept for a host that goes on sending. */
export interface LingerLimits {
  /** `listen.limits.unread_body`. */
  readonly maxUnreadBytes: number
  /** `listen.limits.request_timeout`: no longer than a whole request may take. */
  readonly requestTimeoutMs: number
}

interface Reports {
  reached(option: string): void
}

/** `events` receives the option whose limit closed the connection before its host did. */
export const closeGently = (socket: Socket, limits: LingerLimits, events: Reports): void => {
  // The parser no longer receives what the host sends. The new listener comes first: with it node:http gives the socket's bytes back.
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
  // Once both ends are there the socket destroys itself.
  socket.end()
}

/** What is dropped: all that comes on a connection, or the body of a request on it. */
interface Source {
  readonly destroyed: boolean
  on(event: 'data', listener: (chunk: Buffer) => void): unknown
  destroy(): unknown
}

/** Reads `source` to its end; destroys it, and a body's connection with it, once more than `maxUnreadBytes` came. */
export const dropAll = (source: Source, { maxUnreadBytes }: LingerLimits, events: Reports): void => {
  let left = maxUnreadBytes
  source.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left >= 0 || source.destroyed) return
    events.reached('listen.limits.unread_body')
    source.destroy()
  })
}
