/** Decides which entries and URIs of a server exist for hosts, for lists, calls, reads, completions and subscriptions. */
import type { Curation, GlobRule, HintRule, ListFilter, Placed } from '../curation.ts'
import { matchesGlob } from '../glob.ts'
import { believed, hintsOf } from '../hints.ts'
import type { Hints } from '../hints.ts'
import type { Entry, ListKind } from '../inventory.ts'
import { plainUri } from '../names/plain-uri.ts'

/** Whether an entry is shown, and the rule that decided. */
export interface Decision {
  readonly isShown: boolean
  /** `undefined`: shown without a rule. */
  readonly by: Placed | undefined
}

/** `entry`: before curation. */
export const decideEntry = (curation: Curation, kind: ListKind, entry: Entry): Decision => {
  if (kind === 'prompts') return decide(curation.prompts, entry.original)
  if (kind !== 'tools') return decideUri(curation, entry.original)
  const { tools } = curation
  const named = decide(tools, entry.original)
  if (!named.isShown || tools.hints.length === 0) return named
  const hints = hintsOf(entry.raw)
  const against = tools.hints.find((rule) => isAgainst(rule, hints))
  return against === undefined ? named : { isShown: false, by: against }
}

/**
 * A URI or template, listed or not. A server may treat several spellings as one, so a URI is shown only if its plain spelling is shown
 * as well, and never if it contains `..`. `deny` ignores case, since some file systems do.
 */
export const decideUri = ({ resources }: Curation, uri: string): Decision => {
  const literal = decide(resources, uri, '/')
  if (!literal.isShown) return literal
  const by = resources.allow ?? resources.deny[0]
  if (by === undefined) return literal
  const plain = plainUri(uri)
  if (plain === undefined) return { isShown: false, by }
  return plain === uri ? literal : decide(resources, plain, '/')
}

/** Whether the configuration shows this URI of the server to hosts, listed or not. */
export const offersUri = ({ curation }: { readonly curation: Curation | undefined }, uri: string): boolean =>
  curation === undefined || decideUri(curation, uri).isShown

/** A tool or prompt, listed or not, by its name alone. */
export const decideName = (filter: ListFilter, original: string): Decision => decide(filter, original)

const isAgainst = ({ hint, verdict }: HintRule, hints: Hints): boolean => believed(hint, hints) === (verdict === 'deny')

const decide = ({ allow, deny }: ListFilter, text: string, separator?: string): Decision => {
  const denied = deny.find(({ glob }) => matches(glob, text, separator, separator !== undefined))
  if (denied !== undefined) return { isShown: false, by: denied }
  if (allow === undefined) return { isShown: true, by: undefined }
  const allowed = allow.globs.find(({ glob }: GlobRule) => matches(glob, text, separator, false))
  return { isShown: allowed !== undefined, by: allowed ?? allow }
}

const matches = (glob: string, text: string, separator: string | undefined, ignoresCase: boolean): boolean =>
  ignoresCase ? matchesGlob(glob.toLowerCase(), text.toLowerCase(), separator) : matchesGlob(glob, text, separator)
