/**
 * The arguments of one call as the configuration wants them: what the host sent stays as it is, byte for byte, and what is pinned or
 * has a default is spliced in front of it.
 */
import { canonical } from '../wire/canonical.ts'
import { membersAt } from '../wire/members.ts'
import type { Member } from '../wire/scan.ts'
import type { ArgumentEdit } from './curation.ts'

/** `args`: the JSON of the call's `arguments`, if it has any. The same buffer if nothing is to be added. */
export const fillArguments = (
  args: Buffer | undefined,
  edits: readonly ArgumentEdit[],
): { readonly filled: Buffer | undefined } | { readonly fault: string } => {
  if (args !== undefined && args[0] !== OPEN) return { fault: 'the arguments must be an object' }
  const sent = args === undefined ? [] : membersAt(args, 0)
  let added = ''
  for (const edit of edits) {
    const own = sent.filter(({ key }) => key === edit.name)
    const fault = args === undefined ? undefined : faultOf(args, own, edit)
    if (fault !== undefined) return { fault }
    const json = edit.value ?? edit.default
    if (own.length === 0 && json !== undefined) added += `${added === '' ? '' : ','}${JSON.stringify(edit.name)}:${json}`
  }
  if (added === '') return { filled: args }
  if (args === undefined || sent.length === 0) return { filled: Buffer.from(`{${added}}`) }
  return { filled: Buffer.concat([Buffer.from(`{${added},`), args.subarray(1)]) }
}

const OPEN = 0x7b

/** What is wrong with what the host sent for an argument, in words for a model; every repetition counts. */
const faultOf = (args: Buffer, own: readonly Member[], { name, value, isHidden }: ArgumentEdit): string | undefined => {
  if (own.length === 0) return undefined
  if (isHidden) return `unknown argument ${JSON.stringify(name)}`
  const differs = (member: Member): boolean =>
    canonical(args.subarray(member.start, member.end)) !== canonical(Buffer.from(value ?? ''))
  return value !== undefined && own.some(differs)
    ? `the argument ${JSON.stringify(name)} is fixed: leave it out, or send what its schema says`
    : undefined
}
