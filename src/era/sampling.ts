/** Translates sampling requests and answers between peers of different revisions. */
import { errorAnswer } from '../rpc/call.ts'
import type { Answer } from '../rpc/call.ts'
import type { DeviationName } from '../rpc/fidelity.ts'
import { elementsAt } from '../wire/message/members.ts'
import { Payload } from '../wire/message/payload.ts'
import { isAtLeast } from '../wire/protocol/revisions.ts'
import type { Revision } from '../wire/protocol/revisions.ts'
import type { Span } from '../wire/json/scan.ts'
import { OPEN_BRACE, OPEN_BRACKET } from '../wire/json/tokens.ts'

const TOOL_BLOCKS: ReadonlySet<string> = new Set(['tool_use', 'tool_result'])

/**
 * Removes `includeContext`, except at a bridge: for a host, "this server" is the whole gateway, and context of other servers must not
 * leak into a prompt (B095). Before 2025-11-25 a message has one block and no tool use (BRIDGING 3.14). Edits the params; returns the
 * reason if the host's revision has no form for them.
 */
export const encodeSampling = (
  params: Payload,
  revision: Revision,
  note: (deviation: DeviationName) => void,
  isBridge = false,
): string | undefined => {
  const context = params.text('includeContext')
  if (context !== undefined && context !== 'none' && !isBridge) {
    params.delete('includeContext')
    note('context')
  }
  if (isAtLeast(revision, '2025-11-25')) return undefined
  const messages = params.member('messages')
  for (const message of messages === undefined ? [] : elementsAt(params.bytes, messages.start)) {
    const content = objectAt(params.bytes, message)?.member('content')
    if (content === undefined) continue
    const block = onlyBlock(params.bytes, content)
    if (block === undefined) return 'sampling with several content blocks in a message'
    const type = objectAt(params.bytes, block)?.text('type') ?? ''
    if (TOOL_BLOCKS.has(type) || (type === 'audio' && revision === '2024-11-05')) return `sampling with content of type "${type}"`
    if (block !== content) params.replace(content, params.bytes.subarray(block.start, block.end))
  }
  return undefined
}

/** An answer in the form of the server's revision: before 2025-11-25 a sampled message has one block. */
export const encodeSampled = (answer: Answer, revision: Revision | undefined): Answer => {
  if ('error' in answer || revision === undefined || isAtLeast(revision, '2025-11-25')) return answer
  const { result } = answer
  const content = result.member('content')
  const block = content && onlyBlock(result.bytes, content)
  if (content !== undefined && block === undefined) return errorAnswer(-32603, 'the client answered with several content blocks')
  if (block !== undefined && block !== content) result.set('content', result.bytes.subarray(block.start, block.end))
  return answer
}

const objectAt = (bytes: Buffer, { start }: Span): Payload | undefined =>
  bytes[start] === OPEN_BRACE ? Payload.at(bytes, start) : undefined

/** The only block of a message: the value itself, or the only element of an array; `undefined`: there are several, or none. */
const onlyBlock = (bytes: Buffer, content: Span): Span | undefined => {
  if (bytes[content.start] !== OPEN_BRACKET) return content
  const elements = elementsAt(bytes, content.start)
  return elements.length === 1 ? elements[0] : undefined
}
