/**
 * A legacy host: what it said once at `initialize` holds for its session, and results reach it in the shapes its revision
 * knows ([2025-11-25 basic/lifecycle]; BRIDGING 3.1, 3.3).
 */
import { Refusal } from '../rpc/call.ts'
import type { Capabilities, Outcome } from '../rpc/call.ts'
import type { Envelope } from '../wire/envelope.ts'
import type { JsonObject } from '../wire/payload.ts'
import { isLegacyRevision, LATEST_LEGACY } from '../wire/revisions.ts'
import type { LegacyRevision } from '../wire/revisions.ts'
import type { Identity } from './link.ts'
import { project } from './projections.ts'
import { SUPERSET_CAPABILITIES } from './modern-host.ts'

export interface Introduction {
  readonly revision: LegacyRevision
  readonly capabilities: Capabilities
  /** Self-reported, for display only. */
  readonly clientInfo: unknown
}

/** Reads `initialize`; an unknown version is answered with the latest legacy one (B024–B026). */
export const readInitialize = (message: Envelope): Introduction => {
  const { params } = message
  const asked = params?.text('protocolVersion')
  if (params === undefined || asked === undefined) throw new Refusal(-32602, 'initialize needs params.protocolVersion')
  const capabilities = params.value('capabilities') ?? {}
  if (typeof capabilities !== 'object' || Array.isArray(capabilities))
    throw new Refusal(-32602, 'params.capabilities must be an object')
  return {
    revision: isLegacyRevision(asked) ? asked : LATEST_LEGACY,
    capabilities: capabilities as Capabilities,
    clientInfo: params.value('clientInfo'),
  }
}

export const initializeResult = (revision: LegacyRevision, identity: Identity, instructions: string | undefined): object => ({
  protocolVersion: revision,
  capabilities: SUPERSET_CAPABILITIES,
  serverInfo: identity,
  ...(instructions !== undefined && { instructions }),
})

/** A result in the shapes of the host's revision, without what only the modern era knows (B106). */
export const wordLegacy = (outcome: Outcome, method: string, revision: LegacyRevision): JsonObject => {
  const result = project(outcome.result, method, revision)
  result.delete('resultType')
  result.delete('ttlMs')
  result.delete('cacheScope')
  return result
}
