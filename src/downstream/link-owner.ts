/**
 * Whom a link to a legacy server serves: what its calls must have in common, what is declared on it, and who uses it now
 * (BRIDGING 3.0). Two calls that differ in any part of the key never meet on a legacy link.
 */
import type { Declared } from '../era/server/link.ts'
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
  /** `session`: of one legacy session alone, and closed with it. */
  readonly isolation: Sharing
  /** Who opened it. */
  readonly principal: string
  /** Others of other principals have used it, too. */
  isMixed: boolean
  readonly declared: Declared
  /** Who the server is told it talks to; `undefined`: us. */
  readonly clientInfo: unknown
  /** The revision of the host at a bridge, which its server is asked for; `undefined`: the latest. */
  readonly revision: LegacyRevision | undefined
  /** The legacy sessions that have called on it and have not ended. */
  readonly sessions: Set<HostSession>
  /** Who of them called last. */
  latest: HostSession | undefined
  /** The calls that wait for it to be opened, oldest first. */
  readonly waiting: Set<Call>
  /** The most verbose level that anybody on it has asked for. */
  level: LogLevel | undefined
}

/** What the gateway can carry back to this caller's host, and may therefore declare (B037). */
export const carried = ({ capabilities, session }: Pick<Caller, 'capabilities' | 'session'>): Declared => {
  const { elicitation, sampling, roots, experimental } = capabilities
  const extensions = session === undefined ? appsIn(capabilities) : extensionsIn(capabilities)
  return {
    ...(elicitation !== undefined && { elicitation }),
    ...(sampling !== undefined && { sampling }),
    ...(roots !== undefined && { roots }),
    // Of a legacy host the server gets them as they were said: what they promise is between the two.
    ...(session !== undefined && experimental !== undefined && { experimental }),
    // Legacy eras know no such member; hosts put it there all the same (B044).
    ...(Object.keys(extensions).length > 0 && { extensions }),
  }
}

/** What says over which link a call goes. */
export type LinkKey = Pick<LinkOwner, 'key' | 'isolation' | 'principal' | 'declared' | 'clientInfo' | 'revision'>

/** The link that a call of this caller goes over. `serial`: tells calls apart that share nothing. */
export const linkKeyOf = (caller: Caller, sharing: Sharing, serial: () => number): LinkKey => {
  const { principal, session, clientInfo, scope } = caller
  const isolation = sharing === 'session' && session === undefined ? 'principal' : sharing
  if (isolation === 'shared')
    return { key: isolation, isolation, principal, declared: {}, clientInfo: undefined, revision: undefined }
  const declared = carried(caller)
  const id = { session: session?.id, principal, call: isolation === 'call' ? serial() : '' }[isolation]
  const introduced = clientInfo === undefined ? '' : JSON.stringify(clientInfo)
  const revision = session !== undefined && isBridge(scope) && isLegacyRevision(caller.revision) ? caller.revision : undefined
  const key = `${isolation}:${id} ${JSON.stringify(declared)}${introduced}${revision ?? ''}`
  return { key, isolation, principal, declared, clientInfo, revision }
}

/** The owner of a new link: no session uses it yet. */
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

/** Sessions that may hear and answer what no call of theirs caused: none where principals mix (B051, B052). */
export const listeners = ({ isMixed, sessions }: LinkOwner): readonly HostSession[] => (isMixed ? [] : [...sessions])

/** The level to ask the server for before this call: the caller's own, or where others listen the most verbose (3.11). */
export const levelFor = (owner: LinkOwner, asked: LogLevel | undefined): LogLevel | undefined => {
  if (asked === undefined) return owner.level
  if (owner.isolation === 'session' || owner.level === undefined || reaches(owner.level, asked)) owner.level = asked
  return owner.level
}

const extensionsIn = ({ extensions }: Caller['capabilities']): Readonly<Record<string, unknown>> => jsonObject(extensions) ?? {}

const appsIn = (capabilities: Caller['capabilities']): Readonly<Record<string, unknown>> =>
  declaresApps(capabilities) ? { [UI_EXTENSION]: extensionsIn(capabilities)[UI_EXTENSION] } : {}
