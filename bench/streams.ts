/** Cuts endless byte streams: the chunked body of an event stream, and messages with a separator. */
import { header } from './http.ts'

const CARRIAGE_RETURN = 13

/** Takes chunks as they arrive and calls `onPart` once per part; a part is valid until the callback returns. */
export const splitter = (between: string, onPart: (part: Buffer) => void): ((chunk: Buffer) => void) => {
  let store = Buffer.allocUnsafe(65_536)
  let end = 0
  let searched = 0
  return (chunk) => {
    if (end + chunk.length > store.length) {
      const larger = Buffer.allocUnsafe(2 * (end + chunk.length))
      store.copy(larger, 0, 0, end)
      store = larger
    }
    end += chunk.copy(store, end)
    let from = 0
    for (;;) {
      const at = store.subarray(0, end).indexOf(between, Math.max(from, searched - between.length + 1), 'latin1')
      if (at < 0) break
      if (at > from) onPart(store.subarray(from, at))
      from = at + between.length
      searched = from
    }
    store.copyWithin(0, from, end)
    end -= from
    searched = end
  }
}

/** Takes the bytes of one response without an end and calls `onData` with those of its body; throws when the status is not 200. */
export const endlessReply = (onData: (data: Buffer) => void): ((chunk: Buffer) => void) => {
  let store: Buffer = Buffer.alloc(0)
  let inBody = false
  let chunked = false
  let left = 0 // bytes of this chunk that are still to come

  const readHead = () => {
    const at = store.indexOf('\r\n\r\n')
    if (at < 0) return
    const head = store.toString('latin1', 0, at)
    if (!head.startsWith('HTTP/1.1 200')) throw new Error(`no stream: ${head}`)
    chunked = header(head, 'transfer-encoding') === 'chunked'
    inBody = true
    store = store.subarray(at + 4)
  }

  /** True when something of a chunk was taken off the store. */
  const readChunk = (): boolean => {
    if (left === 0) {
      const from = store[0] === CARRIAGE_RETURN ? 2 : 0 // the end of the chunk before
      const line = store.indexOf('\r\n', from)
      if (line < 0) return false
      left = Number.parseInt(store.toString('latin1', from, line), 16)
      store = store.subarray(line + 2)
    }
    const data = store.subarray(0, left)
    left -= data.length
    store = store.subarray(data.length)
    if (data.length > 0) onData(data)
    return data.length > 0
  }

  return (chunk) => {
    store = store.length === 0 ? chunk : Buffer.concat([store, chunk])
    if (!inBody) readHead()
    if (!inBody) return
    if (!chunked) {
      onData(store)
      store = store.subarray(store.length)
    } else while (store.length > 0 && readChunk());
  }
}
