/**
 * The results of `initialize` and `server/discover`, for all listeners. At the merged endpoint they describe the gateway; at a bridge
 * they describe the server, once its inventory in the host's era is known (BRIDGING 3.0 rule 0, 3.1, 3.21; B277).
 */
import type { Inventory } from '../catalog/inventory.ts'
import { bridgedCapabilities } from '../era/host/bridged-capabilities.ts'
import { initializeResult } from '../era/host/legacy-host.ts'
import { discoveredCapabilities, SUPPORTED_VERSIONS } from '../era/host/modern-host.ts'
import { isBridge } from '../rpc/call.ts'
import type { Caller } from '../rpc/call.ts'
import { META } from '../wire/protocol/meta.ts'
import { Draft, toParts } from '../wire/message/payload.ts'
import type { Parts } from '../wire/message/payload.ts'
import { isModernRevision, isWithin, MODERN } from '../wire/protocol/revisions.ts'
import type { LegacyRevision, RevisionRange } from '../wire/protocol/revisions.ts'
import type { ListenerContext } from './listener-context.ts'

const DISCOVER_TTL_MS = 60_000

/** The hint for a request that is of neither era: what a host can do, of the eras that are spoken. */
export const howToBegin = (revisions: RevisionRange): string =>
  isWithin(MODERN, revisions)
    ? `send initialize first, or describe the request by params._meta["${META.version}"]`
    : 'send initialize first'

/**
 * Returns the result of `initialize`. A promise only while the server of a bridge is not known, or on a pipe (`isPipe`) before any server
 * is known: a host on a pipe often initializes right after it has started the process. Never rejects.
 */
export const initializeAnswer = (caller: Caller, context: ListenerContext, isPipe = false): Parts | Promise<Parts> =>
  whenKnown(caller, context, isPipe, (server) => {
    const { core, endpointInfos } = context
    const { scope, revision } = caller
    const own = initializeResult(
      // Cast: only hosts of legacy revisions send `initialize`.
      revision as LegacyRevision,
      endpointInfos.of(scope).info,
      core.instructions(caller),
      core.offers(scope),
      core.gateways,
    )
    const result = server === undefined ? own : { ...own, ...bridgedMembers(server, caller, context) }
    return toParts(JSON.stringify(result))
  })

/** Calls `use` synchronously if the answer is not a promise, so that a listener's messages keep their order. */
export const whenReady = <T>(answer: T | Promise<T>, use: (answer: T) => void): void => {
  if (answer instanceof Promise) void answer.then(use)
  else use(answer)
}

/** Returns the result of `server/discover`; a promise as for `initializeAnswer`. */
export const discoverAnswer = (caller: Caller, context: ListenerContext, isPipe = false): Draft | Promise<Draft> =>
  whenKnown(caller, context, isPipe, (server) => {
    const { core } = context
    const { scope } = caller
    const bridged = server && bridgedMembers(server, caller, context)
    const instructions = core.instructions(caller)
    const result = new Draft()
    result.set('supportedVersions', JSON.stringify(SUPPORTED_VERSIONS))
    result.set('capabilities', JSON.stringify(bridged?.capabilities ?? discoveredCapabilities(core.offers(scope))))
    if (instructions !== undefined) result.set('instructions', JSON.stringify(instructions))
    result.setIn('_meta', META.gateways, JSON.stringify(core.gateways))
    if (server?.serverInfo !== undefined) result.setIn('_meta', META.serverInfo, JSON.stringify(server.serverInfo))
    result.set('ttlMs', String(core.isStarting(scope) ? 0 : DISCOVER_TTL_MS))
    result.set('cacheScope', '"private"')
    return result
  })

/** Returns the `serverInfo` to write into a modern result; `undefined`: none, since a modern server at a bridge writes its own. */
export const resultIdentity = (origin: Pick<Caller, 'scope' | 'principal'>, context: ListenerContext): Uint8Array | undefined => {
  const server = isBridge(origin.scope) ? context.core.bridged({ ...origin, session: undefined }) : undefined
  if (server !== undefined && isModernRevision(server.revision)) return undefined
  return server?.serverInfo === undefined
    ? context.endpointInfos.of(origin.scope).json
    : Buffer.from(JSON.stringify(server.serverInfo))
}

const bridgedMembers = (
  { serverInfo, capabilities }: Inventory,
  { revision, scope }: Caller,
  { core, endpointInfos }: ListenerContext,
): { readonly serverInfo: object; readonly capabilities: object } => ({
  serverInfo: serverInfo ?? endpointInfos.of(scope).info,
  capabilities: bridgedCapabilities(capabilities, revision, core.offersTasks),
})

const whenKnown = <T>(
  caller: Caller,
  { core }: ListenerContext,
  isPipe: boolean,
  make: (server: Inventory | undefined) => T,
): T | Promise<T> => {
  const pending = isBridge(caller.scope) ? core.introduced(caller) : isPipe ? core.greeted(caller) : undefined
  const now = (): T => make(core.bridged(caller))
  return pending === undefined ? now() : pending.then(now)
}
