/** A message as received and as sent, side by side; each change names its rule. */
import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { KeptBody } from '../../observe/capture/body.ts'
import type { Change } from '../../observe/capture/diff.ts'
import { formatBytes } from '../model/format.ts'
import { indentJson } from '../../values/json-tree.ts'
import type { JsonLine } from '../../values/json-tree.ts'
import { leftOutOf, lineOf } from '../model/text.ts'
import { compareHops, foldLines, formatPath } from '../model/two-hops.ts'
import type { HopLine } from '../model/two-hops.ts'
import { Block, Button, Chip, CopyButton } from './basics.tsx'

interface Side {
  readonly title: string
  readonly body: KeptBody | undefined
  /** Shown where there is no body. */
  readonly absent?: string
}

export interface HopsViewProps {
  readonly from: Side
  readonly to: Side
  /** `null`: no body is kept completely. Means nothing if one of the two is not. */
  readonly changes: readonly Change[] | null
  /** Whether each change has a rule of Trunkline. */
  readonly hasRules?: boolean
}

/** Number of lines shown at first, and added on each request for more. */
const MOST_LINES = 600
/** Maximum number of listed changes. */
const MOST_CHANGES = 200

export const HopsView = ({ from, to, changes, hasRules = true }: HopsViewProps): JSX.Element => {
  const [isRaw, setRaw] = useState(false)
  const [before, after] = [from.body?.text, to.body?.text]
  const isCompared = changes !== null && before !== undefined && after !== undefined
  const lines = useMemo(() => (isCompared ? compareHops(before, after, changes) : undefined), [before, after, changes])
  return (
    <div class="hops">
      {isCompared && hasRules && <ChangeList changes={changes} />}
      {lines === undefined || isRaw ? (
        <div class="hops-raw">
          {[from, to].map((side) => (
            <Raw key={side.title} side={side} />
          ))}
        </div>
      ) : (
        <SideBySide lines={lines} from={from} to={to} />
      )}
      {lines !== undefined && (
        <Button tone="small" aria-pressed={isRaw} onClick={() => setRaw(!isRaw)}>
          {isRaw ? 'Side by side' : 'As sent'}
        </Button>
      )}
    </div>
  )
}

const ChangeList = ({ changes }: { readonly changes: readonly Change[] }): JSX.Element =>
  changes.length === 0 ? (
    <p class="muted">Both sides are the same, byte for byte.</p>
  ) : (
    <ul class="changes">
      {changes.slice(0, MOST_CHANGES).map((change) => (
        <li key={formatPath(change.path)}>
          <span class={`sign sign-${change.change}`} aria-label={change.change}>
            {SIGNS[change.change]}
          </span>
          <code class="change-path">{lineOf(formatPath(change.path), 120)}</code>
          <span class="change-values">
            {change.from !== null && <code class="was">{lineOf(change.from, 160)}</code>}
            {change.from !== null && change.to !== null && <span aria-label="became"> → </span>}
            {change.to !== null && <code class="is">{lineOf(change.to, 160)}</code>}
          </span>
          <span class="change-why">
            <Chip>{change.rule === '' ? 'no rule' : change.rule}</Chip>{' '}
            {change.why || 'no rule explains this change: please report it'}
          </span>
        </li>
      ))}
      {changes.length > MOST_CHANGES && <li class="muted">{leftOutOf(changes.length - MOST_CHANGES, 'changes')}</li>}
    </ul>
  )

const SIGNS = { added: '+', removed: '−', replaced: '~' } as const

const SideBySide = ({
  lines,
  from,
  to,
}: {
  readonly lines: readonly HopLine[]
  readonly from: Side
  readonly to: Side
}): JSX.Element => {
  const [isWhole, setWhole] = useState(false)
  const [most, setMost] = useState(MOST_LINES)
  const shown = useMemo(() => (isWhole ? lines : foldLines(lines)), [lines, isWhole])
  return (
    <div class="beside" role="table" aria-label="Both sides">
      <div class="beside-row beside-head" role="row">
        <span role="columnheader">
          {from.title} <span class="muted">{sizeOf(from.body)}</span>
        </span>
        <span role="columnheader">
          {to.title} <span class="muted">{sizeOf(to.body)}</span>
        </span>
      </div>
      {shown.slice(0, most).map((line, at) =>
        'folded' in line ? (
          <div key={at} class="beside-fold" role="row">
            <span role="cell">
              <button type="button" onClick={() => setWhole(true)}>
                {line.folded.length} lines that are the same
              </button>
            </span>
          </div>
        ) : (
          <div
            key={at}
            class={`beside-row${line.change === undefined ? '' : ` beside-${line.change.change}`}`}
            role="row"
            title={line.change?.why}
          >
            <Half line={line.from} />
            <Half line={line.to} />
          </div>
        ),
      )}
      {shown.length > most && (
        <div class="beside-fold" role="row">
          <span role="cell">
            <button type="button" onClick={() => setMost(most + MOST_LINES)}>
              {leftOutOf(shown.length - most, 'lines')}: show the next {Math.min(MOST_LINES, shown.length - most)}
            </button>
          </span>
        </div>
      )}
    </div>
  )
}

const Half = ({ line }: { readonly line: JsonLine | undefined }): JSX.Element => (
  <code role="cell" class={line === undefined ? 'half half-none' : 'half'}>
    {line !== undefined && `${'  '.repeat(Math.min(line.depth, 24))}${lineOf(line.text, 2_000)}`}
  </code>
)

const Raw = ({ side }: { readonly side: Side }): JSX.Element => {
  const text = useMemo(() => textOf(side.body), [side.body])
  return (
    <figure class="raw">
      <figcaption>
        {side.title} <span class="muted">{sizeOf(side.body)}</span>
        {text !== undefined && <CopyButton text={side.body?.text ?? text} what={side.title.toLowerCase()} />}
      </figcaption>
      {text === undefined ? <p class="muted">{side.absent ?? 'Not kept.'}</p> : <Block text={text} />}
    </figure>
  )
}

/** A body for display: indented, or its beginning and end with the omission marked. */
const textOf = (body: KeptBody | undefined): string | undefined => {
  if (body === undefined) return undefined
  if (body.text !== undefined) return indentJson(body.text)
  return `${body.head ?? ''}\n\n… ${formatBytes(body.omitted ?? 0)} omitted (ui.capture.body) …\n\n${body.tail ?? ''}`
}

const sizeOf = (body: KeptBody | undefined): string => (body === undefined ? '' : formatBytes(body.bytes))
