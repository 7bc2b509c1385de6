/** Reloads of the configuration and their plans: their results, and past ones. */
import type { EditedFile } from '../../config/runtime-environment.ts'
import type { Problem } from '../../config/syntax/problems.ts'
import type { Plan } from './plan.ts'

/** The applied changes (server keys), or why the configuration was refused. */
export type ReloadEnd =
  | {
      readonly kind: 'applied'
      readonly added: readonly string[]
      readonly removed: readonly string[]
      readonly changed: readonly string[]
      /** YAML paths whose change takes effect after a restart of the process. */
      readonly needsRestart: readonly string[]
      /** The whole plan, made before it was applied. */
      readonly plan: Plan
    }
  | { readonly kind: 'refused'; readonly problems: readonly Problem[] }

/** The plan of a reload, or why the configuration would be refused. */
export type PlanEnd =
  | { readonly kind: 'planned'; readonly plan: Plan }
  | { readonly kind: 'refused'; readonly problems: readonly Problem[] }

/** A past reload that changed something, or was refused. */
export interface PastReload {
  /** ISO 8601. */
  readonly at: string
  readonly end: 'applied' | 'refused'
  /** Keys of servers. */
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly string[]
  /** Number of entries in the lists of hosts that were added, removed or changed. */
  readonly entries: number
  readonly problems: readonly Problem[]
}

/** Reloads the configuration, and keeps the results. */
export interface Reloader {
  /** Of the last reload. */
  readonly problems: readonly Problem[]
  /** Oldest first, limited. */
  readonly past: readonly PastReload[]
  reload(): Promise<ReloadEnd>
  /** `edited`: texts that replace those of files. */
  plan(edited?: readonly EditedFile[]): Promise<PlanEnd>
}
