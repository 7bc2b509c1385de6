/**
 * Results in the shapes that a host's revision knows: a closed union of content blocks makes old hosts refuse a whole result
 * over one block they have never heard of (BRIDGING 3.3, 3.5; B107, B108). Only the member concerned is written anew.
 */
import type { Affected, Fidelity } from '../rpc/fidelity.ts'
import { elementsAt } from '../wire/members.ts'
import { join, Payload } from '../wire/payload.ts'
import type { JsonObject } from '../wire/payload.ts'
import type { Span } from '../wire/scan.ts'
import { isAtLeast, isModernRevision } from '../wire/revisions.ts'

/** The result of this call as its host can read it; the same object where nothing had to change. */
export const project = (result: JsonObject, call: Affected, fidelity: Fidelity): JsonObject => {
  if (!(result instanceof Payload)) return result
  const { method } = call
  if (method === 'tools/call' || method === 'tasks/result') return projectTool(result, call, fidelity)
  const isOld = method === 'prompts/get' && !isAtLeast(call.caller.revision, '2025-06-18')
  return isOld ? projectPrompt(result, call, fidelity) : result
}

const projectTool = (result: Payload, call: Affected, fidelity: Fidelity): Payload => {
  const { revision } = call.caller
  if (isModernRevision(revision)) {
    if (result.has('structuredContent') && !result.has('content')) result.set('content', '[]')
    return result
  }
  const projected = isAtLeast(revision, '2025-06-18') ? result : projectBlocks(result, 'content', call, fidelity)
  const structured = projected.raw('structuredContent')
  if (structured !== undefined) projectStructured(projected, structured, call, fidelity)
  return projected
}

/** Structured content came with 2025-06-18, as an object; anything else since 2026-07-28. */
const projectStructured = (result: Payload, structured: Buffer, call: Affected, fidelity: Fidelity): void => {
  const isKnown = isAtLeast(call.caller.revision, '2025-06-18')
  const isObject = structured[0] === 0x7b
  if (!isKnown || !isObject) fidelity.note('structured', call)
  if (!isKnown) result.delete('structuredContent')
  else if (!isObject) result.set('structuredContent', [Buffer.from('{"result":'), structured, Buffer.from('}')])
  const hasText = result.raw('content')?.includes('"text"') === true
  if (hasText || (isKnown && isObject)) {
    if (!result.has('content')) result.set('content', '[]')
    return
  }
  const text = JSON.stringify({ type: 'text', text: structured.toString() })
  const blocks = result.raw('content')?.toString().trim().slice(1, -1).trim() ?? ''
  result.set('content', blocks === '' ? `[${text}]` : `[${blocks},${text}]`)
}

const projectPrompt = (result: Payload, call: Affected, fidelity: Fidelity): Payload => {
  const settled = Payload.at(join(result.parts()))
  const messages = settled.member('messages')
  if (messages === undefined) return result
  for (const span of elementsAt(settled.bytes, messages.start)) {
    const content = Payload.at(settled.bytes, span.start).member('content')
    if (content !== undefined) replaceBlock(settled, content, call, fidelity)
  }
  return settled
}

const projectBlocks = (result: Payload, name: string, call: Affected, fidelity: Fidelity): Payload => {
  const list = result.raw(name)
  if (list?.includes('"resource_link"') !== true && list?.includes('"audio"') !== true) return result
  // URIs may have been replaced inside the blocks: what is read from here on is what the host would see.
  const settled = Payload.at(join(result.parts()))
  const member = settled.member(name)
  const spans = member === undefined ? [] : elementsAt(settled.bytes, member.start)
  for (const span of spans) replaceBlock(settled, span, call, fidelity)
  return settled
}

/** A block this revision does not know becomes a text block that says what stood there. */
const replaceBlock = (result: Payload, span: Span, call: Affected, fidelity: Fidelity): void => {
  const { revision } = call.caller
  if (result.bytes[span.start] !== 0x7b) return
  const block = Payload.at(result.bytes, span.start)
  const type = block.text('type')
  const isUnknown =
    (type === 'resource_link' && !isAtLeast(revision, '2025-06-18')) || (type === 'audio' && !isAtLeast(revision, '2025-03-26'))
  if (!isUnknown) return
  fidelity.note('block', call)
  result.replace(span, JSON.stringify({ type: 'text', text: type === 'audio' ? audioText(block) : linkText(block) }))
}

const linkText = (block: Payload): string =>
  [block.text('title') ?? block.text('name'), block.text('uri')].filter(Boolean).join(': ')

const audioText = (block: Payload): string => {
  const bytes = Buffer.byteLength(block.text('data') ?? '', 'base64')
  return `[audio ${block.text('mimeType') ?? 'of unknown type'}, ${bytes} bytes]`
}
