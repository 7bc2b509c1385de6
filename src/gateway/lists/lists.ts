/** The four lists: served from the catalog, a page at a time, never later than the list budget (BRIDGING 3.1, 3.18, 3.19). */
import { firstValueFrom, filter, from, race, tap, timer } from 'rxjs'
import type { Seal } from '../../auth/seal.ts'
import { correctReadHints, listHints } from '../../catalog/view/cache-hints.ts'
import { servesApps } from '../../catalog/catalog.ts'
import type { ListKind } from '../../catalog/inventory.ts'
import { pageOf } from '../../catalog/view/pages.ts'
import type { View } from '../../catalog/view/view.ts'
import type { Downstream } from '../../downstream/downstream.ts'
import { complete, isBridge, SHARED_PRINCIPAL } from '../../rpc/call.ts'
import type { Call, Caller, Outcome, Scope } from '../../rpc/call.ts'
import { declaresApps } from '../../wire/protocol/extensions.ts'
import { Failure } from '../../wire/message/failure.ts'
import { Draft, Payload } from '../../wire/message/payload.ts'
import type { Access } from '../access.ts'
import { isListedDirectly } from './bridges.ts'
import type { Feed } from './feed.ts'
import type { GatewayOptions } from '../options.ts'

const KINDS: Readonly<Record<string, { readonly kind: ListKind; readonly member: string }>> = {
  'tools/list': { kind: 'tools', member: 'tools' },
  'resources/list': { kind: 'resources', member: 'resources' },
  'resources/templates/list': { kind: 'templates', member: 'resourceTemplates' },
  'prompts/list': { kind: 'prompts', member: 'prompts' },
}

/** How long a list that would fail waits for a last attempt at the servers. */
const LAST_TRY_MS = 1_000

/** How long a list waits for servers to be read again. What they say later is announced. */
export const FRESH_WAIT_MS = 250

/** Settles with `pending`, which never rejects, or after so many milliseconds. */
export const within = (ms: number, pending: Promise<unknown>): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    void pending.then(() => {
      clearTimeout(timer)
      resolve()
    })
  })

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
    // Cast: it serves these methods alone.
    const row = KINDS[call.method]!
    await this.known(call.caller)
    const pending = this.#outdated(call.caller, row.kind)
    if (pending !== undefined) await within(FRESH_WAIT_MS, pending)
    if (this.#commonFailure(call.caller) !== undefined) await this.#refuseIfAllFail(call.caller)
    const { pageMaxItems, pageMaxBytes } = this.#options()
    const view = this.#feed.viewOf(call.caller)
    const cursor = cursorOf(call.params)
    const shown = this.#access.shown(view, row.kind, call.caller)
    const isIn = shown instanceof Promise ? await shown : shown
    const page = pageOf(
      view,
      row.kind,
      cursor,
      { maxItems: pageMaxItems, maxBytes: pageMaxBytes },
      this.#seal,
      call.caller.principal,
      isIn,
    )
    const result = new Draft()
    result.set(row.member, page.entries)
    if (page.nextCursor !== undefined) result.set('nextCursor', JSON.stringify(page.nextCursor))
    // How long it may be kept is told in the modern era alone (B106).
    if (call.caller.session === undefined) this.#hint(result, row.kind, call.caller, view)
    return complete(result)
  }

  #hint(result: Draft, kind: ListKind, caller: Caller, { sources }: View): void {
    const { listTtlCapMs } = this.#options()
    const contributors = sources.flatMap(({ inventory }) => (inventory === undefined ? [] : [inventory.freshness[kind]]))
    const hints = listHints(contributors, {
      nowMs: performance.now(),
      capMs: listTtlCapMs,
      isStarting: this.isStarting(caller.scope),
      // With credentials, who asks decides what one path shows (T-30).
      isPersonal:
        this.#access.policy !== undefined ||
        caller.principal !== SHARED_PRINCIPAL ||
        this.#inScope(caller.scope).some(({ personal }) => personal !== undefined),
    })
    result.set('ttlMs', String(hints.ttlMs))
    result.set('cacheScope', JSON.stringify(hints.cacheScope))
  }

  /** The list as the server of a bridge writes it, with its own pages; `undefined`: what is known of it is served. */
  async #directly(call: Call): Promise<Outcome | undefined> {
    const { caller } = call
    const [downstream] = this.#inScope(caller.scope, caller.principal)
    if (this.#access.policy !== undefined) return undefined
    if (downstream === undefined || !isListedDirectly(downstream, this.#feed.viewOf(caller), caller)) return undefined
    try {
      const outcome = await downstream.handle(call)
      // A server turned out to be of the other era: then the list is put into the words of this one.
      if (!isListedDirectly(downstream, this.#feed.viewOf(caller), caller)) return undefined
      const isPersonal = caller.principal !== SHARED_PRINCIPAL || downstream.credential !== undefined
      if (caller.session === undefined && outcome.result instanceof Payload) correctReadHints(outcome.result, isPersonal)
      return outcome
    } catch (error) {
      // Its words are its own; while it is away, the first page is what was known of it.
      if (!(error instanceof Failure) || call.signal.aborted || cursorOf(call.params) !== undefined) throw error
      return undefined
    }
  }

  /**
   * Waits until something is known of every server that is starting, at most as long as the budget of each has left. One that has
   * failed is not waited for, but tried again.
   */
  async known(caller: Pick<Caller, 'scope' | 'principal' | 'capabilities' | 'session'>): Promise<void> {
    const { scope, principal, capabilities, session } = caller
    const servers = this.#inScope(scope, principal)
    for (const downstream of servers) if (downstream.health$.value.state === 'down') downstream.supervisor.hurry()
    await Promise.all(this.#awaitedIn(servers).map((downstream) => this.#awaited(downstream, this.#options().listBudgetMs, true)))
    if (declaresApps(capabilities)) await this.#knownToApps(scope)
    if (session !== undefined) await this.#knownToLegacy(scope, principal)
  }

  /**
   * Waits for the same servers, for the handshake of a host that may be told of them then or never: at most `handshakeBudgetMs`.
   * `undefined`: there is nothing to wait for.
   */
  greeted(scope: Scope, principal: string): Promise<unknown> | undefined {
    const { handshakeBudgetMs } = this.#options()
    const awaited = handshakeBudgetMs === 0 ? [] : this.#awaitedIn(this.#inScope(scope, principal))
    if (awaited.length === 0) return undefined
    return Promise.all(awaited.map((downstream) => this.#awaited(downstream, handshakeBudgetMs, false)))
  }

  #awaitedIn(servers: readonly Downstream[]): readonly Downstream[] {
    return servers.filter(({ isAwaited }) => isAwaited)
  }

  /** What servers of both eras list to legacy hosts is read when the first of these asks (BRIDGING 3.0 rule 0). */
  async #knownToLegacy(scope: Scope, principal: string): Promise<void> {
    const asked = this.#inScope(scope, principal).flatMap((downstream) => downstream.eras.wantLegacy() ?? [])
    if (asked.length > 0) await firstValueFrom(race(from(Promise.all(asked)), timer(this.#options().listBudgetMs)))
  }

  /** Settles once the servers of this caller have been read again; `undefined`: what is known of all of them is new enough (B285). */
  #outdated(caller: Caller, kind: ListKind): Promise<unknown> | undefined {
    const pending = this.#inScope(caller.scope, caller.principal)
      .map((downstream) => downstream.callerLists.freshen(caller, kind))
      .filter((one) => one !== undefined)
    return pending.length === 0 ? undefined : Promise.all(pending)
  }

  /** `isNoted`: being late is remembered, and the next start does not wait. */
  async #awaited(downstream: Downstream, budgetMs: number, isNoted: boolean): Promise<void> {
    const leftMs = budgetMs - (performance.now() - downstream.startedMs)
    if (leftMs <= 0) return
    const isKnown = downstream.inventory$.pipe(filter((inventory) => inventory !== undefined))
    const isOver = downstream.health$.pipe(filter(({ state, failures }) => state !== 'starting' || failures > 0))
    const isLate = timer(leftMs).pipe(tap(() => (isNoted ? downstream.noteMissing() : undefined)))
    await firstValueFrom(race(isKnown, isOver, isLate), { defaultValue: undefined })
  }

  /** The lists for hosts that run apps are read when the first of these asks; later ones find them. */
  async #knownToApps(scope: Scope): Promise<void> {
    const serving = this.#inScope(scope).filter(({ options }) => servesApps(options, this.#feed.catalog))
    const wanted = Promise.all(serving.map((downstream) => downstream.wantApps()))
    await firstValueFrom(race(from(wanted), timer(this.#options().listBudgetMs)))
  }

  /** Some server of this scope is still on its way up. */
  isStarting(scope: Scope): boolean {
    return this.#inScope(scope).some(({ health$ }) => health$.value.state === 'starting')
  }

  /**
   * A list fails only if every server has failed and nothing is known of any (BRIDGING 7.1 rule 5). Then it is worth one attempt:
   * the only server may just be starting.
   */
  async #refuseIfAllFail(caller: Caller): Promise<void> {
    const tried = Promise.all(this.#inScope(caller.scope, caller.principal).map((downstream) => downstream.supervisor.tried()))
    await firstValueFrom(race(from(tried), timer(LAST_TRY_MS)))
    const failure = this.#commonFailure(caller)
    if (failure !== undefined) throw failure
  }

  /** `undefined`: some server may have something to list. */
  #commonFailure({ scope, principal }: Caller): Failure | undefined {
    const all = this.#inScope(scope, principal)
    const isLost = ({ health$, inventory$ }: Downstream): boolean =>
      inventory$.value === undefined && (health$.value.state === 'failed' || health$.value.state === 'down')
    const [first] = all
    const failure = first?.health$.value.failure
    if (first === undefined || failure === undefined || !all.every(isLost)) return undefined
    return new Failure(failure.kind, failure.message, { ...failure.facts, executed: 'no' }).at(first.options)
  }

  /** With a principal: those its calls go to. */
  #inScope(scope: Scope, principal?: string): readonly Downstream[] {
    const all = this.#downstreams().filter(({ options }) => this.#feed.reaches(scope, options))
    return principal === undefined ? all : all.map((one) => one.for(principal))
  }
}

/** Null and an empty text are how some hosts write that there is none (B282); what is no text opens nothing. */
const cursorOf = (params: Payload): string | undefined => {
  if (params.isAbsent('cursor')) return undefined
  const cursor = params.text('cursor') ?? 'no text'
  return cursor === '' ? undefined : cursor
}
