/**
 * The one predicate that decides what of a server exists for hosts: lists, calls, reads, completions and subscriptions ask here.
 */
import { Payload } from '../wire/payload.ts'
import type { Curation, GlobRule, HintName, HintRule, Hints, ListFilter, Placed } from './curation.ts'
import { matchesGlob } from './glob.ts'
import type { Entry, ListKind } from './inventory.ts'
import { resolvedUri } from './resolved-uri.ts'

/** Whether something is shown, and the rule that decided; `undefined`: none had to. */
export interface Decision {
  readonly isShown: boolean
  readonly by: Placed | undefined
}

/** What [2026-07-28 schema, ToolAnnotations] says of a tool that says nothing. */
const ASSUMED: Readonly<Record<HintName, boolean>> = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: false,
  openWorldHint: true,
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
 * A URI or template, listed or not. A server may read `..` and `%2e` as it likes, so a URI is shown only if all its spellings are;
 * what is denied is denied whatever its case, since file systems differ.
 */
export const decideUri = ({ resources }: Curation, uri: string): Decision => {
  const asSaid = decide(resources, uri, '/')
  if (!asSaid.isShown) return asSaid
  const plain = resolvedUri(uri)
  return plain === uri ? asSaid : decide(resources, plain, '/')
}

/** What a tool's definition says of it, as far as it does. */
export const hintsOf = (definition: Buffer): Hints => {
  const said = Payload.at(definition).object('annotations')
  const hints = Object.keys(ASSUMED) as HintName[]
  return Object.fromEntries(
    hints.flatMap((hint) => {
      const value = said?.raw(hint)?.toString()
      return value === 'true' || value === 'false' ? [[hint, value === 'true']] : []
    }),
  )
}

/** What is to be believed of a tool: a tool that only reads destroys nothing. */
export const holds = (hint: HintName, hints: Hints): boolean =>
  hint === 'destructiveHint' && hints.readOnlyHint === true ? false : (hints[hint] ?? ASSUMED[hint])

const isAgainst = ({ hint, verdict }: HintRule, hints: Hints): boolean => holds(hint, hints) === (verdict === 'deny')

const decide = ({ allow, deny }: ListFilter, text: string, separator?: string): Decision => {
  const denied = deny.find(({ glob }) => matches(glob, text, separator, separator !== undefined))
  if (denied !== undefined) return { isShown: false, by: denied }
  if (allow === undefined) return { isShown: true, by: undefined }
  const allowed = allow.globs.find(({ glob }: GlobRule) => matches(glob, text, separator, false))
  return { isShown: allowed !== undefined, by: allowed ?? allow }
}

const matches = (glob: string, text: string, separator: string | undefined, ignoresCase: boolean): boolean =>
  ignoresCase ? matchesGlob(glob.toLowerCase(), text.toLowerCase(), separator) : matchesGlob(glob, text, separator)
