/** Reads the first bytes of a connection, to decide which protocol it speaks. */
import type { Socket } from 'node:net'

/** `'more'`: more bytes are needed. `drop`: number of bytes to drop; the rest is put back for the next reader. */
export type Beginning = 'more' | { readonly drop: number }

/**
 * Calls `decide` with all bytes so far until it decides. Then puts the remaining bytes back, pauses the socket and calls `done`. Closes a
 * connection that ends earlier. Calls `late` after `withinMs`; `late` must close the connection.
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
