/**
 * Modern hosts: each request carries `clientInfo` and capabilities, each result has a `resultType` ([2026-07-28 basic/index];
 * BRIDGING 3.1, 5.1 rows 10–12).
 */
import { Refusal } from '../../rpc/call.ts'
import type { Capabilities, Outcome } from '../../rpc/call.ts'
import { jsonObject } from '../../values/json-object.ts'
import { TASKS, UI_EXTENSION } from '../../wire/protocol/extensions.ts'
import type { Envelope } from '../../wire/message/envelope.ts'
import { META } from '../../wire/protocol/meta.ts'
import { isLogLevel, METHODS } from '../../wire/protocol/methods.ts'
import type { LogLevel } from '../../wire/protocol/methods.ts'
import type { JsonObject, Payload } from '../../wire/message/payload.ts'
import { isModernRevision, isWithin, MODERN, MODERN_REVISIONS, revisionsWithin } from '../../wire/protocol/revisions.ts'
import type { ModernRevision, RevisionRange } from '../../wire/protocol/revisions.ts'
import type { CapabilityCache } from './capability-cache.ts'
import { declaredOnly } from '../declared-capabilities.ts'

/** The host's description in `_meta`. */
export interface Introduced {
  readonly revision: ModernRevision
  readonly capabilities: Capabilities
  /** Self-reported, as parsed JSON. */
  readonly clientInfo: unknown
  readonly logLevel: LogLevel | undefined
}

/** Whether a message is modern, by its body (B034). */
export const isModern = (message: Envelope): boolean => message.params?.object('_meta')?.has(META.version) === true

/** Reads the per-request `_meta`. Throws `Refusal` with the HTTP status of the row in BRIDGING 5.1. */
export const readModern = (message: Envelope, known: CapabilityCache<Introduced>): Introduced => {
  const meta = message.params?.object('_meta')
  if (meta === undefined) throw malformed(META.version, 'a string')
  return known.of(meta, readIntroduction)
}

const readIntroduction = (meta: Payload): Introduced => {
  const version = meta.text(META.version)
  if (version === undefined) throw malformed(META.version, 'a string')
  if (!isModernRevision(version)) throw unsupportedVersion(version)
  const given = jsonObject(meta.value(META.capabilities))
  if (given === undefined) throw malformed(META.capabilities, 'an object')
  const capabilities = meta.raw(META.capabilities)?.includes('null') === true ? declaredOnly(given) : given
  const level = meta.text(META.logLevel)
  const logLevel = isLogLevel(level) ? level : undefined
  if (meta.has(META.logLevel) && logLevel === undefined) throw new Refusal(-32602, `unknown log level in ${META.logLevel}`)
  return { revision: version, capabilities, clientInfo: meta.value(META.clientInfo), logLevel }
}

/**
 * Refuses a modern request if `listen.revisions` excludes this era. The error is that of a legacy server, so that a host of both eras
 * falls back to `initialize` (B293; [2026-07-28 basic/versioning], Backward Compatibility).
 */
export const checkRange = (message: Envelope, range: RevisionRange): void => {
  if (isWithin(MODERN, range)) return
  const requested = message.params?.object('_meta')?.text(META.version)
  const supported = revisionsWithin(range)
  const text = `protocol version ${requested ?? MODERN} is not spoken here (listen.revisions); send initialize, with one of ${supported.join(', ')}`
  throw new Refusal(-32600, text, { status: 400, data: { supported, requested } })
}

/** Refuses a malformed `requestState` or malformed answers: such a request must not start the call again (B061, row 14). */
export const checkRound = ({ method, params }: Envelope): void => {
  if (METHODS[method]?.mayAskInput !== true || params === undefined) return
  const hasResponses = !isAbsent(params, 'inputResponses')
  if (hasResponses && params.object('inputResponses') === undefined)
    throw new Refusal(-32602, 'params.inputResponses must be an object')
  const isMissing = params.raw('requestState') === undefined || (!hasResponses && isAbsent(params, 'requestState'))
  if (!isMissing && params.text('requestState') === undefined) throw new Refusal(-32602, 'params.requestState must be a string')
}

const isAbsent = (params: Payload, key: string): boolean => {
  const raw = params.raw(key)
  return raw === undefined || raw.toString('latin1', 0, 4) === 'null'
}

/** The refusal of a request that needs the tasks extension from a host that does not declare it (B172). */
export const tasksNotDeclared = (): Refusal =>
  new Refusal(-32021, 'Missing required client capability', {
    status: 400,
    data: { requiredCapabilities: { extensions: { [TASKS]: {} } } },
  })

export const unsupportedVersion = (requested: string): Refusal =>
  new Refusal(-32022, `Unsupported protocol version: ${requested}`, {
    status: 400,
    data: { supported: MODERN_REVISIONS, requested },
  })

const malformed = (key: string, expected: string): Refusal =>
  new Refusal(-32602, `params._meta["${key}"] must be ${expected}`, { status: 400 })

const COMPLETE = Buffer.from('"complete"')

/** Adds the members that every result of this era has (B008, B011, B149, B150). `identityJson`: the `serverInfo` to add. */
export const encodeModern = (outcome: Outcome, method: string, identityJson: Uint8Array | undefined): JsonObject => {
  const { result } = outcome
  if (outcome.kind === 'task') result.set('resultType', '"task"')
  else if (outcome.kind === 'input_required') {
    result.delete('ttlMs')
    result.delete('cacheScope')
  } else if (outcome.type === undefined) {
    result.set('resultType', COMPLETE)
    if (METHODS[method]?.cacheable === true) {
      if (result.isAbsent('ttlMs')) result.set('ttlMs', '0')
      if (result.isAbsent('cacheScope')) result.set('cacheScope', '"private"')
    }
  }
  if (identityJson !== undefined) result.setIn('_meta', META.serverInfo, identityJson)
  return result
}

/** The capabilities in `server/discover`: the stable superset (BRIDGING 3.1). */
export const SUPERSET_CAPABILITIES = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  completions: {},
  logging: {},
} as const

/** Capabilities that are declared in addition to the superset: tasks, and the settings of MCP Apps if a server has any. */
export interface Offers {
  readonly tasks: boolean
  readonly apps: object | undefined
}

export const discoveredCapabilities = ({ tasks, apps }: Offers): object => ({
  ...SUPERSET_CAPABILITIES,
  ...((tasks || apps !== undefined) && {
    extensions: { ...(tasks && { [TASKS]: {} }), ...(apps !== undefined && { [UI_EXTENSION]: apps }) },
  }),
})

export const SUPPORTED_VERSIONS = [MODERN]
