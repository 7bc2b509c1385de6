/**
 * The lists of one server: read over its main link, checked by the policies, stored, and read again after announced changes or some time.
 * Hosts that run MCP Apps may have other lists (BRIDGING 3.7, 3.16).
 */
import { isDeepStrictEqual } from 'node:util'
import { BehaviorSubject } from 'rxjs'
import { changedKinds, LIST_KINDS, withoutLifetime } from '../../catalog/inventory.ts'
import type { Inventory, LeftOut, ListKind } from '../../catalog/inventory.ts'
import type { LockChange, LockKind } from '../../catalog/lock/lock.ts'
import type { Pin } from '../../catalog/lock/pinned.ts'
import { vetHidden } from '../../catalog/curate/vetting.ts'
import { refuseCircle } from '../../era/gateways.ts'
import type { Link } from '../../era/server/link.ts'
import { cleanLabel } from '../../wire/protocol/label.ts'
import { APPS_EXTENSION } from '../../wire/protocol/extensions.ts'
import type { LinkEventHandlers } from '../calls/link-events.ts'
import type { DownstreamEnvironment, OtherHosts } from '../environment.ts'
import type { EraChanges } from '../links/era-changes.ts'
import type { MainLink } from '../health/main-link.ts'
import type { ServerStates } from '../health/server-state.ts'
import { SUPERSET } from '../links/dialer.ts'
import type { Dialer } from '../links/dialer.ts'
import type { Links } from '../links/links.ts'
import { readInventory } from './inventory-reader.ts'
import type { ReadingOptions } from './inventory-reader.ts'
import type { ServerOptions } from '../options.ts'
import { OtherLists } from './other-lists.ts'
import type { OtherListsSource } from './other-lists.ts'
import type { LinkReading } from './link-lists.ts'
import { Pins } from './pins.ts'
import type { PinPolicy } from './pins.ts'
import { isWorthReading, Rereads, restAfter } from './rereads.ts'
import type { ChangedList } from '../../wire/protocol/methods.ts'

interface OffersSource {
  readonly options: () => ServerOptions
  readonly environment: DownstreamEnvironment
  readonly states: ServerStates
  readonly main: MainLink
  readonly handlers: LinkEventHandlers
  readonly dialer: Dialer
  readonly links: Links
  readonly eraChanges: EraChanges
}

/** The known lists of a server, before any policy. */
interface Learned {
  /** `undefined`: not read yet. */
  readonly offered: Inventory | undefined
  /** Whether the sign-in tool replaces the lists. */
  readonly isSignedOut: boolean
  /** First seen definitions by tool. */
  readonly pins: Readonly<Record<string, Pin>>
}

export class Offers {
  readonly inventory$: BehaviorSubject<Inventory | undefined>
  /** For hosts that run MCP Apps. */
  readonly apps: OtherLists
  /** For legacy hosts, of a server that speaks both eras. */
  readonly legacy: OtherLists
  readonly #source: OffersSource
  readonly #rereads: Rereads
  readonly #pins: Pins
  /** Pins of the lists for hosts that run MCP Apps. */
  readonly #appsPins: Pins
  /** Pins of the lists for legacy hosts. */
  readonly #legacyPins: Pins
  /** The inventory as the server sent it. The served inventory is built from it by the policies, again when they change. */
  #offered: Inventory | undefined
  /** Number of announced changes: a reading during which it grows may be outdated. */
  #changes = 0
  /** Start and duration of the last reading. */
  #last = { readMs: -Infinity, costMs: 0 }

  constructor(source: OffersSource) {
    const { environment, options, handlers, dialer } = source
    const { memory } = environment
    this.#source = source
    this.#offered = environment.memory.inventory(options())
    this.#pins = new Pins(environment.memory.pins(options()))
    this.#appsPins = new Pins(environment.memory.pins(options(), 'apps'), 'apps')
    this.inventory$ = new BehaviorSubject(this.#offered && this.#vet(this.#offered, this.#pins, undefined, undefined))
    this.#rereads = new Rereads(
      () => this.read(),
      () => restAfter(this.#offered),
    )
    this.#legacyPins = new Pins(memory.pins(options(), 'legacy'), 'legacy')
    const vetWith =
      (pins: Pins, of: OtherHosts): OtherListsSource['vet'] =>
      (offered, before, served) => {
        const vetted = this.#vet(offered, pins, before, served)
        memory.keepPins(options(), pins.all, of)
        return vetted
      }
    const main = (): Link | undefined => source.main.current
    const withApps = { ...SUPERSET, extensions: APPS_EXTENSION }
    this.apps = new OtherLists({
      main,
      over: ({ era }) => (era === 'modern' ? 'main' : 'own'),
      open: () => dialer.dial({ declared: withApps }, handlers.onLists()),
      // Once wanted, they are always read again.
      isWatched: () => false,
      read: (link, known) => readInventory(link, { ...this.#reading(link, known), declared: withApps }),
      vet: vetWith(this.#appsPins, 'apps'),
      failed: (error) => handlers.logFault('lists for hosts with apps could not be read', String(error)),
    })
    this.legacy = new OtherLists(
      {
        main,
        over: (link) => (this.#hasLegacySide(link) ? 'own' : 'none'),
        open: () => dialer.dialLegacy({ declared: SUPERSET }, handlers.onLists()),
        isWatched: () => environment.hasLegacyHosts(),
        read: (link, known) => readInventory(link, this.#reading(link, known)),
        vet: vetWith(this.#legacyPins, 'legacy'),
        changed: (offered) => memory.keepLegacyInventory(options(), offered),
        failed: (error) => handlers.logFault('lists for legacy hosts could not be read', String(error)),
      },
      dialer.mayServeLegacy ? memory.inventory(options(), 'legacy') : undefined,
    )
  }

  /** Starts polling over a link that was read, while it does not announce changes (BRIDGING 3.7). */
  follow(link: Link): void {
    const periodMs = this.inventory$.value === undefined ? undefined : this.#source.environment.legacyPollMs
    this.#rereads.poll(periodMs, () => !link.tellsChanges)
    void this.apps.read()
    void this.legacy.read()
  }

  /** The server has no legacy side: reads the common lists again, which legacy hosts get from now on. */
  forgetLegacy(): void {
    if (this.legacy.known === undefined) return
    this.readSoon()
    void this.#rereads.freshen(false)
  }

  /** Reads all lists. `link`: absent for the current link. */
  async read(link = this.#listing): Promise<void> {
    if (link === undefined) return
    const { memory } = this.#source.environment
    const options = this.#source.options()
    const others = Promise.all([this.apps.read(), this.legacy.read()])
    const changes = this.#changes
    const readMs = performance.now()
    this.#last = { ...this.#last, readMs }
    const raw = await this.#source.main.over(link, async () => {
      if (link.gateways.length > 0) {
        await link.survey()
        refuseCircle(link.gateways, this.#source.environment.instance)
      }
      return readInventory(link, this.#reading(link, this.#offered))
    })
    const offered = changes === this.#changes ? raw : withoutLifetime(raw, LIST_KINDS)
    const isSame = offered.digest === this.#offered?.digest && isDeepStrictEqual(offered.absent, this.#offered.absent)
    if (isSame) memory.confirmInventory(options, offered)
    else memory.keepInventory(options, offered)
    this.#last = { readMs, costMs: performance.now() - readMs }
    this.#serve(offered)
    memory.keepPins(options, this.#pins.all)
    // After the common lists, so that legacy hosts get one notification.
    if (!this.#hasLegacySide(this.#source.main.current ?? link)) await this.legacy.forget()
    if (!isSame) await this.legacy.commonChanged()
    // All variants of the lists must have the same age.
    if ((this.apps.inventory$.value ?? this.legacy.inventory$.value) !== undefined) await others
  }

  /**
   * Reads outdated lists again before a list request (B285); never rejects. `undefined`: nothing to wait for. Lists within the lifetime of
   * a modern server, and lists of a disconnected server, are not read.
   */
  freshen(kind: ListKind): Promise<unknown> | undefined {
    const main = this.#source.main.current
    if (main === undefined || this.#offered === undefined) return undefined
    const { receivedAtMs, ttlMs } = this.#offered.freshness[kind]
    const isBelieved = main.era === 'modern' && receivedAtMs + ttlMs > performance.now()
    return this.#rereads.freshen(!isBelieved && isWorthReading(this.#last, this.#source.environment.freshMs()))
  }

  /** Settles once every announced change has been read; `undefined`: all have been. */
  announcedRead(): Promise<unknown> | undefined {
    return this.#rereads.freshen(false)
  }

  /**
   * Whether the server lists this name, omitted entries included. `isForLegacy`: ignores served entries of the common lists if there are
   * legacy lists, which are read after the common ones.
   */
  lists(kind: ListKind, original: string, isForLegacy: boolean): boolean {
    const isNamed = namedIn(kind, original)
    const isIn = (some: readonly (Inventory | undefined)[]): boolean => some.some((one) => one !== undefined && isNamed(one))
    const common = this.inventory$.value
    const legacy = this.legacy.inventory$.value
    if (isIn([legacy, isForLegacy ? this.legacy.known : undefined])) return true
    const isServed = common?.lists[kind].some((entry) => entry.original === original) === true
    return !(isForLegacy && legacy !== undefined && isServed) && isIn([this.#offered, common, this.apps.inventory$.value])
  }

  /** Whether the server's own lists are known, stored ones included; the sign-in tool does not count. */
  get hasLists(): boolean {
    return this.inventory$.value?.lists.tools.some(({ isSignIn }) => isSignIn === true) === false
  }

  /** Applies changed policies to the known inventory, without a request to the server. */
  vetAgain(): void {
    if (this.#offered !== undefined && this.hasLists) this.#serve(this.#offered)
    this.apps.vetAgain()
    this.legacy.vetAgain()
  }

  get learned(): Learned {
    const served = this.inventory$.value
    return {
      offered: served && this.#offered,
      isSignedOut: served?.lists.tools.some(({ isSignIn }) => isSignIn === true) === true,
      pins: this.#pins.all,
    }
  }

  /** The definitions that differ from the approved ones. */
  changes(policy: PinPolicy): LockChange[] {
    return this.#offered === undefined ? [] : this.#pins.changes(this.#offered, policy)
  }

  /** The current lists, and those for hosts that run MCP Apps, before any policy; read again if the server is connected. */
  async offered(): Promise<{ readonly all: Inventory | undefined; readonly apps: Inventory | undefined }> {
    await this.read()
    return { all: this.#offered, apps: await this.apps.offered() }
  }

  /** Reads the lists over another link. Compared before any policy: findings depend on when a definition was first read. */
  async readOver(link: Link): Promise<LinkReading> {
    const offered = await readInventory(link, this.#reading(link, this.#offered))
    const { readBytes = 0 } = offered
    const common = (link.era === 'legacy' ? this.legacy.known : undefined) ?? this.#offered
    if (offered.digest === common?.digest) return { differing: undefined, readBytes }
    return { differing: this.#vet(offered, this.#pins, this.#offered, this.inventory$.value), readBytes }
  }

  /** Reads all lists again soon, once for a burst of requests. */
  readSoon(): void {
    this.#rereads.request()
  }

  /** The server announced a changed list: sets its lifetime to 0 until it has been read again (B156). */
  outdated(list: ChangedList): void {
    this.#changes++
    const known = this.inventory$.value
    const lists = changedKinds(list)
    this.#offered = this.#offered && withoutLifetime(this.#offered, lists)
    const outdated = known && withoutLifetime(known, lists)
    if (outdated !== known) this.inventory$.next(outdated)
    this.apps.outdated(lists)
    this.readSoon()
  }

  /** Approves the changed definitions of one tool or of all; resolves with the tools once they are served. */
  async approve(tool?: string): Promise<readonly string[]> {
    const policy = this.#source.options()
    const approved = new Set([
      ...this.#pins.approve(tool, policy),
      ...this.#appsPins.approve(tool, policy),
      ...this.#legacyPins.approve(tool, policy),
    ])
    if (approved.size === 0) return []
    this.vetAgain()
    await this.read()
    await Promise.all([this.apps.read(), this.legacy.read()])
    return [...approved]
  }

  /** Removes the served lists. `instead`: replaces them. */
  withdraw(instead?: Inventory): void {
    this.inventory$.next(instead)
  }

  async close(): Promise<void> {
    this.#rereads.close()
    await Promise.all([this.apps.close(), this.legacy.close()])
  }

  /** The link with the common lists: the main link, or the link shared by all callers if the server announced a change there. */
  get #listing(): Link | undefined {
    const { states, links, main } = this.#source
    const { announcer } = states.now
    return (announcer && links.of(announcer)) ?? main.current
  }

  /** Whether the server of this main link may have other lists for legacy hosts. */
  #hasLegacySide({ era }: Link): boolean {
    return era === 'modern' && this.#source.dialer.mayServeLegacy
  }

  /** An equal inventory keeps its entry objects, and thus the bytes built for hosts; only the lifetime is new. */
  #serve(offered: Inventory): void {
    const known = this.inventory$.value
    const inventory = this.#vet(offered, this.#pins, this.#offered, known)
    this.#offered = offered
    this.inventory$.next(inventory.digest === known?.digest ? { ...known, freshness: inventory.freshness } : inventory)
  }

  /** Applies the policies and logs new findings. `before`: the lists before this reading. */
  #vet(offered: Inventory, pins: Pins, before: Inventory | undefined, served: Inventory | undefined): Inventory {
    const { log } = this.#source.environment
    const { key, onChange, locked, hidden } = this.#source.options()
    const pinned = pins.vet(offered, before, { onChange, locked }, ({ kind, name, from, to }) => {
      const what = kind === 'tools' ? { tool: name } : { kind, name }
      log.warn({ server: key, ...what, from: from?.digest, to: to.digest, onChange }, formatChange(kind, from === undefined))
    })
    const first = newlyOut(offered, before)
    if (first !== undefined)
      log.warn({ server: key, leftOut: offered.leftOut.length, first }, 'definitions of the server are left out')
    const vetted = vetHidden(pinned, hidden)
    const known = new Set(served?.findings.map(({ kind, name, note }) => JSON.stringify([kind, name, note])))
    for (const { kind, name, note } of vetted.findings.slice(pinned.findings.length))
      if (!known.has(JSON.stringify([kind, name, note]))) log.warn({ server: key, kind, name }, note)
    return vetted
  }

  #reading({ era }: Link, known: Inventory | undefined): ReadingOptions {
    const { legacyTtlMs, legacyPollMs, freshMs, hasCredential } = this.#source.environment
    const { key, limits } = this.#source.options()
    const reached = (option: string): void => this.#source.environment.limits.hit(option, key)
    const failed = (error: unknown): void => this.#source.eraChanges.refused(error, era)
    return {
      limits,
      hasCredential,
      legacyTtlMs: legacyTtlMs(),
      legacyPollMs,
      freshMs: freshMs(),
      nowMs: () => performance.now(),
      reached,
      known,
      failed,
    }
  }
}

/** Returns whether an inventory contains this name, omitted entries included. */
export const namedIn =
  (kind: ListKind, original: string): ((inventory: Inventory) => boolean) =>
  ({ lists, leftOut }) =>
    lists[kind].some((entry) => entry.original === original) || leftOut.some((one) => one.kind === kind && one.name === original)

/** The first definition that is left out since this reading, with the reason. */
const newlyOut = ({ leftOut }: Inventory, before: Inventory | undefined): string | undefined => {
  const format = ({ kind, name, reason }: LeftOut): string => `${kind} "${cleanLabel(name)}": ${reason}`
  const known = new Set(before?.leftOut.map(format))
  return leftOut.map(format).find((one) => !known.has(one))
}

const formatChange = (kind: LockKind, isNew: boolean): string => {
  if (isNew) return 'a definition is not in the lock file'
  return kind === 'tools' ? 'the definition of a tool changed' : 'a definition changed'
}
