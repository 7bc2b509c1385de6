/** What makes a retry the same request: a state opens only for the one it was made for (B064). */
import { createHash } from 'node:crypto'
import type { Call } from '../../rpc/call.ts'
import { canonical } from '../../wire/message/canonical.ts'

/** Method, name or URI as the host knows it, and the arguments whatever their spelling; base64url. */
export const digestOf = ({ method, target, params }: Call): string => {
  const args = params.raw('arguments')
  return createHash('sha256')
    .update(`${method}\0${target ?? ''}\0${args === undefined ? '' : canonical(args)}`)
    .digest('base64url')
}
