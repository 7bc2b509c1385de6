/**
 * Limits the text of a tool's result: text blocks, embedded resources and structured content count; images and audio do not. A result
 * within the limit stays unchanged and costs two look-ups.
 */
import type { ResultLimit } from '../../catalog/curation.ts'
import { estimateTokens } from '../../catalog/tokens.ts'
import { joinArray } from '../../catalog/view/view.ts'
import { canonical } from '../../wire/message/canonical.ts'
import { elementsAt } from '../../wire/message/members.ts'
import { join, Payload } from '../../wire/message/payload.ts'
import { attempt } from '../../values/attempt.ts'

const BYTES_PER_TOKEN = 4

/** Estimated tokens of a text. */
export const tokensOf = (text: string): number => estimateTokens(Buffer.from(text))

/** Stores the rest of a result and returns its URI; `undefined`: it is too large. */
type Keep = (text: string, partBytes: number) => string | undefined

/** Returns the same object if it fits. `keep` is called only for `overflow: resource`. */
export const limitResult = (result: Payload, { maxTokens, overflow }: ResultLimit, keep: Keep): Payload => {
  const maxBytes = maxTokens * BYTES_PER_TOKEN
  const content = result.raw('content')
  const structured = result.raw('structuredContent')
  if ((content?.length ?? 0) <= maxBytes && (structured?.length ?? 0) <= maxBytes) return result
  const texts = content === undefined ? [] : elementsAt(content, 0).map(({ start }) => textOf(Payload.at(content, start)) ?? '')
  const tokens = tokensOf(texts.join(''))
  const isStructureLong = structured !== undefined && structured.length > maxBytes
  if (tokens <= maxTokens && !isStructureLong) return result
  const total = Math.max(tokens, structured === undefined ? 0 : estimateTokens(structured))
  if (overflow === 'error') {
    const text = `the result has about ${total} tokens, and no more than ${maxTokens} are allowed here: ask for less`
    return Payload.of({ content: [{ type: 'text', text }], isError: true })
  }
  // With the edits made so far, such as exposed URIs in blocks.
  const settled = Payload.at(join(result.parts()))
  const pieces = piecesOf(settled, maxBytes)
  if (isStructureLong) {
    settled.delete('structuredContent')
    if (!texts.some((text) => isCopy(text, structured))) addStructure(pieces, structured.toString(), maxBytes)
  }
  const rest = pieces.rest.join('\n\n')
  const uri = rest !== '' && overflow === 'resource' ? keep(rest, maxBytes) : undefined
  const end = rest === '' ? [] : endOf(rest, total, maxTokens, uri)
  settled.set('content', joinArray([...pieces.blocks, ...end]))
  // Joined, since the projection for the host's revision reads the bytes.
  return Payload.at(join(settled.parts()))
}

/** The end of a part from `from`: at most `maxBytes` (at least 4) of UTF-8, after a line end if one is near. */
export const cutAt = (text: string, from: number, maxBytes: number): number => {
  let bytes = 0
  let at = from
  while (at < text.length) {
    const code = text.codePointAt(at) ?? 0
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4
    if (bytes > maxBytes) break
    at += code < 0x10000 ? 1 : 2
  }
  if (at === text.length) return at
  const line = text.lastIndexOf('\n', at - 1) + 1
  return line - from > (at - from) * 0.8 ? line : at
}

/** The blocks that stay, and the texts that do not fit. */
interface Pieces {
  readonly blocks: Buffer[]
  readonly rest: string[]
}

const textOf = (block: Payload): string | undefined => {
  const type = block.text('type')
  return type === 'text' ? block.text('text') : type === 'resource' ? block.object('resource')?.text('text') : undefined
}

/** After the first text that does not fit, no further text stays. */
const piecesOf = (result: Payload, maxBytes: number): Pieces => {
  const pieces: Pieces = { blocks: [], rest: [] }
  const content = result.member('content')
  let left = maxBytes
  for (const { start } of content === undefined ? [] : elementsAt(result.bytes, content.start)) {
    const block = Payload.at(result.bytes, start)
    const text = textOf(block)
    const bytes = text === undefined ? 0 : Buffer.byteLength(text)
    if (text === undefined || (pieces.rest.length === 0 && bytes <= left)) {
      left -= bytes
      pieces.blocks.push(join(block.parts()))
      continue
    }
    const end = pieces.rest.length === 0 && left >= 4 && block.text('type') === 'text' ? cutAt(text, 0, left) : 0
    if (end > 0) {
      block.set('text', JSON.stringify(text.slice(0, end)))
      pieces.blocks.push(join(block.parts()))
    }
    pieces.rest.push(text.slice(end))
  }
  return pieces
}

/** Adds structured content that no text block repeats, as text. */
const addStructure = ({ blocks, rest }: Pieces, structured: string, maxBytes: number): void => {
  const end = blocks.length === 0 && rest.length === 0 ? cutAt(structured, 0, maxBytes) : 0
  if (end > 0) blocks.push(blockOf({ type: 'text', text: structured.slice(0, end) }))
  rest.push(structured.slice(end))
}

const isCopy = (text: string, structured: Buffer): boolean =>
  attempt(() => canonical(Buffer.from(text)) === canonical(structured)) ?? false

/** The blocks after a cut text: a note for the model, and the link. */
const endOf = (rest: string, total: number, maxTokens: number, uri: string | undefined): Buffer[] => {
  const missing = `about ${tokensOf(rest)} of ${total} tokens`
  if (uri === undefined) return [blockOf({ type: 'text', text: `[The result is cut here: ${missing} are not shown.]` })]
  const text = `[The result goes on: ${missing} are not shown. Read the resource ${uri} for what follows; it is kept for a while.]`
  const description = `What follows, in parts of about ${maxTokens} tokens; each says how to read on.`
  const link = {
    type: 'resource_link',
    uri,
    name: 'rest-of-result',
    title: 'Rest of the result',
    description,
    mimeType: 'text/plain',
  }
  return [blockOf({ type: 'text', text }), blockOf(link)]
}

const blockOf = (block: object): Buffer => Buffer.from(JSON.stringify(block))
