/**
 * Translates results into the form of a host's revision: older hosts reject a whole result if it has one unknown content block
 * (BRIDGING 3.3, 3.5; B107, B108). Applied after all other edits: a replaced block is described with its edited URI.
 */
import type { Affected, Fidelity } from '../../rpc/fidelity.ts'
import { blocksOf } from '../../wire/message/content-blocks.ts'
import type { BlockPlace } from '../../wire/message/content-blocks.ts'
import { elementsAt, lastMember, membersAt } from '../../wire/message/members.ts'
import { Payload, stringAt } from '../../wire/message/payload.ts'
import type { JsonObject } from '../../wire/message/payload.ts'
import type { Member, Span } from '../../wire/json/scan.ts'
import { isAtLeast, isModernRevision } from '../../wire/protocol/revisions.ts'
import type { Revision } from '../../wire/protocol/revisions.ts'
import { NULL, OPEN_BRACE, OPEN_BRACKET } from '../../wire/json/tokens.ts'

/**
 * Form of a tool's structured content for hosts that accept only objects, decided once per tool for schema and values (B108, B283).
 * `by value`: the tool has no schema, so each value decides. Tools of legacy servers are `plain`.
 */
export type OutputForm = 'plain' | 'wrapped' | 'by value'

/**
 * Returns the result in the form of the host's revision; a new object only if a block was replaced. `output` is called only for
 * structured content to a host that accepts only objects.
 */
export const project = (result: JsonObject, call: Affected, fidelity: Fidelity, output: () => OutputForm): JsonObject => {
  if (!(result instanceof Payload)) return result
  const { method } = call
  if (method === 'tools/call' || method === 'tasks/result') return projectTool(result, call, fidelity, output)
  const isOld = method === 'prompts/get' && !isAtLeast(call.caller.revision, '2025-06-18')
  return isOld ? projectBlocks(result, 'messages', call, fidelity) : result
}

const projectTool = (result: Payload, call: Affected, fidelity: Fidelity, output: () => OutputForm): Payload => {
  const { revision } = call.caller
  const isOld = !isAtLeast(revision, '2025-06-18')
  const projected = isOld ? projectBlocks(result, 'content', call, fidelity) : result
  const structured = projected.raw('structuredContent')
  // Null counts as missing structured content (B282).
  if (structured === undefined || structured[0] === NULL) return projected
  const isWrapped = !isOld && !isModernRevision(revision) && wraps(structured, output())
  if (isWrapped) projected.set('structuredContent', [Buffer.from('{"result":'), structured, Buffer.from('}')])
  const isAdded = (isOld || isWrapped) && appendAsText(projected, structured)
  if (isWrapped || isAdded) fidelity.note('structured', call)
  if (projected.isAbsent('content')) projected.set('content', '[]')
  return projected
}

const wraps = (structured: Buffer, form: OutputForm): boolean =>
  form === 'wrapped' || (form === 'by value' && structured[0] !== OPEN_BRACE)

/** Appends the structured content as a text block unless the result has a text block. Returns whether it was appended. */
const appendAsText = (result: Payload, structured: Buffer): boolean => {
  const text = JSON.stringify({ type: 'text', text: structured.toString() })
  const content = result.member('content')
  if (content === undefined || result.bytes[content.start] === NULL) {
    result.set('content', `[${text}]`)
    return true
  }
  const blocks = elementsAt(result.bytes, content.start)
  const isList = result.bytes[content.start] === OPEN_BRACKET
  if (!isList || blocks.some((block) => typeOf(result.bytes, block) === 'text')) return false
  const end = content.end - 1
  result.replace({ start: end, end }, blocks.length === 0 ? text : `,${text}`)
  return true
}

/** Replaces blocks that the host's revision does not define by text blocks that describe them. */
const projectBlocks = (result: Payload, place: BlockPlace, call: Affected, fidelity: Fidelity): Payload => {
  const { revision } = call.caller
  const isUnknown = ({ bytes }: Payload, { members = [] }: Member): boolean => !isKnown(textIn(bytes, members, 'type'), revision)
  if (!blocksOf(result, place).some((block) => isUnknown(result, block))) return result
  // URIs may have been replaced inside the blocks.
  const settled = result.settled()
  for (const block of blocksOf(settled, place)) {
    if (!isUnknown(settled, block)) continue
    fidelity.note('block', call)
    settled.replace(block, JSON.stringify({ type: 'text', text: describeBlock(settled.bytes, block.members ?? []) }))
  }
  return settled
}

const isKnown = (type: string | undefined, revision: Revision): boolean =>
  (type !== 'resource_link' || isAtLeast(revision, '2025-06-18')) && (type !== 'audio' || isAtLeast(revision, '2025-03-26'))

const typeOf = (bytes: Buffer, block: Span): string | undefined => textIn(bytes, membersAt(bytes, block.start), 'type')

const describeBlock = (bytes: Buffer, members: readonly Member[]): string => {
  const text = (key: string): string | undefined => textIn(bytes, members, key)
  if (text('type') !== 'audio') return [text('title') ?? text('name'), text('uri')].filter(Boolean).join(': ')
  return `[audio ${text('mimeType') ?? 'of unknown type'}, ${Buffer.byteLength(text('data') ?? '', 'base64')} bytes]`
}

const textIn = (bytes: Buffer, members: readonly Member[], key: string): string | undefined => {
  const member = lastMember(members, key)
  return member && stringAt(bytes, member)
}
