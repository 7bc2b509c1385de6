/**
 * Cuts a byte stream into HTTP/1.1 messages, with only the HTTP that the benchmark's own hosts and servers need, so that neither is the
 * bottleneck. One growing buffer per connection; chunked bodies are joined in place.
 */

/** First line and headers as latin1, without the empty line; the body is valid until the callback returns. */
export type OnMessage = (head: string, body: Buffer) => void

/** Value of a header of `head`, or '' when absent. `name` in lower case. */
export const header = (head: string, name: string): string => {
  const at = head.toLowerCase().indexOf(`\r\n${name}:`)
  if (at < 0) return ''
  const end = head.indexOf('\r\n', at + 2)
  return head.slice(at + name.length + 3, end < 0 ? undefined : end).trim()
}

/** Takes chunks as they arrive and calls `onMessage` once per complete message. */
export const messageReader = (onMessage: OnMessage): ((chunk: Buffer) => void) => {
  let store = Buffer.allocUnsafe(65_536)
  let end = 0 // bytes in the store
  let head = '' // '' until the empty line came
  let bodyStart = 0
  let bodyEnd = 0 // counted: where the body ends; chunked: where the joined part ends
  let next = 0 // chunked: where the next size line begins
  let chunked = false

  const append = (chunk: Buffer) => {
    if (end + chunk.length > store.length) {
      const larger = Buffer.allocUnsafe(2 * (end + chunk.length))
      store.copy(larger, 0, 0, end)
      store = larger
    }
    end += chunk.copy(store, end)
  }

  const readHead = (): boolean => {
    const at = store.subarray(0, end).indexOf('\r\n\r\n')
    if (at < 0) return false
    head = store.toString('latin1', 0, at)
    bodyStart = bodyEnd = next = at + 4
    chunked = header(head, 'transfer-encoding') === 'chunked'
    if (!chunked) bodyEnd += Number(header(head, 'content-length'))
    return true
  }

  /** Joins the chunks that are complete; true at the last one. */
  const joinChunks = (): boolean => {
    for (;;) {
      const line = store.subarray(next, end).indexOf('\r\n')
      if (line < 0) return false
      const size = Number.parseInt(store.toString('latin1', next, next + line), 16)
      const from = next + line + 2
      if (from + size + 2 > end) return false
      if (Number.isNaN(size)) throw new Error(`not a chunk size: ${JSON.stringify(store.toString('latin1', next, next + line))}`)
      store.copyWithin(bodyEnd, from, from + size)
      bodyEnd += size
      next = from + size + 2
      if (size === 0) return true
    }
  }

  return (chunk) => {
    append(chunk)
    while ((head !== '' || readHead()) && (chunked ? joinChunks() : bodyEnd <= end)) {
      const complete = head
      head = ''
      onMessage(complete, store.subarray(bodyStart, bodyEnd))
      const from = chunked ? next : bodyEnd
      store.copyWithin(0, from, end)
      end -= from
    }
  }
}
