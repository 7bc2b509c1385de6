/** How a reload, or the plan of one, ends; and those that have ended. */
import type { Problem } from '../../config/syntax/problems.ts'
import type { Plan } from './plan.ts'

/** What a reload did: server keys, or why nothing was changed. */
export type ReloadEnd =
  | {
      readonly kind: 'applied'
      readonly added: readonly string[]
      readonly removed: readonly string[]
      readonly changed: readonly string[]
      /** YAML paths whose change waits for a restart of the process. */
      readonly needsRestart: readonly string[]
      /** The same in full, as it was before it was done. */
      readonly plan: Plan
    }
  | { readonly kind: 'refused'; readonly problems: readonly Problem[] }

/** What a reload would do, or why it would be refused. */
export type PlanEnd =
  | { readonly kind: 'planned'; readonly plan: Plan }
  | { readonly kind: 'refused'; readonly problems: readonly Problem[] }

/** One reload of the past that changed something, or was refused. */
export interface PastReload {
  /** ISO 8601. */
  readonly at: string
  readonly end: 'applied' | 'refused'
  /** Keys of servers. */
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly string[]
  /** Of lists that hosts see, how many entries came, went or changed. */
  readonly entries: number
  readonly problems: readonly Problem[]
}
