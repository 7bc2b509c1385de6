/** The toolsets of a configuration by name, and the toolset of a scope. */
import type { Scope } from '../../rpc/call.ts'
import { Toolset } from './toolset.ts'
import type { ToolsetOptions } from './toolset.ts'

/** The toolset of hosts whose path and credential name none. */
export const DEFAULT_TOOLSET = 'default'
/** The toolset of a scope whose toolset was removed. */
const NOTHING = new Toolset([])

export class Toolsets {
  readonly all: readonly ToolsetOptions[]
  readonly #byName: ReadonlyMap<string, ToolsetOptions>
  readonly #made = new Map<string, Toolset>()

  constructor(all: readonly ToolsetOptions[]) {
    this.all = all
    this.#byName = new Map(all.map((options) => [options.name, options]))
  }

  has(name: string): boolean {
    return this.#byName.has(name)
  }

  /** `undefined`: everything. A path that names a server cannot name a toolset: all toolsets together apply. */
  of({ server, toolset }: Scope): Toolset | undefined {
    if (toolset !== undefined) return this.#make(toolset)
    if (!this.has(DEFAULT_TOOLSET)) return undefined
    return this.#make(server === undefined ? DEFAULT_TOOLSET : [...this.#byName.keys()].join(' '))
  }

  #make(names: string): Toolset {
    let toolset = this.#made.get(names)
    if (toolset === undefined) {
      const parts = names.split(' ').flatMap((name) => this.#byName.get(name) ?? [])
      this.#made.set(names, (toolset = parts.length === 0 ? NOTHING : new Toolset(parts)))
    }
    return toolset
  }
}
