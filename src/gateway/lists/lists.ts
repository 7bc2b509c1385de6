/** Serves the four lists from the catalog, one page per request, within the list budget (BRIDGING 3.1, 3.18, 3.19). */
import { firstValueFrom, filter, race, tap, timer } from 'rxjs'
import type { Seal } from '../../auth/seal.ts'
import { correctReadHints, listHints } from '../../catalog/view/cache-hints.ts'
import { servesApps } from '../../catalog/catalog.ts'
import { LIST_KINDS, LISTS } from '../../catalog/inventory.ts'
import type { ListKind } from '../../catalog/inventory.ts'
import { pageOf } from '../../catalog/view/pages.ts'
import type { View } from '../../catalog/view/view.ts'
import type { Downstream } from '../../downstream/downstream.ts'
import { complete, isBridge, SHARED_PRINCIPAL } from '../../rpc/call.ts'
import type { Call, Caller, Outcome, Scope } from '../../rpc/call.ts'
import { within } from '../../time/within.ts'
import { declaresApps } from '../../wire/protocol/extensions.ts'
import { Failure } from '../../wire/message/failure.ts'
import { Draft, Payload } from '../../wire/message/payload.ts'
import type { Access } from '../access.ts'
import { isListedDirectly } from '../bridges.ts'
import type { Feed } from './feed.ts'
import type { GatewayOptions } from '../options.ts'

const KINDS: ReadonlyMap<string, ListKind> = new Map(LIST_KINDS.map((kind) => [LISTS[kind].method, kind]))

/** Time limit of a last attempt at the servers before a list fails. */
const LAST_TRY_MS = 1_000

/** How long a list waits for servers to be read again; later differences are announced. */
export const FRESH_WAIT_MS = 250

export class Lists {
  readonly #feed: Feed
  readonly #downstreams: () => readonly Downstream[]
  readonly #seal: Seal
  readonly #options: () => GatewayOptions
  readonly #access: Access

  constructor(feed: Feed, downstreams: () => readonly Downstream[], seal: Seal, options: () => GatewayOptions, access: Access) {
    this.#access = access
    this.#feed = feed
    this.#downstreams = downstreams
    this.#seal = seal
    this.#options = options
  }

  async serve(call: Call): Promise<Outcome> {
    const direct = isBridge(call.caller.scope) ? await this.#directly(call) : undefined
    if (direct !== undefined) return direct
    // Cast: called for these methods only.
    const kind = KINDS.get(call.method)!
    const { caller } = call
    const { session } = caller
    const known = this.known(caller)
    // A later page does not contain a change of an earlier one.
    const isWhole = session !== undefined && cursorOf(call.params) === undefined
    const leftOut = isWhole ? await this.#feed.watchers.whileWaiting(session, caller, kind, known) : await known
    if (leftOut === undefined) return this.#listed(call, kind)
    try {
      const outcome = await this.#listed(call, kind)
      if (call.signal.aborted) leftOut()
      return outcome
    } catch (error) {
      leftOut()
      throw error
    }
  }

  async #listed(call: Call, kind: ListKind): Promise<Outcome> {
    const pending = this.#outdated(call.caller, kind)
    if (pending !== undefined) await within(FRESH_WAIT_MS, pending)
    if (this.#commonFailure(call.caller) !== undefined) await this.#refuseIfAllFail(call.caller)
    const view = this.#feed.viewOf(call.caller)
    const { pageMaxItems: maxItems, pageMaxBytes: maxBytes } = this.#options()
    const limits = { maxItems, maxBytes }
    const shown = this.#access.shown(view, kind, call.caller)
    const isIn = shown instanceof Promise ? await shown : shown
    const { principal } = call.caller
    const page = pageOf(view, { kind, cursor: cursorOf(call.params), principal, limits, seal: this.#seal, isIn })
    const result = new Draft()
    result.set(LISTS[kind].member, page.entries)
    if (page.nextCursor !== undefined) result.set('nextCursor', JSON.stringify(page.nextCursor))
    // Cache hints exist only in the modern era (B106).
    if (call.caller.session === undefined) this.#hint(result, kind, call.caller, view)
    return complete(result)
  }

  #hint(result: Draft, kind: ListKind, caller: Caller, { sources }: View): void {
    const { listTtlCapMs } = this.#options()
    const contributors = sources.flatMap(({ inventory }) => (inventory === undefined ? [] : [inventory.freshness[kind]]))
    const hints = listHints(contributors, {
      nowMs: performance.now(),
      capMs: listTtlCapMs,
      isStarting: this.isStarting(caller.scope),
      // With credentials, the same path shows other lists to other callers (T-30).
      isPersonal:
        this.#access.policy !== undefined ||
        caller.principal !== SHARED_PRINCIPAL ||
        this.#inScope(caller.scope).some(({ personal }) => personal !== undefined),
    })
    result.set('ttlMs', String(hints.ttlMs))
    result.set('cacheScope', JSON.stringify(hints.cacheScope))
  }

  /** The list of a bridge's server, relayed with its own pages; `undefined`: the list is served from the catalog. */
  async #directly(call: Call): Promise<Outcome | undefined> {
    if (this.#access.policy !== undefined) return undefined
    const { caller } = call
    const [downstream] = this.#inScope(caller.scope, caller.principal)
    if (downstream === undefined || !isListedDirectly(downstream, this.#feed.viewOf(caller), caller)) return undefined
    try {
      const outcome = await downstream.handle(call)
      // The server turned out to be of the other era: the list must be translated.
      if (!isListedDirectly(downstream, this.#feed.viewOf(caller), caller)) return undefined
      const isPersonal = caller.principal !== SHARED_PRINCIPAL || downstream.credential !== undefined
      if (caller.session === undefined && outcome.result instanceof Payload) correctReadHints(outcome.result, isPersonal)
      return outcome
    } catch (error) {
      // Errors of the server are relayed. Without a connection the first page is served from the catalog.
      if (!(error instanceof Failure) || call.signal.aborted || cursorOf(call.params) !== undefined) throw error
      return undefined
    }
  }

  /** Waits for servers that are starting, within the rest of the budget of each. Failed servers are tried again meanwhile. */
  async known(caller: Pick<Caller, 'scope' | 'principal' | 'capabilities' | 'session'>): Promise<void> {
    const { scope, principal, capabilities, session } = caller
    const servers = this.#inScope(scope, principal)
    for (const downstream of servers) if (downstream.health$.value.state === 'down') downstream.supervisor.hurry()
    await Promise.all(this.#awaitedIn(servers).map((downstream) => this.#awaited(downstream, this.#options().listBudgetMs, true)))
    if (declaresApps(capabilities)) await this.#knownToApps(scope)
    if (session !== undefined) await this.#knownToLegacy(scope, principal)
  }

  /** The same before a handshake answer, since some hosts never read lists again; `undefined`: nothing to wait for. */
  greeted(scope: Scope, principal: string): Promise<unknown> | undefined {
    const { handshakeBudgetMs } = this.#options()
    const awaited = handshakeBudgetMs === 0 ? [] : this.#awaitedIn(this.#inScope(scope, principal))
    if (awaited.length === 0) return undefined
    return Promise.all(awaited.map((downstream) => this.#awaited(downstream, handshakeBudgetMs, false)))
  }

  #awaitedIn(servers: readonly Downstream[]): readonly Downstream[] {
    return servers.filter(({ isAwaited }) => isAwaited)
  }

  /** Waits for the lists of servers of both eras for legacy hosts, which are read at the first request (BRIDGING 3.0 rule 0). */
  async #knownToLegacy(scope: Scope, principal: string): Promise<void> {
    const wanted = this.#inScope(scope, principal).flatMap((downstream) => downstream.eras.wantLegacy() ?? [])
    if (wanted.length > 0) await within(this.#options().listBudgetMs, Promise.all(wanted))
  }

  /** Settles once outdated lists of this caller's servers have been read again; `undefined`: none is outdated (B285). */
  #outdated(caller: Caller, kind: ListKind): Promise<unknown> | undefined {
    const pending = this.#inScope(caller.scope, caller.principal)
      .map((downstream) => downstream.callerLists.freshen(caller, kind))
      .filter((one) => one !== undefined)
    return pending.length === 0 ? undefined : Promise.all(pending)
  }

  /** `isNoted`: a server that is late is stored as such, and lists do not wait for it at the next start. */
  async #awaited(downstream: Downstream, budgetMs: number, isNoted: boolean): Promise<void> {
    const leftMs = budgetMs - (performance.now() - downstream.startedMs)
    if (leftMs <= 0) return
    const isKnown = downstream.inventory$.pipe(filter((inventory) => inventory !== undefined))
    const isOver = downstream.health$.pipe(filter(({ state, failures }) => state !== 'starting' || failures > 0))
    const isLate = timer(leftMs).pipe(tap(() => (isNoted ? downstream.noteMissing() : undefined)))
    await firstValueFrom(race(isKnown, isOver, isLate), { defaultValue: undefined })
  }

  /** Waits for the lists for hosts that run MCP Apps, which are read at the first request. */
  async #knownToApps(scope: Scope): Promise<void> {
    const serving = this.#inScope(scope).filter(({ options }) => servesApps(options, this.#feed.catalog))
    await within(this.#options().listBudgetMs, Promise.all(serving.map((downstream) => downstream.wantApps())))
  }

  /** Whether a server of this scope is still starting. */
  isStarting(scope: Scope): boolean {
    return this.#inScope(scope).some(({ health$, isResting }) => health$.value.state === 'starting' && !isResting)
  }

  /** Throws the failure of a list if no server is reached, also after one more attempt (BRIDGING 7.1 rule 5). */
  async #refuseIfAllFail(caller: Caller): Promise<void> {
    const servers = this.#inScope(caller.scope, caller.principal)
    await within(LAST_TRY_MS, Promise.all(servers.map((downstream) => downstream.supervisor.tried())))
    const failure = this.#commonFailure(caller)
    if (failure !== undefined) throw failure
  }

  /** The failure of the first server if all have failed; `undefined`: some server may have lists. */
  #commonFailure({ scope, principal }: Caller): Failure | undefined {
    const all = this.#inScope(scope, principal)
    const isLost = ({ health$, inventory$ }: Downstream): boolean =>
      inventory$.value === undefined && (health$.value.state === 'failed' || health$.value.state === 'down')
    const [first] = all
    const failure = first?.health$.value.failure
    if (first === undefined || failure === undefined || !all.every(isLost)) return undefined
    return new Failure(failure.kind, failure.message, { ...failure.facts, executed: 'no' }).at(first.options)
  }

  /** With a principal: the servers that its calls go to. */
  #inScope(scope: Scope, principal?: string): readonly Downstream[] {
    const all = this.#downstreams().filter(({ options }) => this.#feed.reaches(scope, options))
    return principal === undefined ? all : all.map((one) => one.for(principal))
  }
}

/** `null` and an empty text count as absent (B282); another type yields an invalid cursor. */
const cursorOf = (params: Payload): string | undefined => {
  if (params.isAbsent('cursor')) return undefined
  const cursor = params.text('cursor') ?? 'no text'
  return cursor === '' ? undefined : cursor
}
