/** Explains an entry as hosts see it: the rules of the configuration that show, hide, rename or edit it, in the order of effect. */
import { decideEntry } from './curated-filter.ts'
import type { ArgumentEdit, Curation, Placed, ToolEdit } from '../curation.ts'
import type { Entry, ListKind } from '../inventory.ts'

export interface AppliedRule extends Placed {
  readonly effect: 'shows' | 'hides' | 'renames' | 'edits'
  /** What the rule does, as one clause, without values: a pinned argument may be a secret. */
  readonly what: string
}

/**
 * The rules that apply to one entry of a server. `entry`: before curation (`Downstream.inventory$`). Empty: shown unchanged. A rule that
 * hides the entry is the last one.
 */
export const rulesFor = (
  { curation }: { readonly curation: Curation | undefined },
  kind: ListKind,
  entry: Entry,
): readonly AppliedRule[] => {
  if (curation === undefined) return []
  const { isShown, by } = decideEntry(curation, kind, entry)
  const filtered: AppliedRule[] =
    by === undefined ? [] : [{ ...at(by), effect: isShown ? 'shows' : 'hides', what: describe(by, isShown) }]
  if (!isShown) return filtered
  const edit = kind === 'tools' ? curation.edits.get(entry.original) : undefined
  const alias = curation.aliases.get(entry.original)
  const renamed: AppliedRule[] =
    alias === undefined || (kind !== 'tools' && kind !== 'prompts')
      ? []
      : [{ ...at(alias), effect: 'renames', what: 'its exposed name is an alias' }]
  return [...filtered, ...(edit === undefined ? [] : editsOf(edit)), ...renamed]
}

const at = ({ path, place }: Placed): Placed => ({ path, place })

const describe = (by: Placed, isShown: boolean): string => {
  if ('glob' in by) return `${isShown ? 'allows' : 'denies'} ${JSON.stringify(by.glob)}`
  if ('hint' in by) return `${'verdict' in by && by.verdict === 'deny' ? 'denies tools with' : 'requires'} ${String(by.hint)}`
  return 'allows other names'
}

const editsOf = (edit: ToolEdit): AppliedRule[] => {
  const { name, title, description, annotations, args, timeout, rate, result } = edit
  const edits = (rule: Placed | undefined, what: string, effect: AppliedRule['effect'] = 'edits'): AppliedRule[] =>
    rule === undefined ? [] : [{ ...at(rule), effect, what }]
  return [
    ...edits(name, `it is called ${JSON.stringify(name?.text)}`, 'renames'),
    ...edits(title, 'another title'),
    ...edits(description, 'another description'),
    ...edits(annotations, `says ${Object.keys(annotations?.hints ?? {}).join(', ')} for it`),
    ...args.flatMap((argument) => edits(argument, describeArgument(argument))),
    ...edits(timeout, `a call takes at most ${(timeout?.totalMs ?? 0) / 1000} s`),
    ...edits(rate, `all callers together may call it ${rate?.rate.text}`),
    ...edits(result, `a result holds at most about ${result?.maxTokens} tokens (${result?.overflow})`),
  ]
}

const describeArgument = ({ name, value, isHidden, default: given, description }: ArgumentEdit): string => {
  const parts = [
    value !== undefined && 'is pinned',
    isHidden && 'is hidden',
    given !== undefined && 'has a default',
    description !== undefined && 'has another description',
  ].filter((part) => part !== false)
  return `the argument ${JSON.stringify(name)} ${parts.join(', ')}`
}
