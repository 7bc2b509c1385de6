/**
 * The one predicate that decides what of a server exists for hosts: lists, calls, reads, completions and subscriptions ask here.
 */
import type { Curation, GlobRule, HintRule, ListFilter, Placed } from '../curation.ts'
import { matchesGlob } from '../glob.ts'
import { believed, hintsOf } from '../hints.ts'
import type { Hints } from '../hints.ts'
import type { Entry, ListKind } from '../inventory.ts'
import { plainUri } from '../names/plain-uri.ts'

/** Whether something is shown, and the rule that decided; `undefined`: none had to. */
export interface Decision {
  readonly isShown: boolean
  readonly by: Placed | undefined
}

/** A server's entry, as the server said it. */
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
 * A URI or template, listed or not. A server may read a spelling as it likes, so a URI is shown only if all are, and never if it climbs;
 * what is denied is denied whatever its case, since file systems differ.
 */
export const decideUri = ({ resources }: Curation, uri: string): Decision => {
  const asSaid = decide(resources, uri, '/')
  if (!asSaid.isShown) return asSaid
  const by = resources.allow ?? resources.deny[0]
  if (by === undefined) return asSaid
  const plain = plainUri(uri)
  if (plain === undefined) return { isShown: false, by }
  return plain === uri ? asSaid : decide(resources, plain, '/')
}

/** Whether the configuration lets hosts know of this URI of the server, listed or not. */
export const offersUri = ({ curation }: { readonly curation: Curation | undefined }, uri: string): boolean =>
  curation === undefined || decideUri(curation, uri).isShown

/** A name of a tool or prompt, listed or not, by the globs alone. */
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
