/** Digest of a request, which binds a `requestState` to its request (B064). */
import { createHash } from 'node:crypto'
import type { Call } from '../../rpc/call.ts'
import { canonical } from '../../wire/message/canonical.ts'

/** Digest of method, exposed name or URI, and canonical arguments; base64url. */
export const digestOf = ({ method, target, params }: Call): string => {
  const args = params.raw('arguments')
  return createHash('sha256')
    .update(`${method}\0${target ?? ''}\0${args === undefined ? '' : canonical(args)}`)
    .digest('base64url')
}
