/** Reads a server's era from its answer to a `server/discover` probe (BRIDGING 5.2; [2026-07-28 basic/versioning]). */
import { jsonObject, isList, memberOf } from '../../values/json-object.ts'
import type { Envelope } from '../../wire/message/envelope.ts'
import { requestMessage } from '../../wire/message/message.ts'
import type { Parts } from '../../wire/message/payload.ts'
import { META } from '../../wire/protocol/meta.ts'
import { isLegacyRevision, MODERN } from '../../wire/protocol/revisions.ts'
import { declaredOnly } from '../declared-capabilities.ts'
import { gatewaysIn } from '../gateways.ts'
import type { ClientDescription, Declared } from './link.ts'
import type { ModernServer } from './modern-link.ts'

export type Reading =
  | { readonly says: 'modern'; readonly server: ModernServer }
  /** The server is modern, but refused this request: one more attempt is needed. */
  | { readonly says: 'again' }
  | { readonly says: 'legacy' }
  | { readonly says: 'no common version'; readonly offered: readonly string[] }

export const DISCOVER_HEADERS = { 'mcp-protocol-version': MODERN, 'mcp-method': 'server/discover' }

/** `hops`: number of gateways passed, this one included. */
export const discoverMessage = (id: number, declared: Declared, { identity, via }: ClientDescription, hops: number): Parts => {
  const _meta = {
    [META.version]: MODERN,
    [META.clientInfo]: identity,
    [META.capabilities]: declared,
    [META.hops]: hops,
    ...(via !== undefined && { [META.via]: via }),
  }
  return requestMessage(id, 'server/discover', [Buffer.from(JSON.stringify({ _meta }))])
}

export const readDiscover = (message: Envelope): Reading => {
  const { result, error } = message
  if (result !== undefined) {
    const versions = result.value('supportedVersions')
    if (!Array.isArray(versions)) return { says: 'legacy' }
    if (!versions.includes(MODERN)) return readVersions(versions)
    const capabilities = declaredOnly(jsonObject(result.value('capabilities')) ?? {})
    return {
      says: 'modern',
      server: {
        capabilities,
        instructions: result.text('instructions'),
        serverInfo: jsonObject(result.object('_meta')?.value(META.serverInfo) ?? result.value('serverInfo')),
        gateways: gatewaysIn(result),
      },
    }
  }
  const code = error?.value('code')
  if (code === -32020 || code === -32021) return { says: 'again' }
  if (code !== -32022) return { says: 'legacy' }
  const supported = memberOf(error?.value('data'), 'supported')
  const versions = isList(supported) ? supported : []
  return versions.includes(MODERN) ? { says: 'again' } : readVersions(versions)
}

/** Reads a list of versions without our modern one: a server that lists one of our legacy revisions, as go-sdk does, is legacy (B280). */
const readVersions = (versions: readonly unknown[]): Reading => {
  const offered = versions.map(String)
  const isLegacy = offered.length === 0 || offered.some(isLegacyRevision)
  return isLegacy ? { says: 'legacy' } : { says: 'no common version', offered }
}
