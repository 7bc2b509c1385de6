/**
 * What a server lists to hosts that run MCP Apps: some show them other tools than everybody else ([ext apps]; BRIDGING 3.16). Read
 * only once such a host is there, since a legacy server must be asked over a link of its own (BRIDGING 3.0 rule 3).
 */
import { BehaviorSubject } from 'rxjs'
import type { Inventory } from '../catalog/inventory.ts'
import type { Declared, Link } from '../era/link.ts'
import { APPS_EXTENSION } from '../wire/apps.ts'

/** What of a server this needs. */
export interface AppsSource {
  /** The main link, while it is up. */
  readonly main: () => Link | undefined
  /** What the gateway's own links declare besides. */
  readonly declared: Declared
  /** A further link that serves nobody's calls. */
  readonly open: (declared: Declared) => Promise<Link>
  /** All lists over this link; `declared`: for links that say it with each request. */
  readonly read: (link: Link, declared: Declared, known: Inventory | undefined) => Promise<Inventory>
  /** What may be served of what is offered; `before` and `served`: until now. */
  readonly vet: (offered: Inventory, before: Inventory | undefined, served: Inventory | undefined) => Inventory
  readonly failed: (error: unknown) => void
}

export class AppsLists {
  /** `undefined`: nobody asked yet, or they could not be read; then the lists for everybody hold. */
  readonly inventory$ = new BehaviorSubject<Inventory | undefined>(undefined)
  readonly #source: AppsSource
  readonly #declared: Declared
  /** As the server said it, before any policy. */
  #offered: Inventory | undefined
  #isWanted = false
  #link: Promise<Link> | undefined
  #reading: Promise<void> = Promise.resolve()

  constructor(source: AppsSource) {
    this.#source = source
    this.#declared = { ...source.declared, extensions: APPS_EXTENSION }
  }

  /** From now on these lists are kept. Resolves once they are known, or cannot be now; never rejects. */
  async want(): Promise<void> {
    const isFirst = !this.#isWanted
    this.#isWanted = true
    if (isFirst) return this.read()
    if (this.inventory$.value === undefined) await this.#reading
  }

  /** Reads them again, if anybody wants them. */
  read(): Promise<void> {
    if (this.#isWanted) this.#reading = this.#reading.then(() => this.#readNow()).catch(this.#source.failed)
    return this.#reading
  }

  /** Our policies are others: what is known is served as they want it. */
  vetAnew(): void {
    if (this.#offered !== undefined) this.#serve(this.#offered)
  }

  /** What the server says, before any policy; `undefined` where nobody asked for these lists. */
  async offered(): Promise<Inventory | undefined> {
    await this.#reading
    return this.#offered
  }

  /** The link it has opened, for `ps`. */
  get linkCount(): number {
    return this.#link === undefined ? 0 : 1
  }

  async close(): Promise<void> {
    this.#isWanted = false
    const link = await this.#link?.catch(() => undefined)
    await link?.close()
    this.inventory$.complete()
  }

  async #readNow(): Promise<void> {
    const main = this.#source.main()
    if (main === undefined || !this.#isWanted) return
    const link = main.era === 'modern' ? main : await (this.#link ??= this.#open())
    this.#serve(await this.#source.read(link, this.#declared, this.#offered))
  }

  #serve(offered: Inventory): void {
    const known = this.inventory$.value
    const inventory = this.#source.vet(offered, this.#offered, known)
    this.#offered = offered
    if (inventory.digest !== known?.digest && this.#isWanted) this.inventory$.next(inventory)
  }

  async #open(): Promise<Link> {
    const forget = (): void => void (this.#link = undefined)
    const opening = this.#source.open(this.#declared)
    opening.then((link) => void link.closed.then(forget), forget)
    return opening
  }
}
