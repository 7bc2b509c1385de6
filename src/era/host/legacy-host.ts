/**
 * Legacy hosts: `initialize` applies to the whole session, and results have no members of the modern era
 * ([2025-11-25 basic/lifecycle]; BRIDGING 3.1, 3.3).
 */
import { Refusal } from '../../rpc/call.ts'
import type { Capabilities, Outcome } from '../../rpc/call.ts'
import { isJsonObject } from '../../values/json-object.ts'
import { UI_EXTENSION, withoutTasks } from '../../wire/protocol/extensions.ts'
import type { Envelope } from '../../wire/message/envelope.ts'
import { META } from '../../wire/protocol/meta.ts'
import { Payload } from '../../wire/message/payload.ts'
import type { JsonObject } from '../../wire/message/payload.ts'
import { isAtLeast, isLegacyRevision, isWithin, latestLegacyWithin, revisionsWithin } from '../../wire/protocol/revisions.ts'
import type { LegacyRevision, RevisionRange } from '../../wire/protocol/revisions.ts'
import { hopsIn } from '../gateways.ts'
import type { Identity } from '../server/link.ts'
import { declaredOnly } from '../declared-capabilities.ts'
import { SUPERSET_CAPABILITIES } from './modern-host.ts'
import type { Offers } from './modern-host.ts'
import { legacyCreation } from '../task-shapes.ts'

/** Prefix of the members of `_meta` that the protocol defines. */
const PROTOCOL_PREFIX = 'io.modelcontextprotocol/'

export interface Introduction {
  readonly revision: LegacyRevision
  readonly capabilities: Capabilities
  /** Self-reported, for display only. */
  readonly clientInfo: unknown
  /** Number of gateways between the host and this process. */
  readonly hops: number
}

/**
 * Reads `initialize`. An unknown version, or one outside of `range`, is replaced by the latest legacy revision within `range`
 * (B024–B026, B293). Throws `Refusal` with the supported revisions if `range` contains only modern ones
 * ([2026-07-28 basic/versioning], Backward Compatibility).
 */
export const readInitialize = (message: Envelope, range: RevisionRange): Introduction => {
  const { params } = message
  const asked = params?.text('protocolVersion')
  const latest = latestLegacyWithin(range)
  if (latest === undefined) {
    const supported = revisionsWithin(range)
    const text = `Unsupported protocol version: ${asked ?? 'initialize'}; supported: ${supported.join(', ')} (listen.revisions)`
    throw new Refusal(-32022, text, { status: 400, data: { supported, requested: asked } })
  }
  if (params === undefined || asked === undefined) throw new Refusal(-32602, 'initialize needs params.protocolVersion')
  const capabilities = params.value('capabilities') ?? {}
  if (!isJsonObject(capabilities)) throw new Refusal(-32602, 'params.capabilities must be an object')
  return {
    revision: isLegacyRevision(asked) && isWithin(asked, range) ? asked : latest,
    capabilities: ownCapabilities(capabilities),
    clientInfo: params.value('clientInfo'),
    hops: hopsIn(params.object('_meta')),
  }
}

/** Removes tasks that the host runs (not bridged) and the tasks extension (not part of this era; SEP-2663, Backward Compatibility). */
const ownCapabilities = (capabilities: Capabilities): Capabilities =>
  withoutTasks(Object.fromEntries(Object.entries(declaredOnly(capabilities)).filter(([name]) => name !== 'tasks')))

/** The capabilities that are carried for a host: URL mode exists from 2025-11-25 ([2026-07-28 client/elicitation]; BRIDGING 3.1). */
export const carriedCapabilities = ({ capabilities, revision }: Introduction): Capabilities => {
  const { elicitation } = capabilities
  if (isAtLeast(revision, '2025-11-25') || !isJsonObject(elicitation)) return capabilities
  return { ...capabilities, elicitation: Object.fromEntries(Object.entries(elicitation).filter(([mode]) => mode !== 'url')) }
}

/** Without `list`: unauthenticated callers are one principal and would see each other's tasks (B183). */
export const TASKS_CAPABILITY = { cancel: {}, requests: { tools: { call: {} } } } as const

/** `gateways`: the gateways that calls pass, this one first. */
export const initializeResult = (
  revision: LegacyRevision,
  identity: Identity,
  instructions: string | undefined,
  { tasks, apps }: Offers,
  gateways: readonly string[],
): object => ({
  protocolVersion: revision,
  capabilities: {
    ...SUPERSET_CAPABILITIES,
    ...(tasks && isAtLeast(revision, '2025-11-25') && { tasks: TASKS_CAPABILITY }),
    // Not defined in this era, but hosts read it ([ext apps, Capability Negotiation]).
    ...(apps !== undefined && { extensions: { [UI_EXTENSION]: apps } }),
  },
  serverInfo: identity,
  ...(instructions !== undefined && { instructions }),
  _meta: { [META.gateways]: gateways },
})

/** Removes the protocol's own members of the modern era from the `_meta` of a modern server's result (B291). */
export const withoutModernMeta = (result: Payload): void => {
  const meta = result.object('_meta')
  const own = meta?.members.filter(({ key }) => key.startsWith(PROTOCOL_PREFIX) && key !== META.relatedTask) ?? []
  if (own.length === 0) return
  if (own.length === meta?.members.length) result.delete('_meta')
  else for (const { key } of own) meta?.delete(key)
}

/** The result of a legacy server at a bridge, unchanged; a task in the form of 2025-11-25. */
export const encodeBridged = ({ kind, result }: Outcome): JsonObject => (kind === 'task' ? legacyCreation(result) : result)

/** A result without members of the modern era (B106); a task in the form of 2025-11-25. */
export const encodeLegacy = ({ kind, result }: Outcome): JsonObject =>
  kind === 'task' ? legacyCreation(result) : withoutModernMembers(result)

/** Removes the members that only results of the modern era have. */
export const withoutModernMembers = (result: JsonObject): JsonObject => {
  // `input_required` of a modern server never gets here. Some legacy SDKs (go-sdk) have input rounds of their own, which stay.
  if (!(result instanceof Payload && result.text('resultType') === 'input_required')) result.delete('resultType')
  result.delete('ttlMs')
  result.delete('cacheScope')
  return result
}
