/**
 * The arguments of one call after curation: the sent arguments stay byte for byte; pinned arguments and defaults are inserted in front
 * of them.
 */
import { canonical } from '../../wire/message/canonical.ts'
import { isCaseVariant } from '../../wire/protocol/deciding-keys.ts'
import { membersAt } from '../../wire/message/members.ts'
import type { Member } from '../../wire/json/scan.ts'
import { isPreset } from '../curation.ts'
import type { ArgumentEdit } from '../curation.ts'
import { NULL, OPEN_BRACE } from '../../wire/json/tokens.ts'

/**
 * `args`: the JSON of the call's `arguments`, if any. Returns the same buffer if nothing is added. `fault`: an error that the model can
 * correct. `refused`: a key that differs from a preset argument only in case, which a server might take for it (T-20, B270).
 */
export const fillArguments = (
  args: Buffer | undefined,
  edits: readonly ArgumentEdit[],
): { readonly filled: Buffer | undefined } | { readonly fault: string } | { readonly refused: string } => {
  // Null counts as absent, but stays if nothing is added.
  const isAbsent = args === undefined || args[0] === NULL
  if (!isAbsent && args[0] !== OPEN_BRACE) return { fault: 'the arguments must be an object' }
  const sent = isAbsent ? [] : membersAt(args, 0)
  let added = ''
  for (const edit of edits) {
    const variant = sent.find(({ key }) => isCaseVariant(key, edit.name))
    if (variant !== undefined && isPreset(edit))
      return { refused: `the argument ${JSON.stringify(variant.key)} differs from ${nameOf(edit)} only in case` }
    const own = sent.filter(({ key }) => key === edit.name)
    const fault = args === undefined ? undefined : faultOf(args, own, edit)
    if (fault !== undefined) return { fault }
    const json = edit.value ?? edit.default
    if (own.length === 0 && json !== undefined) added += `${added === '' ? '' : ','}${JSON.stringify(edit.name)}:${json}`
  }
  if (added === '') return { filled: args }
  if (isAbsent || sent.length === 0) return { filled: Buffer.from(`{${added}}`) }
  return { filled: Buffer.concat([Buffer.from(`{${added},`), args.subarray(1)]) }
}

/** Without the name of an argument that hosts do not see. */
const nameOf = ({ name, isHidden }: ArgumentEdit): string =>
  isHidden ? 'one that is set by the configuration' : JSON.stringify(name)

/** The error in what the host sent for an argument, as text for a model; `own`: all occurrences of the argument. */
const faultOf = (args: Buffer, own: readonly Member[], { name, value, isHidden }: ArgumentEdit): string | undefined => {
  if (own.length === 0) return undefined
  if (isHidden) return `unknown argument ${JSON.stringify(name)}`
  const differs = (member: Member): boolean =>
    canonical(args.subarray(member.start, member.end)) !== canonical(Buffer.from(value ?? ''))
  return value !== undefined && own.some(differs)
    ? `the argument ${JSON.stringify(name)} is fixed: leave it out, or send what its schema says`
    : undefined
}
