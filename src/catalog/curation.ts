/**
 * What the configuration does to what one server offers (`filter`, `tools`, `resources`, `prompts` of a server), each piece with
 * the place where it was written. Plain data; `curated-*.ts` say what follows from it.
 */
import type { Rate } from '../rpc/rate.ts'
import type { ParamHeader } from '../wire/headers/param-headers.ts'
import type { HintName, Hints } from './hints.ts'

/** Where a rule was written. */
export interface Placed {
  /** `servers.github.filter.deny[0]` */
  readonly path: string
  /** `trunkline.yaml:31:7` */
  readonly place: string
}

export interface GlobRule extends Placed {
  readonly glob: string
}

/** What is shown: what an `allow` matches, if there are any, and no `deny` does. */
export interface ListFilter {
  /** `undefined`: everything. */
  readonly allow: (Placed & { readonly globs: readonly GlobRule[] }) | undefined
  readonly deny: readonly GlobRule[]
}

export interface HintRule extends Placed {
  readonly hint: HintName
  /** `deny`: tools of which it holds are hidden. `require`: all others are. */
  readonly verdict: 'deny' | 'require'
}

export interface ArgumentEdit extends Placed {
  readonly name: string
  /** JSON text that every call carries; the caller cannot change it. */
  readonly value: string | undefined
  /** The host does not see the argument, and may not send it. */
  readonly isHidden: boolean
  /** JSON text for calls that do not carry the argument. */
  readonly default: string | undefined
  readonly description: string | undefined
}

/** `resource`: the rest is read behind a link. `truncate`: it is lost, and told. `error`: the call fails, and says why. */
export type Overflow = 'resource' | 'truncate' | 'error'

export interface ResultLimit {
  /** Estimated tokens of the text of one result. */
  readonly maxTokens: number
  readonly overflow: Overflow
}

/** `tools.<original>` of a server. */
export interface ToolEdit extends Placed {
  readonly original: string
  /** Takes the original name's place before the prefix. */
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

/** How the calls of a curated tool differ from those of other tools; absent where they do not. */
export interface CallRule {
  readonly args: readonly ArgumentEdit[]
  /** The longest the call may take, in place of the server's `timeouts.total`. */
  readonly totalMs: number | undefined
  readonly result: ResultLimit | undefined
  /** What the server's own definition mirrors into headers; the entry's are those that a host knows of. */
  readonly paramHeaders: readonly ParamHeader[]
  /** Lower-case names of the headers that mirror hidden arguments: no host sends them. */
  readonly hiddenHeaders: readonly string[]
}
