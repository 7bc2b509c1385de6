/**
 * The pins of a server's definitions and the reported deviations (T-17). A lock file decides alone; without one, tools are pinned as first
 * seen. Digests are taken of the server's own definitions, before any renaming.
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

/** The policy for changed definitions. `locked`: `undefined` without a lock file. */
export interface PinPolicy {
  readonly onChange: OnChange
  readonly locked: LockedServer | undefined
}

export class Pins {
  readonly #of: 'all' | OtherHosts
  readonly #seen: FirstSeen
  #lock: { readonly from: LockedServer; readonly reference: PinReference } | undefined
  /** Deviations that wait for approval, by kind and name. */
  readonly #waiting = new Map<string, Deviation>()
  /** Findings of `warn` for tools whose new definition was pinned, until the process ends. */
  readonly #reported = new Map<string, { readonly finding: Finding; readonly deviation: Deviation }>()
  /** Cached entries of held definitions. */
  readonly #held = new Map<string, { readonly definition: string; readonly entry: Entry }>()

  /** `known`: first seen tools of an earlier run. `of`: the common lists, or those for other hosts. */
  constructor(known: Readonly<Record<string, Pin>> = {}, of: 'all' | OtherHosts = 'all') {
    this.#seen = new FirstSeen(known)
    this.#of = of
  }

  /** The first seen tools, to be stored. */
  get all(): Readonly<Record<string, Pin>> {
    return this.#seen.all
  }

  /**
   * The inventory to serve. Without a lock file, new tools are pinned. `before`: the lists before this reading, with the old text of
   * changed definitions. `changed` is called once for each changed definition.
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
    this.#seen.offered(measured)
    for (const deviation of isServed ? deviations : []) {
      const finding = inventory.findings.find(({ kind, name }) => kind === 'tools' && name === deviation.name)
      if (finding !== undefined) this.#reported.set(deviation.name, { finding, deviation })
    }
    return this.#withReported(inventory, fresh)
  }

  #isKnown({ kind, name, to }: Deviation): boolean {
    return this.#waiting.get(lockId(kind, name))?.to.digest === to.digest
  }

  /** Applies the pins without changing them. */
  preview(offered: Inventory, policy: PinPolicy): Vetted {
    return this.#measure(offered, policy)
  }

  /** Approves the changed definition of this tool, or of all; returns the names. Does nothing with a lock file. */
  approve(tool: string | undefined, { locked }: PinPolicy): readonly string[] {
    if (locked !== undefined) return []
    const approved = [...this.#waiting.values()].filter(({ name }) => tool === undefined || name === tool)
    for (const { kind, name, to } of approved) {
      this.#seen.set(name, to.digest)
      this.#waiting.delete(lockId(kind, name))
    }
    return approved.map(({ name }) => name)
  }

  /** The offered definitions that differ from the approved ones, and the locked definitions that are not offered. */
  changes(offered: Inventory, policy: PinPolicy): LockChange[] {
    const { locked } = policy
    if (locked !== undefined) {
      const isCovered = ({ kind }: Locked): boolean => locked.covers.includes(kind)
      return compareLocked(locked.entries.filter(isCovered), lockedOf(offered).filter(isCovered))
    }
    const deviations = [...this.#waiting.values(), ...[...this.#reported.values()].map(({ deviation }) => deviation)]
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

  /** Adds the findings of earlier readings, since a finding is shown until the process ends. */
  #withReported(inventory: Inventory, fresh: ReadonlySet<string>): Inventory {
    const again = [...this.#reported.values()].filter(
      ({ finding: { name } }) => !fresh.has(name) && inventory.lists.tools.some(({ original }) => original === name),
    )
    if (again.length === 0) return inventory
    const all = { ...inventory, findings: [...inventory.findings, ...again.map(({ finding }) => finding)] }
    return { ...all, digest: digestInventory(all) }
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

/** Pins of tools that are no longer offered: some servers make new names all the time. */
const MAX_GONE = 4_096

/** First seen tools. The text of a definition is stored only when the definition changes. */
class FirstSeen implements PinReference {
  readonly isClosed = false
  readonly file = undefined
  /** Those offered last at the end. */
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

  /** These definitions are offered now: forgets the tools that were offered the longest time ago, beyond `MAX_GONE`. */
  offered(measured: readonly Locked[]): void {
    const tools = measured.filter(({ kind }) => kind === 'tools')
    for (const { name } of tools) {
      const pin = this.#pins.get(name)
      this.#pins.delete(name)
      if (pin !== undefined) this.#pins.set(name, pin)
    }
    const surplus = this.#pins.size - tools.length - MAX_GONE
    for (const name of [...this.#pins.keys()].slice(0, Math.max(0, surplus))) this.#pins.delete(name)
  }

  /** Stores the old texts of changed definitions; true if one was found. */
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
