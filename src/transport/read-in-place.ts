/**
 * Reads a connection that came in, or a pipe, into memory that is used again for the next read. Node has that (`onread`) for sockets that a
 * program opens itself; for all others it allocates 64 KB for each read. The same means is switched on for them here, by the properties in which
 * `net.Socket` keeps it; where a release of Node has other ones, nothing is changed and such a socket is read as ever.
 *
 * Gain: reading 1 MB takes 120 to 150 µs of CPU in place of 330 to 420, and no garbage.
 */
import { Socket } from 'node:net'
import type { Readable } from 'node:stream'

/** What a socket has from the system. */
interface Handle {
  useUserBuffer?(memory: Buffer): void
}

const FRESH: object = new Socket()
const property = (name: string): symbol | undefined =>
  Object.getOwnPropertySymbols(FRESH).find(({ description }) => description === name)
/** Where a socket keeps the memory that it reads into, and whom it tells how much came. */
const MEMORY = property('kBuffer')
const CALLBACK = property('kBufferCb')

/**
 * Begins to read `source` into `memory`, which may be shared: `onBytes` gets a part of it, valid until it returns. All but `data` events are as
 * ever. The function that is returned gives the socket back to its stream. `undefined`: this cannot be read so, and nothing was changed.
 */
export const readInPlace = (source: Readable, memory: Buffer, onBytes: (bytes: Buffer) => void): (() => void) | undefined => {
  if (!(source instanceof Socket) || MEMORY === undefined || CALLBACK === undefined) return undefined
  const handle: Handle | null | undefined = Reflect.get(source, '_handle')
  // What has been read already, or is put back, comes by the stream.
  if (typeof handle?.useUserBuffer !== 'function' || source.readableLength > 0) return undefined
  Reflect.set(source, MEMORY, memory)
  Reflect.set(source, CALLBACK, (length: number): boolean => {
    onBytes(memory.subarray(0, length))
    return true
  })
  handle.useUserBuffer(memory)
  source.resume()
  return () => {
    Reflect.set(source, CALLBACK, (length: number): boolean => source.push(Buffer.from(memory.subarray(0, length))))
  }
}
