/** Credentials that a reload revokes: sessions and streams of their principals end at once (BRIDGING 5.1). */
import { isDeepStrictEqual } from 'node:util'
import { SHARED_PRINCIPAL } from '../../rpc/call.ts'
import type { AuthOptions } from './verify/inbound-options.ts'
import { principalOf } from './static-tokens.ts'

/** Returns whether a principal authenticated under `before` must authenticate again under `after`. `undefined`: no authentication. */
export const revokedBy = (before: AuthOptions | undefined, after: AuthOptions | undefined): ((principal: string) => boolean) => {
  if (isDeepStrictEqual(before, after)) return () => false
  if (before === undefined) return (principal) => principal === SHARED_PRINCIPAL
  const same = before.tokens.filter((token) => after?.tokens.some((other) => isDeepStrictEqual(token, other)) === true)
  const kept = new Set(same.map(({ id }) => principalOf(id)))
  const own = new Set(before.tokens.map(({ id }) => principalOf(id)))
  const keepsOthers = isDeepStrictEqual([before.oauth, before.map], [after?.oauth, after?.map])
  return (principal) => (own.has(principal) ? !kept.has(principal) : !keepsOthers)
}
