/** What a retry must repeat: a state opens only for the request it was made for (B064, BRIDGING 3.2). */
import { createHash } from 'node:crypto'
import type { Call } from '../rpc/call.ts'
import { canonical } from '../wire/canonical.ts'

/** Method, name or URI as the host said it, and canonical arguments, in one short text. */
export const digestOf = ({ method, target, params }: Pick<Call, 'method' | 'target' | 'params'>): string => {
  const args = params.raw('arguments')
  return createHash('sha256')
    .update(`${method}\0${target ?? ''}\0${args === undefined ? '' : canonical(args)}`)
    .digest('base64url')
}
