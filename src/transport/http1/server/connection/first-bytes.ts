/** Reads the beginning of a connection before it is decided what the connection is. */
import type { Socket } from 'node:net'

/** What the beginning is: `'more'` must be read, or the bytes to drop; the rest is put back, to be read by what comes next. */
export type Beginning = 'more' | { readonly drop: number }

/**
 * Calls `decide` with all bytes so far, until it has decided; then the socket is paused, with the rest of the bytes in it, and `done` is
 * called. A connection that ends before is closed; `late` is called for one that takes longer than `withinMs`, and closes it.
 */
export const readBeginning = (
  socket: Socket,
  withinMs: number,
  decide: (bytes: Buffer) => Beginning,
  done: () => void,
  late: () => void,
): void => {
  let bytes: Buffer | undefined
  const stop = (): void => {
    clearTimeout(timer)
    socket.off('data', onData)
    socket.off('end', onEnd)
    socket.off('close', stop)
  }
  const onData = (chunk: Buffer): void => {
    bytes = bytes === undefined ? chunk : Buffer.concat([bytes, chunk])
    const beginning = decide(bytes)
    if (beginning === 'more') return
    stop()
    socket.pause()
    const rest = bytes.subarray(beginning.drop)
    if (rest.length > 0) socket.unshift(rest)
    done()
    socket.off('error', ignore)
  }
  const onEnd = (): void => void socket.destroy()
  const timer = setTimeout(() => {
    stop()
    late()
  }, withinMs).unref()
  socket.on('data', onData)
  socket.on('end', onEnd)
  socket.on('close', stop)
  socket.on('error', ignore)
  socket.resume()
}

const ignore = (): void => undefined
