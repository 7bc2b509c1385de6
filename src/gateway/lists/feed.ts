/** Builds the catalog again when an inventory or the configuration changes, replaces it as a whole, and notifies hosts. */
import { auditTime, BehaviorSubject, combineLatest, map, of, switchMap, tap } from 'rxjs'
import { buildCatalog } from '../../catalog/build-catalog.ts'
import { servesApps } from '../../catalog/catalog.ts'
import type { Catalog, CatalogOptions, CatalogServer, CatalogSource } from '../../catalog/catalog.ts'
import { Curator } from '../../catalog/curate/curated-inventory.ts'
import { outputFormOf } from '../../catalog/view/wrap-schema.ts'
import { Grants } from '../../catalog/view/grants.ts'
import { isSameOffer } from '../../catalog/inventory.ts'
import type { Inventory } from '../../catalog/inventory.ts'
import { LIST_FORMS, listForm } from '../../catalog/view/ready-entry.ts'
import { summarise } from '../../catalog/lint/toolset-findings.ts'
import type { ToolsetSummary } from '../../catalog/lint/toolset-findings.ts'
import { Toolsets } from '../../catalog/view/toolsets.ts'
import { Views } from '../../catalog/view/view.ts'
import type { Selection, View } from '../../catalog/view/view.ts'
import type { Downstream } from '../../downstream/downstream.ts'
import type { SharedBy } from '../../downstream/environment.ts'
import type { Caller, HostSession, Scope } from '../../rpc/call.ts'
import { declaresApps } from '../../wire/protocol/extensions.ts'
import { isModernRevision, MODERN } from '../../wire/protocol/revisions.ts'
import type { Revision } from '../../wire/protocol/revisions.ts'
import type { GatewayOptions } from '../options.ts'
import { PersonalCatalogs } from './personal-catalogs.ts'
import { SessionCatalogs } from './session-catalogs.ts'
import { Watchers } from './watchers.ts'
import type { ListAccess } from './watchers.ts'

/** Kinds of hosts with lists of their own. */
type Kind = 'all' | 'apps' | 'legacy'
const KINDS: readonly Kind[] = ['all', 'apps', 'legacy']

/** Changes of inventories within this time lead to one catalog. */
const SETTLE_MS = 20

/** The caller of a view. `capabilities`: read only for MCP Apps. `principal`, `session`: select lists of their own. */
type Viewer = Pick<Caller, 'scope' | 'revision'> & Partial<Pick<Caller, 'capabilities' | 'principal' | 'session'>>

type FeedOptions = GatewayOptions & Pick<CatalogOptions, 'outputSchemas'>

export class Feed {
  readonly catalog$: BehaviorSubject<Catalog>
  readonly #views = new Views()
  readonly #curator = new Curator()
  /** Who is notified of changed lists, once the new catalog is in force (B128). */
  readonly watchers: Watchers
  #options: FeedOptions
  /** The catalog for hosts that run MCP Apps; the same object as `catalog` unless a server has other lists for them. */
  #appsCatalog: Catalog
  /** The catalog for legacy hosts; the same object as `catalog` unless a server has other lists for them. */
  #legacyCatalog: Catalog
  /** Views of the current catalog: by scope, one for each form of lists. A call takes one look-up. */
  #current = new Map<Scope, (View | undefined)[]>()
  #toolsets: Toolsets
  /** By granted scopes. */
  readonly #grants = new Map<string, Grants>()
  readonly #sessions: SessionCatalogs
  readonly #personal: PersonalCatalogs
  /** Catalogs of principals with a link of their own: for all their callers, or only for callers without a session. */
  readonly #linked: Readonly<Record<'all' | 'withoutSession', PersonalCatalogs>>
  /** The servers, if an inventory is newer than the catalog; the next view builds the new catalog. */
  #unsettled: readonly Downstream[] | undefined

  /** `reached` is called with each limit that was reached. `access`: hides rows, and so changes of them. */
  constructor(
    downstreams$: BehaviorSubject<readonly Downstream[]>,
    options: GatewayOptions,
    reached: (option: string) => void,
    access: ListAccess,
  ) {
    this.watchers = new Watchers((caller) => this.viewOf(caller), access)
    this.#options = options
    this.#toolsets = new Toolsets(options.toolsets)
    this.catalog$ = new BehaviorSubject(this.#build(downstreams$.value))
    this.#appsCatalog = this.#legacyCatalog = this.catalog
    this.#sessions = new SessionCatalogs(
      () => this.#options,
      this.#curator,
      (session) => this.watchers.look({ session }),
    )
    const personal = (listed: (principal: string) => ReadonlyMap<string, Inventory>): PersonalCatalogs =>
      new PersonalCatalogs({
        options: () => this.#options,
        curator: this.#curator,
        listed,
        changed: (principal) => this.watchers.look({ principal }),
        reached,
      })
    this.#personal = personal((principal) => listedTo(principal, downstreams$.value))
    this.#linked = { all: personal(() => NOTHING_OWN), withoutSession: personal(() => NOTHING_OWN) }
    downstreams$
      .pipe(
        switchMap((downstreams) =>
          downstreams.length === 0
            ? of(downstreams)
            : combineLatest(
                downstreams.flatMap(({ inventory$, offers: { apps, legacy } }) => [
                  inventory$,
                  apps.inventory$,
                  legacy.inventory$,
                ]),
              ).pipe(map(() => downstreams)),
        ),
        tap((downstreams) => (this.#unsettled = downstreams)),
        auditTime(SETTLE_MS),
      )
      .subscribe(() => this.#settle())
  }

  get catalog(): Catalog {
    return this.catalog$.value
  }

  /** Sets the lists of a server for one session; `undefined`: the common lists. */
  sessionListed(key: string, session: HostSession, inventory: Inventory | undefined): void {
    this.#sessions.set(session, key, inventory)
  }

  /** Sets the lists of a server for one principal. */
  personalListed(key: string, principal: string, inventory: Inventory): void {
    this.#personal.set(principal, key, inventory)
  }

  /** Sets the lists of a server for the callers that share one principal's link; `undefined`: the common lists. */
  principalListed(key: string, { principal, hasSessions }: SharedBy, inventory: Inventory | undefined): void {
    this.#linked.withoutSession.set(principal, key, inventory)
    if (hasSessions || inventory === undefined) this.#linked.all.set(principal, key, inventory)
  }

  viewOf({ scope, revision, capabilities, principal, session }: Viewer): View {
    this.#settle()
    const kind = this.#kindOf(revision, capabilities)
    const common = this.#commonOf(kind)
    const signedIn = this.#personal.of(principal, common)
    const linked = session === undefined ? this.#linked.withoutSession : this.#linked.all
    const personal = linked.of(principal, signedIn?.catalog ?? common) ?? signedIn
    const catalog = personal?.catalog ?? common
    const own = session && this.#sessions.of(session, catalog)
    if (own !== undefined) return this.#views.of(own, this.#selectionOf(scope, revision))
    const current = personal?.views ?? this.#current
    let views = current.get(scope)
    if (views === undefined) current.set(scope, (views = []))
    const place = LIST_FORMS.indexOf(listForm(revision)) + KINDS.indexOf(kind) * LIST_FORMS.length
    return (views[place] ??= this.#views.of(catalog, this.#selectionOf(scope, revision)))
  }

  /** The view of everything that exists for this principal, without toolsets: for the operator. */
  whole(revision: Revision, principal?: string): View {
    this.#settle()
    const common = this.#commonOf(this.#kindOf(revision, undefined))
    return this.#views.of(this.#personal.of(principal, common)?.catalog ?? common, { revision })
  }

  /** Summaries of the toolsets for the current catalog. `listing`: the command that lists all names. */
  summaries(listing: string): readonly ToolsetSummary[] {
    const viewOf = (toolset: string): View =>
      this.#views.of(this.catalog, this.#selectionOf({ server: undefined, toolset }, MODERN))
    return summarise(this.#toolsets, this.whole(MODERN), viewOf, listing)
  }

  get toolsets(): Toolsets {
    return this.#toolsets
  }

  /** Whether the scope could contain anything of this server, whose inventory may be unknown. */
  reaches(scope: Scope, server: CatalogServer): boolean {
    if (scope.server !== undefined && scope.server !== server.key) return false
    if (this.grantsOf(scope)?.reads(server.key) === false) return false
    return this.#toolsets.of(scope)?.mayHold(server, this.#options) ?? true
  }

  /** Builds the catalog again with other options. */
  refresh(downstreams: readonly Downstream[], options: FeedOptions): void {
    this.#options = options
    this.#toolsets = new Toolsets(options.toolsets)
    this.#grants.clear()
    this.#swap(downstreams)
  }

  #selectionOf(scope: Scope, revision: Revision): Selection {
    // The only server of the merged endpoint may have got others since the last request of the caller.
    const server = scope.isMerged === true && this.catalog.sources.length > 1 ? undefined : scope.server
    const limits = { toolset: this.#toolsets.of({ ...scope, server }), grants: this.grantsOf(scope) }
    return server === undefined ? { revision, ...limits } : { only: server, revision, ...limits }
  }

  #kindOf(revision: Revision, capabilities: Caller['capabilities'] | undefined): Kind {
    if (this.#legacyCatalog !== this.catalog && !isModernRevision(revision)) return 'legacy'
    const isApps = this.#appsCatalog !== this.catalog && capabilities !== undefined && declaresApps(capabilities)
    return isApps ? 'apps' : 'all'
  }

  #commonOf(kind: Kind): Catalog {
    if (kind === 'all') return this.catalog
    return kind === 'apps' ? this.#appsCatalog : this.#legacyCatalog
  }

  /** Access by the OAuth scopes; `undefined`: they limit nothing. */
  grantsOf({ granted }: Scope): Grants | undefined {
    if (granted === undefined) return undefined
    let grants = this.#grants.get(granted)
    if (grants === undefined) this.#grants.set(granted, (grants = new Grants(granted, new Set(this.#options.scopes))))
    return grants
  }

  #settle(): void {
    if (this.#unsettled !== undefined) this.#swap(this.#unsettled)
  }

  #build(downstreams: readonly Downstream[], before?: Catalog): Catalog {
    const sources = downstreams.map(({ options, inventory$ }) => this.#source(options, inventory$.value))
    return buildCatalog(sources, this.#options, before)
  }

  #buildForApps(downstreams: readonly Downstream[], catalog: Catalog): Catalog {
    const hasOwn = ({ inventory$, offers: { apps }, options }: Downstream): boolean =>
      servesApps(options, catalog) &&
      inventory$.value !== undefined &&
      apps.inventory$.value !== undefined &&
      apps.inventory$.value.digest !== inventory$.value.digest
    if (!downstreams.some(hasOwn)) return catalog
    const sources = downstreams.map((downstream) =>
      this.#source(downstream.options, (hasOwn(downstream) ? downstream.offers.apps : downstream).inventory$.value),
    )
    return buildCatalog(sources, this.#options, catalog)
  }

  #buildForLegacy(downstreams: readonly Downstream[], catalog: Catalog): Catalog {
    const own = new Map(downstreams.map((downstream) => [downstream, legacyListsOf(downstream)]))
    if ([...own.values()].every((inventory) => inventory === undefined)) return catalog
    const sources = downstreams.map((downstream, at) => {
      const inventory = own.get(downstream)
      const source = inventory === undefined ? catalog.sources[at] : undefined
      return source ?? this.#source(downstream.options, inventory)
    })
    return buildCatalog(sources, this.#options, this.#legacyCatalog)
  }

  /** The inventory of a server after curation. */
  #source(server: CatalogServer, inventory: Inventory | undefined): CatalogSource {
    return { server, inventory: inventory && this.#curator.curate(inventory, server.curation) }
  }

  #swap(downstreams: readonly Downstream[]): void {
    this.#unsettled = undefined
    const before = this.#current
    this.#current = new Map()
    const catalog = this.#build(downstreams, this.catalog)
    this.#appsCatalog = this.#buildForApps(downstreams, catalog)
    this.#legacyCatalog = this.#buildForLegacy(downstreams, catalog)
    this.catalog$.next(catalog)
    this.#personal.retain(new Set(downstreams.flatMap(({ personal, options }) => (personal === undefined ? [] : [options.key]))))
    this.watchers.look()
    // Kept until here, since watchers compare with their earlier views.
    before.clear()
  }
}

/** The lists of a server of both eras for legacy hosts, if they differ from the common lists. */
const legacyListsOf = ({ inventory$, offers }: Downstream): Inventory | undefined => {
  const [all, legacy] = [inventory$.value, offers.legacy.inventory$.value]
  if (legacy === undefined || legacy === all) return undefined
  return all !== undefined && isSameOffer(all, legacy) && !hasWrapped(all) ? undefined : legacy
}

/** Whether an output schema of the modern side would be wrapped for legacy hosts, unlike that of the legacy side (B108, B267). */
const hasWrapped = ({ lists }: Inventory): boolean => lists.tools.some(({ raw }) => outputFormOf(raw) === 'wrapped')

const NOTHING_OWN: ReadonlyMap<string, Inventory> = new Map()

/** Inventories of the connections that this principal has now, by server key. */
const listedTo = (principal: string, downstreams: readonly Downstream[]): ReadonlyMap<string, Inventory> => {
  const listed = new Map<string, Inventory>()
  for (const { personal, options } of downstreams) {
    const inventory = personal?.find(principal)?.inventory$.value
    if (inventory !== undefined) listed.set(options.key, inventory)
  }
  return listed
}
