/**
 * Reads the id of a message that was too long to keep from its two ends: known implementations write the id first or last. All
 * accepted forms are listed here; in any other form there is no id.
 */
import type { Id } from './envelope.ts'

export interface MessageEnds {
  /** `call`: a request or a notification. `unknown`: no JSON-RPC, or members in an unusual order. */
  readonly kind: 'response' | 'call' | 'unknown'
  readonly id: Id | undefined
}

const VERSION = String.raw`"jsonrpc"\s*:\s*"2\.0"`
const ID = String.raw`"id"\s*:\s*("[^"\\]{0,256}"|-?\d{1,20})`
const HEAD = new RegExp(
  String.raw`^\s*\{\s*(?:${VERSION}\s*,\s*)?(?:${ID}\s*,\s*)?(?:${VERSION}\s*,\s*)?"(method|params|result|error)"`,
)
/** One closing brace only: that of the message itself. */
const TAIL = new RegExp(String.raw`,\s*${ID}\s*(?:,\s*${VERSION}\s*)?\}\s*$`)

/** Reads the beginning of a message and, as soon as it is there, its end. */
export const readEnds = (head: Buffer, tail?: Buffer): MessageEnds => {
  const first = HEAD.exec(head.toString())
  if (first === null) return { kind: 'unknown', id: undefined }
  const last = tail === undefined ? undefined : TAIL.exec(tail.toString())
  return { kind: first[2] === 'result' || first[2] === 'error' ? 'response' : 'call', id: first[1] ?? last?.[1] }
}
