/**
 * By what a server's definitions are measured, and what of it was told (T-17): by a lock file where there is one, which then covers
 * every kind and alone decides; else by what was first seen of its tools. Digests are of its own definitions, before any renaming.
 */
import { digestEntry, digestInventory } from '../../catalog/digest.ts'
import type { Entry, Finding, Inventory, ListKind } from '../../catalog/inventory.ts'
import { compareLocked, indexLocked, lockedOf, lockId } from '../../catalog/lock/lock.ts'
import type { LockChange, Locked, LockKind, OnChange } from '../../catalog/lock/lock.ts'
import { heldEntry, vetPinned } from '../../catalog/lock/pinned.ts'
import type { Deviation, Pin, PinReference, Vetted } from '../../catalog/lock/pinned.ts'
import { canonical } from '../../wire/message/canonical.ts'
import type { OtherHosts } from '../environment.ts'
import type { LockedServer } from '../options.ts'

/** How a server's definitions are vetted: `locked` is absent where there is no lock file. */
export interface PinPolicy {
  readonly onChange: OnChange
  readonly locked: LockedServer | undefined
}

export class Pins {
  readonly #of: 'all' | OtherHosts
  readonly #seen: FirstSeen
  #lock: { readonly from: LockedServer; readonly reference: PinReference } | undefined
  /** Digests that wait for approval, by kind and name. */
  readonly #waiting = new Map<string, Deviation>()
  /** What `warn` told of tools whose new definition became the one seen, for as long as we run. */
  readonly #told = new Map<string, { readonly finding: Finding; readonly deviation: Deviation }>()
  /** Entries made of held definitions: the same one each time. */
  readonly #held = new Map<string, { readonly definition: string; readonly entry: Entry }>()

  /** `known`: what was seen in an earlier run, by tool. `of`: the lists for everybody, or those for hosts that run MCP Apps. */
  constructor(known: Readonly<Record<string, Pin>> = {}, of: 'all' | OtherHosts = 'all') {
    this.#seen = new FirstSeen(known)
    this.#of = of
  }

  /** What was seen first, by tool, to be kept. */
  get all(): Readonly<Record<string, Pin>> {
    return this.#seen.all
  }

  /**
   * The inventory as it may be served. Without a lock file a tool seen for the first time is pinned. `before`: what was offered until
   * now, where the old form of a changed definition comes from. `changed` hears of each definition that is met changed, once.
   */
  vet(
    offered: Inventory,
    before: Inventory | undefined,
    policy: PinPolicy,
    changed: (deviation: Deviation) => void = () => undefined,
  ): Inventory {
    const isFirstSeen = policy.locked === undefined
    let vetted = this.#measure(offered, policy)
    if (isFirstSeen && this.#seen.keepOld(before, vetted.deviations)) vetted = this.#measure(offered, policy)
    const { inventory, deviations, measured } = vetted
    if (policy.onChange !== 'allow') for (const deviation of deviations) if (!this.#isKnown(deviation)) changed(deviation)
    for (const { kind, name } of measured) this.#waiting.delete(lockId(kind, name))
    const isServed = policy.onChange === 'allow' || policy.onChange === 'warn'
    if (!isFirstSeen || !isServed)
      for (const deviation of deviations) this.#waiting.set(lockId(deviation.kind, deviation.name), deviation)
    if (!isFirstSeen) return inventory
    const fresh = new Set(deviations.map(({ name }) => name))
    for (const { kind, name, digest } of measured)
      if (kind === 'tools' && (isServed || !fresh.has(name))) this.#seen.set(name, digest)
    for (const deviation of isServed ? deviations : []) {
      const finding = inventory.findings.find(({ kind, name }) => kind === 'tools' && name === deviation.name)
      if (finding !== undefined) this.#told.set(deviation.name, { finding, deviation })
    }
    return this.#tellAgain(inventory, fresh)
  }

  #isKnown({ kind, name, to }: Deviation): boolean {
    return this.#waiting.get(lockId(kind, name))?.to.digest === to.digest
  }

  /** The same under another policy, or of another inventory, as a question: nothing is learned. */
  preview(offered: Inventory, policy: PinPolicy): Vetted {
    return this.#measure(offered, policy)
  }

  /** Takes the changed definition of this tool, or of all, as the true one; returns whose. A lock file is not ours to change. */
  approve(tool: string | undefined, { locked }: PinPolicy): readonly string[] {
    if (locked !== undefined) return []
    const approved = [...this.#waiting.values()].filter(({ name }) => tool === undefined || name === tool)
    for (const { kind, name, to } of approved) {
      this.#seen.set(name, to.digest)
      this.#waiting.delete(lockId(kind, name))
    }
    return approved.map(({ name }) => name)
  }

  /** What is offered and not as it was approved, and what is locked and not offered. */
  changes(offered: Inventory, policy: PinPolicy): LockChange[] {
    const { locked } = policy
    if (locked !== undefined) {
      const isCovered = ({ kind }: Locked): boolean => locked.covers.includes(kind)
      return compareLocked(locked.entries.filter(isCovered), lockedOf(offered).filter(isCovered))
    }
    const deviations = [...this.#waiting.values(), ...[...this.#told.values()].map(({ deviation }) => deviation)]
    return deviations.map(({ kind, name, from, to }) => ({
      kind,
      name,
      from: from && { kind, name, definition: '', ...from },
      to,
    }))
  }

  #measure(offered: Inventory, policy: PinPolicy): Vetted {
    return vetPinned(offered, this.#reference(policy), policy.onChange, (kind, name, definition) =>
      this.#entryOf(kind, name, definition),
    )
  }

  #reference({ locked }: PinPolicy): PinReference {
    if (locked === undefined) return this.#seen
    if (this.#lock?.from !== locked) this.#lock = { from: locked, reference: lockReference(locked, this.#of) }
    return this.#lock.reference
  }

  /** What was told is told as long as we run, also once the new form is the one that was seen. */
  #tellAgain(inventory: Inventory, fresh: ReadonlySet<string>): Inventory {
    const again = [...this.#told.values()].filter(
      ({ finding: { name } }) => !fresh.has(name) && inventory.lists.tools.some(({ original }) => original === name),
    )
    if (again.length === 0) return inventory
    const told = { ...inventory, findings: [...inventory.findings, ...again.map(({ finding }) => finding)] }
    return { ...told, digest: digestInventory(told) }
  }

  #entryOf(kind: ListKind, name: string, definition: string): Entry {
    const id = lockId(kind, name)
    const known = this.#held.get(id)
    if (known?.definition === definition) return known.entry
    const entry = heldEntry(kind, name, definition)
    this.#held.set(id, { definition, entry })
    return entry
  }
}

/** Tools as they were first seen. The text of a definition is kept from when it is met changed: only then is it of use. */
class FirstSeen implements PinReference {
  readonly isClosed = false
  readonly file = undefined
  readonly #pins: Map<string, Pin>

  constructor(known: Readonly<Record<string, Pin>>) {
    this.#pins = new Map(Object.entries(known))
  }

  get all(): Readonly<Record<string, Pin>> {
    return Object.fromEntries(this.#pins)
  }

  covers(kind: LockKind): boolean {
    return kind === 'tools'
  }

  pin(_kind: LockKind, name: string): Pin | undefined {
    return this.#pins.get(name)
  }

  set(name: string, digest: string): void {
    if (this.#pins.get(name)?.digest !== digest) this.#pins.set(name, { digest })
  }

  /** True: the old text of some definition that changed is known from now on. */
  keepOld(before: Inventory | undefined, deviations: readonly Deviation[]): boolean {
    const missing = deviations.filter(({ from }) => from !== undefined && from.definition === undefined)
    if (before === undefined || missing.length === 0) return false
    const old = new Map(before.lists.tools.map((entry) => [entry.original, entry]))
    const found = missing.flatMap(({ name, from }) => {
      const entry = old.get(name)
      return entry !== undefined && digestEntry(entry.raw) === from?.digest ? [{ name, entry, digest: from.digest }] : []
    })
    for (const { name, entry, digest } of found) this.#pins.set(name, { digest, definition: canonical(entry.raw) })
    return found.length > 0
  }
}

const lockReference = ({ file, covers, entries, apps }: LockedServer, of: 'all' | OtherHosts): PinReference => {
  const pins = indexLocked(of === 'apps' ? [...entries, ...apps] : entries)
  return {
    isClosed: true,
    file,
    covers: (kind) => covers.includes(kind),
    pin: (kind, name) => pins.get(lockId(kind, name)),
  }
}
