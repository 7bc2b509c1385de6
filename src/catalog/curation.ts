/**
 * Curation of one server by the configuration (`filter`, `tools`, `resources`, `prompts` of a server): which entries hosts see, and how
 * they are edited. Plain data, each rule with its place in the file; `curate/` applies it.
 */
import type { Rate } from '../rpc/rate.ts'
import type { ParamHeader } from '../wire/headers/param-headers.ts'
import type { HintName, Hints } from './hints.ts'

/** The place of a rule in the configuration. */
export interface Placed {
  /** `servers.github.filter.deny[0]` */
  readonly path: string
  /** `trunkline.yaml:31:7` */
  readonly place: string
}

export interface GlobRule extends Placed {
  readonly glob: string
}

/** Shows what any `allow` matches (without `allow`: everything) and no `deny` matches. */
export interface ListFilter {
  /** `undefined`: everything. */
  readonly allow: (Placed & { readonly globs: readonly GlobRule[] }) | undefined
  readonly deny: readonly GlobRule[]
}

export interface HintRule extends Placed {
  readonly hint: HintName
  /** `deny`: tools with the hint are hidden. `require`: tools without it are hidden. */
  readonly verdict: 'deny' | 'require'
}

export interface ArgumentEdit extends Placed {
  readonly name: string
  /** JSON text sent with every call; the caller cannot change it. */
  readonly value: string | undefined
  /** Hosts do not see the argument and must not send it. */
  readonly isHidden: boolean
  /** JSON text for calls without the argument. */
  readonly default: string | undefined
  readonly description: string | undefined
}

/** Whether the configuration decides what the server gets for the argument, so that the caller need not send it. */
export const isPreset = ({ value, isHidden, default: fallback }: ArgumentEdit): boolean =>
  value !== undefined || isHidden || fallback !== undefined

/** `resource`: the rest can be read by a link. `truncate`: the rest is dropped, with a note. `error`: the call fails. */
export type Overflow = 'resource' | 'truncate' | 'error'

export interface ResultLimit {
  /** Estimated tokens of the text of one result. */
  readonly maxTokens: number
  readonly overflow: Overflow
}

/** `tools.<original>` of a server. */
export interface ToolEdit extends Placed {
  readonly original: string
  /** Replaces the original name after the prefix. */
  readonly name: (Placed & { readonly text: string }) | undefined
  readonly title: (Placed & { readonly text: string }) | undefined
  readonly description: (Placed & { readonly text: string }) | undefined
  readonly annotations: (Placed & { readonly hints: Hints }) | undefined
  readonly args: readonly ArgumentEdit[]
  readonly timeout: (Placed & { readonly totalMs: number }) | undefined
  readonly rate: (Placed & { readonly rate: Rate }) | undefined
  readonly result: (Placed & ResultLimit) | undefined
}

export interface Curation {
  readonly tools: ListFilter & { readonly hints: readonly HintRule[] }
  /** For templates, too. */
  readonly resources: ListFilter
  readonly prompts: ListFilter
  /** By original name. */
  readonly edits: ReadonlyMap<string, ToolEdit>
  /** Where each `alias` was written, by original name. */
  readonly aliases: ReadonlyMap<string, Placed>
}

/** Rule for the calls of a curated tool. */
export interface CallRule {
  readonly args: readonly ArgumentEdit[]
  /** Time limit of a call, in place of the server's `timeouts.total`. */
  readonly totalMs: number | undefined
  readonly result: ResultLimit | undefined
  /** Mirrored headers of the server's own definition, those of hidden arguments included. */
  readonly paramHeaders: readonly ParamHeader[]
  /** Lower-case names of the headers that mirror hidden arguments: hosts do not send them. */
  readonly hiddenHeaders: readonly string[]
}
