/**
 * The answers to `initialize` and `server/discover`, for all listeners. At the merged endpoint they are the gateway's; at a bridge
 * they are the server's own, as soon as the server is known in the era of the host (BRIDGING 3.0 rule 0, 3.1, 3.21; B277).
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
import { isModernRevision } from '../wire/protocol/revisions.ts'
import type { LegacyRevision } from '../wire/protocol/revisions.ts'
import type { ListenerContext } from './listener-context.ts'

const DISCOVER_TTL_MS = 60_000

/**
 * The result of `initialize`; a promise only while a server at a bridge is not known in this era yet, or for a pipe (`isPipe`): its host often
 * starts the process and initializes at once, before any server is known. Never rejects.
 */
export const initializeAnswer = (caller: Caller, context: ListenerContext, isPipe = false): Parts | Promise<Parts> =>
  whenKnown(caller, context, isPipe, (server) => {
    const { core, identities } = context
    const { scope, revision } = caller
    const own = initializeResult(
      // Cast: only hosts of legacy revisions send `initialize`.
      revision as LegacyRevision,
      identities.of(scope).info,
      core.instructions(caller),
      core.offers(scope),
      core.gateways,
    )
    const result = server === undefined ? own : { ...own, ...faceOf(server, caller, context) }
    return toParts(JSON.stringify(result))
  })

/** Calls `use` synchronously if the answer is there, so that the order of a listener's messages is kept. */
export const whenReady = <T>(answer: T | Promise<T>, use: (answer: T) => void): void => {
  if (answer instanceof Promise) void answer.then(use)
  else use(answer)
}

/** The result of `server/discover`, likewise. */
export const discoverAnswer = (caller: Caller, context: ListenerContext, isPipe = false): Draft | Promise<Draft> =>
  whenKnown(caller, context, isPipe, (server) => {
    const { core } = context
    const { scope } = caller
    const face = server && faceOf(server, caller, context)
    const instructions = core.instructions(caller)
    const result = new Draft()
    result.set('supportedVersions', JSON.stringify(SUPPORTED_VERSIONS))
    result.set('capabilities', JSON.stringify(face?.capabilities ?? discoveredCapabilities(core.offers(scope))))
    if (instructions !== undefined) result.set('instructions', JSON.stringify(instructions))
    result.setIn('_meta', META.gateways, JSON.stringify(core.gateways))
    if (server?.serverInfo !== undefined) result.setIn('_meta', META.serverInfo, JSON.stringify(server.serverInfo))
    result.set('ttlMs', String(core.isStarting(scope) ? 0 : DISCOVER_TTL_MS))
    result.set('cacheScope', '"private"')
    return result
  })

/**
 * The `serverInfo` that is written into every modern result; `undefined`: none, because a modern server at a bridge writes its own.
 */
export const resultIdentity = (origin: Pick<Caller, 'scope' | 'principal'>, context: ListenerContext): Uint8Array | undefined => {
  const server = isBridge(origin.scope) ? context.core.bridged({ ...origin, session: undefined }) : undefined
  if (server === undefined) return context.identities.of(origin.scope).json
  if (isModernRevision(server.revision)) return undefined
  return server.serverInfo === undefined
    ? context.identities.of(origin.scope).json
    : Buffer.from(JSON.stringify(server.serverInfo))
}

const faceOf = (
  { serverInfo, capabilities }: Inventory,
  { revision, scope }: Caller,
  { core, identities }: ListenerContext,
): { readonly serverInfo: object; readonly capabilities: object } => ({
  serverInfo: serverInfo ?? identities.of(scope).info,
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
