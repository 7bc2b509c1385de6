/**
 * Memory in which a small answer is put together, used again for the next as soon as the kernel has taken it: mostly at once. No string and
 * no buffer is made of its bytes.
 */
import type { Socket } from 'node:net'
import type { Parts } from '../../../wire/message/payload.ts'

export class WriteRoom {
  readonly #size: number
  #room: Buffer

  /** `size`: bytes of the longest answer that is put together here. */
  constructor(size: number) {
    this.#size = size
    this.#room = Buffer.allocUnsafeSlow(size)
  }

  /** One write of `head`, in latin1, and `body`, of `bytes` bytes. */
  write(socket: Socket, head: string, body: Parts, bytes: number): void {
    const length = head.length + bytes
    // Who is slow gets memory of just that size: what waits for it is not to take a room with it each time.
    const isQuick = length <= this.#size && socket.writableLength === 0
    const room = isQuick ? this.#room : Buffer.allocUnsafe(length)
    let at = room.write(head, 'latin1')
    for (const part of body) {
      room.set(part, at)
      at += part.length
    }
    socket.write(room.subarray(0, at))
    // What the kernel has not taken yet lies here until it has.
    if (isQuick && socket.writableLength > 0) this.#room = Buffer.allocUnsafeSlow(this.#size)
  }
}
