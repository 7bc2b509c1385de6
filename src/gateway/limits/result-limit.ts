/**
 * A tool's result with no more text than was configured. What counts is text: of text blocks, of embedded resources, and structured
 * content; images and sound pass. A result that fits passes as it came, and costs two look-ups.
 */
import type { ResultLimit } from '../../catalog/curation.ts'
import { estimateTokens } from '../../catalog/tokens.ts'
import { canonical } from '../../wire/message/canonical.ts'
import { elementsAt } from '../../wire/message/members.ts'
import { join, Payload } from '../../wire/message/payload.ts'
import type { Parts } from '../../wire/message/payload.ts'

const BYTES_PER_TOKEN = 4

/** What a text costs a model, roughly. */
export const tokensOf = (text: string): number => estimateTokens(Buffer.from(text))

/** Keeps what does not fit and answers with its URI; `undefined`: it could not be kept. */
export type Keep = (text: string, partBytes: number) => string | undefined

/** The same object where it fits. `keep` is asked only for `overflow: resource`. */
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
  // URIs may have been replaced inside the blocks: what is read from here on is what the host would see.
  const settled = Payload.at(join(result.parts()))
  const pieces = piecesOf(settled, maxBytes)
  if (isStructureLong) {
    settled.delete('structuredContent')
    if (!texts.some((text) => isCopy(text, structured))) addStructure(pieces, structured.toString(), maxBytes)
  }
  const rest = pieces.rest.join('\n\n')
  const uri = rest !== '' && overflow === 'resource' ? keep(rest, maxBytes) : undefined
  const end = rest === '' ? [] : endOf(rest, total, maxTokens, uri)
  settled.set('content', listOf([...pieces.blocks, ...end]))
  // Joined, since the encoding for the host's revision reads the payload as it is now.
  return Payload.at(join(settled.parts()))
}

/**
 * Where a part that begins at `from` ends: at most `maxBytes` of UTF-8 further, behind a line's end if one is near, never inside a
 * character. `maxBytes` of at least 4.
 */
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

/** What of a result stays, block by block, and the texts that do not. */
interface Pieces {
  readonly blocks: Parts[]
  readonly rest: string[]
}

const textOf = (block: Payload): string | undefined => {
  const type = block.text('type')
  return type === 'text' ? block.text('text') : type === 'resource' ? block.object('resource')?.text('text') : undefined
}

/** Once a text does not fit, all that follow it do not. */
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
      pieces.blocks.push(block.parts())
      continue
    }
    const end = pieces.rest.length === 0 && left >= 4 && block.text('type') === 'text' ? cutAt(text, 0, left) : 0
    if (end > 0) {
      block.set('text', JSON.stringify(text.slice(0, end)))
      pieces.blocks.push(block.parts())
    }
    pieces.rest.push(text.slice(end))
  }
  return pieces
}

/** Structured content that no text repeats is itself the text. */
const addStructure = ({ blocks, rest }: Pieces, structured: string, maxBytes: number): void => {
  const end = blocks.length === 0 && rest.length === 0 ? cutAt(structured, 0, maxBytes) : 0
  if (end > 0) blocks.push([Buffer.from(JSON.stringify({ type: 'text', text: structured.slice(0, end) }))])
  rest.push(structured.slice(end))
}

const isCopy = (text: string, structured: Buffer): boolean => {
  try {
    return canonical(Buffer.from(text)) === canonical(structured)
  } catch {
    return false
  }
}

/** What stands behind a text that was cut: words for the model, and the link. */
const endOf = (rest: string, total: number, maxTokens: number, uri: string | undefined): Parts[] => {
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

const blockOf = (block: object): Parts => [Buffer.from(JSON.stringify(block))]

const listOf = (blocks: readonly Parts[]): Parts => [
  Buffer.from('['),
  ...blocks.flatMap((block, at) => (at === 0 ? block : [Buffer.from(','), ...block])),
  Buffer.from(']'),
]
