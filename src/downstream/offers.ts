/**
 * What one server offers: read over its main link, vetted, remembered; read again when it says so or when time has passed. Hosts
 * that run MCP Apps may be shown other lists (BRIDGING 3.7, 3.16).
 */
import { BehaviorSubject } from 'rxjs'
import { LIST_KINDS, withoutLifetime } from '../catalog/inventory.ts'
import type { Inventory } from '../catalog/inventory.ts'
import type { ChangedList, Declared, Link } from '../era/link.ts'
import { AppsLists } from './apps-lists.ts'
import type { DownstreamEnvironment } from './environment.ts'
import { readInventory } from './inventory-reader.ts'
import type { ReadingOptions } from './inventory-reader.ts'
import type { ServerOptions } from './options.ts'
import { Pins } from './pins.ts'
import { Rereads } from './rereads.ts'

/** What of a server this needs. */
export interface OffersSource {
  readonly options: () => ServerOptions
  readonly environment: DownstreamEnvironment
  /** The main link, while it is up. */
  readonly main: () => Link | undefined
  /** Uses the main link, which may turn out to be of no use. */
  readonly over: <T>(link: Link, use: () => Promise<T>) => Promise<T>
  /** What the gateway's own links declare. */
  readonly declared: Declared
  /** A further link that serves nobody's calls. */
  readonly open: (declared: Declared) => Promise<Link>
  readonly oddity: (reason: string, sample: string) => void
}

export class Offers {
  readonly inventory$: BehaviorSubject<Inventory | undefined>
  readonly apps: AppsLists
  readonly #source: OffersSource
  readonly #rereads: Rereads
  readonly #pins: Pins
  /** Of the lists for hosts that run MCP Apps. */
  readonly #appsPins: Pins
  /** How often the server said that a list changed: what was being read meanwhile may be outdated, too. */
  #changes = 0

  constructor(source: OffersSource) {
    const { environment, options, main, declared, open, oddity } = source
    this.#source = source
    this.inventory$ = new BehaviorSubject(environment.memory.inventory(options()))
    this.#pins = new Pins(environment.memory.pins(options()))
    this.#appsPins = new Pins(environment.memory.pins(options(), 'apps'))
    this.#rereads = new Rereads(() => this.read())
    this.apps = new AppsLists({
      main,
      declared,
      open,
      read: (link, withApps, known) => this.#readForApps(link, withApps, known),
      failed: (error) => oddity('lists for hosts with apps could not be read', String(error)),
    })
  }

  /** A link is up and has been read: reads again from time to time while it does not tell of changes (3.7). */
  follow(link: Link): void {
    const periodMs = this.inventory$.value === undefined ? undefined : this.#source.environment.legacyPollMs
    this.#rereads.poll(periodMs, () => !link.tellsChanges)
    void this.apps.read()
  }

  /** Reads everything, over a link that is just being opened or over the main one. */
  async read(link = this.#source.main()): Promise<void> {
    if (link === undefined) return
    const { memory } = this.#source.environment
    const options = this.#source.options()
    void this.apps.read()
    const changes = this.#changes
    const read = await this.#source.over(link, async () => {
      const raw = await readInventory(link, this.#reading(this.inventory$.value))
      const vetted = this.#vet(raw, this.#pins, this.inventory$.value)
      memory.keepPins(options, this.#pins.all)
      return vetted
    })
    const inventory = changes === this.#changes ? read : withoutLifetime(read, LIST_KINDS)
    const known = this.inventory$.value
    const isNew = inventory.digest !== known?.digest
    if (isNew) memory.keepInventory(options, inventory)
    // An equal inventory keeps its entries, and with them the bytes made ready for hosts; only their lifetime is new.
    this.inventory$.next(isNew || known === undefined ? inventory : { ...known, freshness: inventory.freshness })
  }

  /** The same over another link, for those it serves. */
  async readOver(link: Link): Promise<Inventory> {
    const known = this.inventory$.value
    return this.#vet(await readInventory(link, this.#reading(known)), this.#pins, known)
  }

  /** Reads again soon, once whatever happens has settled. */
  readSoon(): void {
    this.#rereads.request()
  }

  /** The server says that a list changed: hosts are told to keep nothing of it, until it has been read again (B156). */
  outdated(list: ChangedList): void {
    this.#changes++
    const known = this.inventory$.value
    if (known !== undefined) {
      const outdated = withoutLifetime(known, list === 'resources' ? ['resources', 'templates'] : [list])
      if (outdated !== known) this.inventory$.next(outdated)
    }
    this.readSoon()
  }

  /** Takes changed definitions as the true ones, of one tool or of all; resolves with the tools, once they are served. */
  async approve(tool?: string): Promise<readonly string[]> {
    const approved = new Set([...this.#pins.approve(tool), ...this.#appsPins.approve(tool)])
    if (approved.size === 0) return []
    await this.read()
    await this.apps.read()
    return [...approved]
  }

  /** Nothing is offered any more, but for what stands in its place. */
  withdraw(instead?: Inventory): void {
    this.inventory$.next(instead)
  }

  async close(): Promise<void> {
    this.#rereads.close()
    await this.apps.close()
  }

  async #readForApps(link: Link, declared: Declared, known: Inventory | undefined): Promise<Inventory> {
    const read = await readInventory(link, { ...this.#reading(known), declared })
    const vetted = this.#vet(read, this.#appsPins, known)
    this.#source.environment.memory.keepPins(this.#source.options(), this.#appsPins.all, 'apps')
    return vetted
  }

  /** What may be served of what was read; whatever is new to the operator is logged. */
  #vet(read: Inventory, pins: Pins, served: Inventory | undefined): Inventory {
    const { log } = this.#source.environment
    const { key, onChange } = this.#source.options()
    const vetted = pins.vet(read, served, onChange, (tool, from, to) =>
      log.warn({ server: key, tool, from, to, onChange }, 'the definition of a tool changed'),
    )
    const known = new Set(served?.findings.map(({ kind, name, note }) => JSON.stringify([kind, name, note])))
    for (const { kind, name, note } of read.findings)
      if (!known.has(JSON.stringify([kind, name, note]))) log.warn({ server: key, kind, name }, note)
    return vetted
  }

  #reading(known: Inventory | undefined): ReadingOptions {
    const { legacyTtlMs, legacyPollMs } = this.#source.environment
    const { limits, hidden } = this.#source.options()
    return { limits, hidden, legacyTtlMs, legacyPollMs, nowMs: () => performance.now(), known }
  }
}
