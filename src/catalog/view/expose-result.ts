/**
 * Replaces URIs in a result by their exposed forms: in `resource_link` blocks, embedded resources and `contents[].uri`. `text`, `data`,
 * `blob`, `structuredContent` and `_meta` are not searched (BRIDGING 2.5).
 */
import { blocksOf } from '../../wire/message/content-blocks.ts'
import type { BlockPlace } from '../../wire/message/content-blocks.ts'
import { membersAt } from '../../wire/message/members.ts'
import { stringAt } from '../../wire/message/payload.ts'
import type { Payload } from '../../wire/message/payload.ts'
import type { Member } from '../../wire/json/scan.ts'
import { StreamedResult } from '../../wire/result/streamed-result.ts'

/**
 * Edits `result`. `expose` must return relative references unchanged. Results without such blocks cost nothing, since the scan of the
 * message has found none.
 */
export const exposeResult = (result: Payload, place: BlockPlace, expose: (uri: string) => string): void => {
  if (result instanceof StreamedResult) return result.editBlocks((block) => exposeBlock(block, block.members, expose))
  for (const { members } of blocksOf(result, place)) {
    if (place === 'contents') exposeMembers(result, members ?? [], expose)
    else exposeBlock(result, members ?? [], expose)
  }
}

/** Edits `data.uri` of an error object. */
export const exposeErrorUri = (error: Payload, expose: (uri: string) => string): void => {
  const data = error.object('data')
  const uri = data?.text('uri')
  if (uri !== undefined) data?.set('uri', JSON.stringify(expose(uri)))
}

const exposeBlock = (result: Payload, members: readonly Member[], expose: (uri: string) => string): void => {
  const types = members.filter((member) => member.key === 'type').map((member) => stringAt(result.bytes, member))
  if (types.includes('resource_link')) exposeMembers(result, members, expose)
  if (types.includes('resource'))
    for (const { key, start } of members) if (key === 'resource') exposeMembers(result, membersAt(result.bytes, start), expose)
}

const exposeMembers = (result: Payload, members: readonly Member[], expose: (uri: string) => string): void => {
  for (const member of members) {
    const uri = member.key === 'uri' ? stringAt(result.bytes, member) : undefined
    const exposed = uri === undefined ? undefined : expose(uri)
    if (exposed !== undefined && exposed !== uri) result.replace(member, JSON.stringify(exposed))
  }
}
