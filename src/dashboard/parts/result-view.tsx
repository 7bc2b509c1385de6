/** Result of a call from the dashboard: texts as texts, everything else as JSON. */
import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import { indentJson, memberIn, readJson, unquote, writeJson } from '../../values/json-tree.ts'
import type { JsonNode } from '../../values/json-tree.ts'
import { leftOutOf } from '../model/text.ts'
import { Block, Line } from './basics.tsx'

const textOf = (node: JsonNode | undefined): string | undefined =>
  node?.kind === 'literal' && node.raw.startsWith('"') ? unquote(node.raw) : undefined

/** Maximum number of shown content blocks. */
const MOST_BLOCKS = 50

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
          return <Block key={at} text={words ?? indentJson(writeJson(item))} />
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
