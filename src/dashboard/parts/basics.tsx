/** Small components that all screens share. */
import type { ButtonHTMLAttributes, ComponentChildren, JSX, RefObject } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { formatMs, formatPercent } from '../model/format.ts'
import { blockOf, lineOf } from '../model/text.ts'
import { copy } from '../page/notices.ts'
import type { ApiError } from '../page/api.ts'
import type { TimeSplit } from '../../observe/capture/captured.ts'

/** A text of a server or a host on one line, with an isolated text direction. */
export const Line = ({ text, most }: { readonly text: string; readonly most?: number }): JSX.Element => (
  <bdi>{lineOf(text, most)}</bdi>
)

/** The same on several lines. */
export const Block = ({ text, className = '' }: { readonly text: string; readonly className?: string }): JSX.Element => (
  <pre class={`block ${className}`} tabIndex={0}>
    <bdi>{blockOf(text)}</bdi>
  </pre>
)

/** The length of the bar in a row: logarithmic, from 0.1 ms to ten seconds, so that slow calls are visible. */
const lengthOf = (totalMs: number): number => Math.min(1, Math.max(0.08, (Math.log10(Math.max(totalMs, 0.1)) + 1) / 5))

/** Host, Trunkline, server: how the time of a call is divided. In a row its length is the time; `isWide`: it fills the line. */
export const SplitBar = ({ ms, isWide = false }: { readonly ms: TimeSplit; readonly isWide?: boolean }): JSX.Element => {
  const parts = [
    { name: 'host', ms: ms.host },
    { name: 'gateway', ms: ms.gateway },
    { name: 'server', ms: ms.downstream },
  ]
  const total = Math.max(ms.total, 0.001)
  const label = `host ${formatMs(ms.host)}, Trunkline ${formatMs(ms.gateway)}, server ${formatMs(ms.downstream)}`
  return (
    <span
      class={isWide ? 'split split-wide' : 'split'}
      role="img"
      aria-label={label}
      title={label}
      style={isWide ? {} : { width: `${lengthOf(ms.total) * 100}%` }}
    >
      {parts.map(({ name, ms: part }) => (
        <span key={name} class={`split-${name}`} style={{ flexGrow: part / total }} />
      ))}
    </span>
  )
}

/** The three parts in words and figures, below the bar. */
export const SplitLegend = ({ ms }: { readonly ms: TimeSplit }): JSX.Element => (
  <dl class="split-legend">
    {(
      [
        ['host', 'Host', ms.host],
        ['gateway', 'Trunkline', ms.gateway],
        ['server', 'Server', ms.downstream],
      ] as const
    ).map(([name, label, part]) => (
      <div key={name}>
        <dt>
          <span class={`swatch split-${name}`} /> {label}
        </dt>
        <dd>
          <strong>{formatMs(part)}</strong> <span class="muted">{formatPercent(ms.total === 0 ? 0 : part / ms.total)}</span>
        </dd>
      </div>
    ))}
  </dl>
)

export const Chip = ({
  children,
  tone = 'plain',
  title,
}: {
  readonly children: ComponentChildren
  readonly tone?: string
  readonly title?: string
}): JSX.Element => (
  <span class={`chip chip-${tone}`} title={title}>
    {children}
  </span>
)

export const Button = ({
  tone,
  ...attributes
}: ButtonHTMLAttributes & { readonly tone?: 'accent' | 'trouble' | 'small' }): JSX.Element => (
  <button type="button" class={tone === undefined ? 'button' : `button button-${tone}`} {...attributes} />
)

export const CopyButton = ({
  text,
  what,
  label = 'Copy',
}: {
  readonly text: string
  readonly what: string
  readonly label?: string
}): JSX.Element => (
  <Button tone="small" onClick={() => void copy(text, what)}>
    {label}
  </Button>
)

/** Placeholder of an empty screen: what it shows, and how to get content. */
export const Empty = ({ title, children }: { readonly title: string; readonly children?: ComponentChildren }): JSX.Element => (
  <div class="empty">
    <h2>{title}</h2>
    {children}
  </div>
)

export const Failed = ({ error, onRetry }: { readonly error: ApiError; readonly onRetry?: () => void }): JSX.Element => (
  <div class="banner banner-trouble" role="alert">
    <span>
      <Line text={error.message} />
    </span>
    {onRetry !== undefined && (
      <Button tone="small" onClick={onRetry}>
        Try again
      </Button>
    )}
  </div>
)

/** A message above or below the part that it is about. */
export const Banner = ({
  text,
  tone = 'trouble',
}: {
  readonly text: string
  readonly tone?: 'trouble' | 'notice'
}): JSX.Element => (
  <p class={`banner banner-${tone}`} role="alert">
    <Line text={text} />
  </p>
)

/** `figures`: the heading of a last column with figures. */
export const Table = ({
  columns,
  figures,
  children,
}: {
  readonly columns: readonly string[]
  readonly figures?: string
  readonly children: ComponentChildren
}): JSX.Element => (
  <table class="table">
    <thead>
      <tr>
        {columns.map((name) => (
          <th key={name} scope="col">
            {name}
          </th>
        ))}
        {figures !== undefined && (
          <th scope="col" class="num">
            {figures}
          </th>
        )}
      </tr>
    </thead>
    <tbody>{children}</tbody>
  </table>
)

/** A field for one line of text. `focus`: receives the element. */
export const TextField = ({
  label,
  value,
  onEnter,
  hint,
  problem,
  focus,
  ...input
}: {
  readonly label: string
  readonly value: string
  readonly onEnter: (value: string) => void
  readonly hint?: string
  readonly problem?: string | false
  readonly focus?: RefObject<HTMLInputElement | null>
  readonly placeholder?: string
  readonly inputMode?: 'numeric'
  readonly spellcheck?: boolean
  readonly autocomplete?: 'off'
}): JSX.Element => (
  <label class="field">
    <span class="field-label">{label}</span>
    <input
      {...input}
      {...(focus !== undefined && { ref: focus })}
      {...(problem !== undefined && { 'aria-invalid': problem !== false })}
      type="text"
      value={value}
      onInput={(event) => onEnter(event.currentTarget.value)}
    />
    {problem !== undefined && problem !== false && <span class="field-problem">{problem}</span>}
    {hint !== undefined && <span class="field-hint">{hint}</span>}
  </label>
)

export const Command = ({ text }: { readonly text: string }): JSX.Element => (
  <div class="command">
    <code tabIndex={0}>{text}</code>
    <CopyButton text={text} what="the command" />
  </div>
)

/** A dialog that takes the focus and restores it when it closes. */
export const Dialog = ({
  title,
  onClose,
  children,
}: {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}): JSX.Element => {
  const element = useRef<HTMLDialogElement>(null)
  /** The mouse button was pressed beside the dialog: a selection that only ends there does not close it. */
  const isBeside = useRef(false)
  useEffect(() => {
    const before = document.activeElement
    element.current?.showModal()
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={element}
      class="dialog"
      aria-label={title}
      onClose={onClose}
      onMouseDown={(event) => (isBeside.current = event.target === element.current)}
      onClick={(event) => isBeside.current && event.target === element.current && onClose()}
    >
      <div class="dialog-body">
        <header>
          <h2>{title}</h2>
          <Button tone="small" onClick={onClose}>
            Close
          </Button>
        </header>
        {children}
      </div>
    </dialog>
  )
}

/** One name and its value, in a list of them. */
export const Facts = ({
  facts,
}: {
  readonly facts: readonly (readonly [name: string, value: ComponentChildren])[]
}): JSX.Element => (
  <dl class="facts">
    {facts
      .filter(([, value]) => value !== null && value !== undefined && value !== '')
      .map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
)

/** The heading of a screen, with the controls of the whole screen. */
export const Heading = ({
  title,
  children,
}: {
  readonly title: ComponentChildren
  readonly children?: ComponentChildren
}): JSX.Element => (
  <header class="heading">
    <h1>{title}</h1>
    <div class="heading-tools">{children}</div>
  </header>
)

export const Section = ({
  title,
  id,
  tools,
  children,
}: {
  readonly title: string
  readonly id?: string
  readonly tools?: ComponentChildren
  readonly children: ComponentChildren
}): JSX.Element => (
  <section class="section" id={id} aria-label={title}>
    <header class="section-head">
      <h2>{title}</h2>
      {tools !== undefined && <div class="section-tools">{tools}</div>}
    </header>
    {children}
  </section>
)
