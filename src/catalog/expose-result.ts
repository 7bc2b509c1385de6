/**
 * URIs inside a result: `resource_link` blocks, embedded resources and `contents[].uri` leave with their exposed form, spliced
 * in. Nothing inside `text`, `data`, `blob`, `structuredContent` or `_meta` is looked at (BRIDGING 2.5).
 */
import { elementsAt, membersAt } from '../wire/members.ts'
import { stringAt } from '../wire/payload.ts'
import type { Payload } from '../wire/payload.ts'
import type { Span } from '../wire/scan.ts'
import { StreamedResult } from '../wire/streamed-result.ts'

/** Where the result of a method holds URIs: blocks of a tool, of a prompt's messages, or what was read. */
export type UriPlace = 'content' | 'messages' | 'contents'

/**
 * Puts the exposed URIs into `result`, which keeps the edits. `expose` must return relative references as they are; for a server
 * whose URIs are not rewritten this is not called. Text and plain answers cost one search.
 */
export const exposeResult = (result: Payload, place: UriPlace, expose: (uri: string) => string): void => {
  if (result instanceof StreamedResult) return result.editBlocks((block) => exposeBlock(block, block, expose))
  const member = result.member(place)
  if (member === undefined) return
  const { bytes } = result
  if (place === 'contents') for (const item of elementsAt(bytes, member.start)) exposeMember(result, item, 'uri', expose)
  else if (!holdsResource(bytes, member)) return
  else if (place === 'content') for (const block of elementsAt(bytes, member.start)) exposeBlock(result, block, expose)
  else for (const message of elementsAt(bytes, member.start)) exposeMessage(result, message, expose)
}

/** Native searches: only a block whose type begins with `resource` can hold a URI, or one whose type is spelled with escapes. */
const holdsResource = (bytes: Buffer, { start, end }: Span): boolean => {
  const value = bytes.subarray(start, end)
  return value.includes('"resource') || value.includes('\\u')
}

/** A message's content is one block, or (some servers) a list of them. */
const exposeMessage = (result: Payload, message: Span, expose: (uri: string) => string): void => {
  for (const member of membersAt(result.bytes, message.start)) {
    if (member.key !== 'content') continue
    const blocks = result.bytes[member.start] === 0x5b ? elementsAt(result.bytes, member.start) : [member]
    for (const block of blocks) exposeBlock(result, block, expose)
  }
}

const exposeBlock = (result: Payload, block: Span, expose: (uri: string) => string): void => {
  const members = membersAt(result.bytes, block.start)
  const types = members.filter((member) => member.key === 'type').map((member) => stringAt(result.bytes, member))
  if (types.includes('resource_link')) exposeMember(result, block, 'uri', expose)
  if (types.includes('resource'))
    for (const member of members) if (member.key === 'resource') exposeMember(result, member, 'uri', expose)
}

const exposeMember = (result: Payload, object: Span, key: string, expose: (uri: string) => string): void => {
  for (const member of membersAt(result.bytes, object.start)) {
    const uri = member.key === key ? stringAt(result.bytes, member) : undefined
    const exposed = uri === undefined ? undefined : expose(uri)
    if (exposed !== undefined && exposed !== uri) result.replace(member, JSON.stringify(exposed))
  }
}
