/**
 * Reads the id of a message that is too long to keep from its beginning and its end: known implementations write the id first or last.
 * Only the forms listed here are accepted; in any other form the id is unknown.
 */
import type { Id } from './envelope.ts'

export interface MessageEnds {
  /** `call`: a request or a notification. `unknown`: not JSON-RPC, or members in an unusual order. */
  readonly kind: 'response' | 'call' | 'unknown'
  readonly id: Id | undefined
}

const VERSION = String.raw`"jsonrpc"\s*:\s*"2\.0"`
const ID = String.raw`"id"\s*:\s*("[^"\\]{0,256}"|-?\d{1,20})`
const HEAD = new RegExp(
  String.raw`^\s*\{\s*(?:${VERSION}\s*,\s*)?(?:${ID}\s*,\s*)?(?:${VERSION}\s*,\s*)?"(method|params|result|error)"`,
)
/** Only one closing brace, that of the message: an id inside a member must not match. */
const TAIL = new RegExp(String.raw`,\s*${ID}\s*(?:,\s*${VERSION}\s*)?\}\s*$`)

/** `head`: the beginning of the message; `tail`: its end, once it is received. */
export const readEnds = (head: Buffer, tail?: Buffer): MessageEnds => {
  const first = HEAD.exec(head.toString())
  if (first === null) return { kind: 'unknown', id: undefined }
  const last = tail === undefined ? undefined : TAIL.exec(tail.toString())
  return { kind: first[2] === 'result' || first[2] === 'error' ? 'response' : 'call', id: first[1] ?? last?.[1] }
}
