/** Result of a call from the dashboard: texts as texts, everything else as JSON. */
import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import { indentJson, memberIn, readJson, unquote, writeJson } from '../../values/json-tree.ts'
import type { JsonNode } from '../../values/json-tree.ts'
import { formatBytes } from '../model/format.ts'
import { leftOutOf } from '../model/text.ts'
import { Block, Line } from './basics.tsx'

const textOf = (node: JsonNode | undefined): string | undefined =>
  node?.kind === 'literal' && node.raw.startsWith('"') ? unquote(node.raw) : undefined

/** Maximum number of shown content blocks. */
const MOST_BLOCKS = 50

/** Formats that every browser draws, and that contain no program. */
const PICTURES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

const pictureOf = (item: JsonNode): { readonly url: string; readonly type: string; readonly bytes: number } | undefined => {
  const [kind, type, data] = ['type', 'mimeType', 'data'].map((name) => textOf(memberIn(item, name)))
  if (kind !== 'image' || type === undefined || data === undefined || !PICTURES.has(type) || !BASE64.test(data)) return undefined
  return { url: `data:${type};base64,${data}`, type, bytes: bytesOf(data) }
}

const bytesOf = (base64: string): number => {
  const end = base64.indexOf('=')
  return Math.floor(((end === -1 ? base64.length : end) * 3) / 4)
}

/** Base64 up to this length is shown. */
const MOST_BASE64 = 200

/** The block with the sizes of its sounds and files in place of their bytes, which tell nothing. */
const withoutBytes = (node: JsonNode, name = ''): JsonNode => {
  if (node.kind === 'object')
    return { ...node, members: node.members.map(([key, value]) => [key, withoutBytes(value, key)] as const) }
  const text = name === 'data' || name === 'blob' ? textOf(node) : undefined
  if (text === undefined || text.length <= MOST_BASE64 || !BASE64.test(text)) return node
  return { kind: 'literal', raw: JSON.stringify(`… ${formatBytes(bytesOf(text))} in base64 …`) }
}

/** `text`: the answer of `/call` or `/replay`. */
export const ResultView = ({ text }: { readonly text: string }): JSX.Element => {
  const answer = useMemo(() => readJson(text), [text])
  const kind = textOf(memberIn(answer, 'kind'))
  if (kind !== 'result')
    return (
      <div class="banner banner-trouble" role="alert">
        <strong>{kind ?? 'failed'}</strong> <Line text={textOf(memberIn(answer, 'message')) ?? ''} />
      </div>
    )
  const result = memberIn(answer, 'result')
  const content = memberIn(result, 'content')
  const isError = writeJson(memberIn(answer, 'isError') ?? { kind: 'literal', raw: 'false' }) === 'true'
  const structured = memberIn(result, 'structuredContent')
  return (
    <div class="result" role="status">
      <p class={isError ? 'trouble' : 'muted'}>{isError ? 'The tool reported an error.' : 'The tool answered.'}</p>
      {content?.kind === 'array' &&
        content.items.slice(0, MOST_BLOCKS).map((item, at) => {
          const words = textOf(memberIn(item, 'type')) === 'text' ? textOf(memberIn(item, 'text')) : undefined
          const picture = pictureOf(item)
          return picture === undefined ? (
            <Block key={at} text={words ?? indentJson(writeJson(withoutBytes(item)))} />
          ) : (
            <figure key={at} class="picture">
              <img src={picture.url} alt={`Picture ${at + 1} of the answer`} />
              <figcaption>
                {picture.type}, {formatBytes(picture.bytes)}
              </figcaption>
            </figure>
          )
        })}
      {content?.kind === 'array' && content.items.length > MOST_BLOCKS && (
        <p class="muted">{leftOutOf(content.items.length - MOST_BLOCKS, 'blocks')}</p>
      )}
      {structured !== undefined && (
        <details>
          <summary>Structured content</summary>
          <Block text={indentJson(writeJson(structured))} />
        </details>
      )}
      {content === undefined && result !== undefined && <Block text={indentJson(writeJson(result))} />}
    </div>
  )
}
