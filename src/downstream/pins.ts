/**
 * Whether a server's tools are still what they were when they were first seen (T-17). A pin is the digest of a tool's own
 * definition, taken before any renaming; what happens to a tool whose definition no longer has it is `lock.on_change`.
 */
import { digestEntry, digestInventory } from '../catalog/digest.ts'
import type { Entry, Finding, Inventory, LeftOut } from '../catalog/inventory.ts'

/**
 * `allow`: served as it is now. `warn`: the same, and told. `hold`: the definition that is pinned stays listed until approved.
 * `quarantine`: not listed and not callable until approved.
 */
export type OnChange = 'allow' | 'warn' | 'hold' | 'quarantine'

export class Pins {
  readonly #pins: Map<string, string>
  /** Digests that wait for approval, by tool. */
  readonly #waiting = new Map<string, string>()
  /** What `warn` told, for as long as we run. */
  readonly #told = new Map<string, Finding>()

  /** `known`: pins of an earlier run, digest by tool. */
  constructor(known: Readonly<Record<string, string>> = {}) {
    this.#pins = new Map(Object.entries(known))
  }

  /** Digest by tool, to be kept. */
  get all(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#pins)
  }

  /**
   * The inventory as it may be served. A tool seen for the first time is pinned. `served`: what was served before, where a held
   * definition comes from. `changed` hears of each definition that is met changed, once.
   */
  vet(
    inventory: Inventory,
    served: Inventory | undefined,
    onChange: OnChange,
    changed: (tool: string, from: string, to: string) => void,
  ): Inventory {
    const tools: Entry[] = []
    const leftOut: LeftOut[] = []
    const findings: Finding[] = []
    for (const entry of inventory.lists.tools) {
      const name = entry.original
      const digest = digestEntry(entry.raw)
      const pin = this.#pins.get(name)
      if (pin !== undefined && pin !== digest) {
        if (onChange !== 'allow' && this.#waiting.get(name) !== digest) changed(name, pin, digest)
        if (onChange === 'warn') this.#told.set(name, finding(name, 'its definition changed; the new one is served'))
        if (onChange === 'hold' || onChange === 'quarantine') {
          this.#waiting.set(name, digest)
          const old = onChange === 'hold' ? served?.lists.tools.find(({ original }) => original === name) : undefined
          if (old === undefined || digestEntry(old.raw) !== pin)
            leftOut.push({
              kind: 'tools',
              name,
              reason: `its definition changed (lock.on_change: ${onChange}); approve it to serve it`,
            })
          else {
            tools.push(old)
            findings.push(finding(name, 'its definition changed; the old one is served until the new one is approved'))
          }
          continue
        }
      }
      this.#pins.set(name, digest)
      this.#waiting.delete(name)
      tools.push(entry)
      const told = this.#told.get(name)
      if (told !== undefined) findings.push(told)
    }
    if (leftOut.length === 0 && findings.length === 0) return inventory
    const vetted = {
      ...inventory,
      lists: { ...inventory.lists, tools },
      leftOut: [...inventory.leftOut, ...leftOut],
      findings: [...inventory.findings, ...findings],
    }
    return { ...vetted, digest: digestInventory(vetted) }
  }

  /** Takes the changed definition of this tool, or of all, as the true one; returns whose. The next reading serves them. */
  approve(tool: string | undefined): readonly string[] {
    const approved = [...this.#waiting].filter(([name]) => tool === undefined || name === tool)
    for (const [name, digest] of approved) {
      this.#pins.set(name, digest)
      this.#waiting.delete(name)
    }
    return approved.map(([name]) => name)
  }
}

const finding = (name: string, note: string): Finding => ({ kind: 'tools', name, note })
