/** What the answer to a `server/discover` probe says about a server's era (BRIDGING 5.2; [2026-07-28 basic/versioning]). */
import type { Envelope } from '../wire/envelope.ts'
import { requestMessage } from '../wire/message.ts'
import type { Parts } from '../wire/payload.ts'
import { META } from '../wire/meta.ts'
import { isLegacyRevision, isModernRevision, MODERN } from '../wire/revisions.ts'
import { gatewaysIn } from './gateways.ts'
import type { Declared, Identity } from './link.ts'
import type { ModernServer } from './modern-downstream.ts'

export type Reading =
  | { readonly says: 'modern'; readonly server: ModernServer }
  /** It speaks the era, but not to this very request: worth one more try. */
  | { readonly says: 'again' }
  | { readonly says: 'legacy' }
  | { readonly says: 'no common version'; readonly offered: readonly string[] }

export const DISCOVER_HEADERS = { 'mcp-protocol-version': MODERN, 'mcp-method': 'server/discover' }

/** `hops`: gateways passed, with us. */
export const discoverMessage = (id: number, declared: Declared, identity: Identity, hops: number): Parts => {
  const _meta = {
    [META.version]: MODERN,
    [META.clientInfo]: identity,
    [META.capabilities]: declared,
    [META.hops]: hops,
  }
  return requestMessage(id, 'server/discover', [Buffer.from(JSON.stringify({ _meta }))])
}

export const readDiscover = (message: Envelope): Reading => {
  const { result, error } = message
  if (result !== undefined) {
    const versions = result.value('supportedVersions')
    if (!Array.isArray(versions)) return { says: 'legacy' }
    if (!versions.includes(MODERN)) return { says: 'no common version', offered: versions.map(String) }
    const capabilities = (result.value('capabilities') ?? {}) as Readonly<Record<string, unknown>>
    return { says: 'modern', server: { capabilities, instructions: result.text('instructions'), gateways: gatewaysIn(result) } }
  }
  const code = error?.value('code')
  if (code === -32020 || code === -32021) return { says: 'again' }
  if (code !== -32022) return { says: 'legacy' }
  const data = error?.value('data') as { supported?: unknown } | undefined
  const offered = Array.isArray(data?.supported) ? data.supported.map(String) : []
  if (offered.includes(MODERN)) return { says: 'again' }
  if (offered.some(isModernRevision) || !offered.every(isLegacyRevision)) return { says: 'no common version', offered }
  return { says: 'legacy' }
}
