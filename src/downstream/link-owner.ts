/**
 * The owner of a link to a legacy server: the properties that its calls have in common, its declared capabilities, and its current users
 * (BRIDGING 3.0). Calls that differ in any part of the key never share a legacy link.
 */
import type { Declared, Link } from '../era/server/link.ts'
import { isBridge } from '../rpc/call.ts'
import type { Call, Caller, HostSession } from '../rpc/call.ts'
import { jsonObject } from '../values/json-object.ts'
import { declaresApps, UI_EXTENSION } from '../wire/protocol/extensions.ts'
import type { LogLevel } from '../wire/protocol/methods.ts'
import { reaches } from '../wire/protocol/methods.ts'
import { isLegacyRevision } from '../wire/protocol/revisions.ts'
import type { LegacyRevision } from '../wire/protocol/revisions.ts'
import type { Sharing } from './options.ts'

export interface LinkOwner {
  readonly key: string
  /** `session`: the link belongs to one legacy session and is closed with it. */
  readonly isolation: Sharing
  /** The principal of the call that opened it. */
  readonly principal: string
  /** Whether calls of other principals have used it. */
  isMixed: boolean
  readonly declared: Declared
  /** `clientInfo` for the server; `undefined`: that of the gateway. */
  readonly clientInfo: unknown
  /** The revision of the host at a bridge, which is requested from the server; `undefined`: the latest. */
  readonly revision: LegacyRevision | undefined
  /** The open legacy sessions that have used it. */
  readonly sessions: Set<HostSession>
  /** The session of the last call. */
  latest: HostSession | undefined
  /** The calls that wait for the link to open, oldest first. */
  readonly waiting: Set<Call>
  /** The most verbose requested log level. */
  level: LogLevel | undefined
}

/** An open link with its owner. */
export interface OwnedLink {
  readonly owner: LinkOwner
  readonly link: Link
}

/** The capabilities that the gateway can relay to this caller's host, and may therefore declare (B037). */
export const carried = ({ capabilities, session }: Pick<Caller, 'capabilities' | 'session'>): Declared => {
  const { elicitation, sampling, roots, experimental } = capabilities
  const extensions = session === undefined ? appsIn(capabilities) : extensionsIn(capabilities)
  return {
    ...(elicitation !== undefined && { elicitation }),
    ...(sampling !== undefined && { sampling }),
    ...(roots !== undefined && { roots }),
    // Experimental capabilities of a legacy host are relayed unchanged.
    ...(session !== undefined && experimental !== undefined && { experimental }),
    // Not defined in the legacy era, but sent by hosts (B044).
    ...(Object.keys(extensions).length > 0 && { extensions }),
  }
}

/** The properties of a caller that select a link. */
export type LinkKey = Pick<LinkOwner, 'key' | 'isolation' | 'principal' | 'declared' | 'clientInfo' | 'revision'>

/** The key of the link for a call of this caller. `serial`: returns a number that is unique per call. */
export const linkKeyOf = (caller: Caller, sharing: Sharing, serial: () => number): LinkKey => {
  const { principal, session, clientInfo, scope } = caller
  const isolation = sharing === 'session' && session === undefined ? 'principal' : sharing
  if (isolation === 'shared')
    return { key: isolation, isolation, principal, declared: {}, clientInfo: undefined, revision: undefined }
  const declared = carried(caller)
  const id = { session: session?.id, principal, call: isolation === 'call' ? serial() : '' }[isolation]
  const client = clientInfo === undefined ? '' : JSON.stringify(clientInfo)
  const revision = session !== undefined && isBridge(scope) && isLegacyRevision(caller.revision) ? caller.revision : undefined
  const key = `${isolation}:${id} ${JSON.stringify(declared)}${client}${revision ?? ''}`
  return { key, isolation, principal, declared, clientInfo, revision }
}

/** The owner of a new link, without sessions. */
export const ownerOf = ({ key, isolation, principal, declared, clientInfo, revision }: LinkKey): LinkOwner => ({
  key,
  isolation,
  principal,
  isMixed: false,
  declared,
  clientInfo,
  revision,
  sessions: new Set(),
  latest: undefined,
  waiting: new Set(),
  level: undefined,
})

/** Sessions that may get messages and questions outside of calls: none on a link of several principals (B051, B052). */
export const listeners = ({ isMixed, sessions }: LinkOwner): readonly HostSession[] => (isMixed ? [] : [...sessions])

/** The log level to request before this call: the caller's own, or on a shared link the most verbose one (BRIDGING 3.11). */
export const levelFor = (owner: LinkOwner, asked: LogLevel | undefined): LogLevel | undefined => {
  if (asked === undefined) return owner.level
  if (owner.isolation === 'session' || owner.level === undefined || reaches(owner.level, asked)) owner.level = asked
  return owner.level
}

const extensionsIn = ({ extensions }: Caller['capabilities']): Readonly<Record<string, unknown>> => jsonObject(extensions) ?? {}

const appsIn = (capabilities: Caller['capabilities']): Readonly<Record<string, unknown>> =>
  declaresApps(capabilities) ? { [UI_EXTENSION]: extensionsIn(capabilities)[UI_EXTENSION] } : {}
