/**
 * URIs inside a result: `resource_link` blocks, embedded resources and `contents[].uri` leave with their exposed form, spliced
 * in. Nothing inside `text`, `data`, `blob`, `structuredContent` or `_meta` is looked at (BRIDGING 2.5).
 */
import { blocksOf } from '../../wire/message/content-blocks.ts'
import type { BlockPlace } from '../../wire/message/content-blocks.ts'
import { membersAt } from '../../wire/message/members.ts'
import { stringAt } from '../../wire/message/payload.ts'
import type { Payload } from '../../wire/message/payload.ts'
import type { Member } from '../../wire/json/scan.ts'
import { StreamedResult } from '../../wire/result/streamed-result.ts'

/**
 * Puts the exposed URIs into `result`, which keeps the edits. `expose` must return relative references as they are; for a server
 * whose URIs are not rewritten this is not called. Text and plain answers cost nothing: the scan of the message has found no block.
 */
export const exposeResult = (result: Payload, place: BlockPlace, expose: (uri: string) => string): void => {
  if (result instanceof StreamedResult) return result.editBlocks((block) => exposeBlock(block, block.members, expose))
  for (const { members } of blocksOf(result, place)) {
    if (place === 'contents') exposeMembers(result, members ?? [], 'uri', expose)
    else exposeBlock(result, members ?? [], expose)
  }
}

const exposeBlock = (result: Payload, members: readonly Member[], expose: (uri: string) => string): void => {
  const types = members.filter((member) => member.key === 'type').map((member) => stringAt(result.bytes, member))
  if (types.includes('resource_link')) exposeMembers(result, members, 'uri', expose)
  if (types.includes('resource'))
    for (const { key, start } of members)
      if (key === 'resource') exposeMembers(result, membersAt(result.bytes, start), 'uri', expose)
}

const exposeMembers = (result: Payload, members: readonly Member[], key: string, expose: (uri: string) => string): void => {
  for (const member of members) {
    const uri = member.key === key ? stringAt(result.bytes, member) : undefined
    const exposed = uri === undefined ? undefined : expose(uri)
    if (exposed !== undefined && exposed !== uri) result.replace(member, JSON.stringify(exposed))
  }
}
