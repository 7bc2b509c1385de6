/** All tools that can be listed to hosts: cost, statistics, and hosts that would reject them. */
import type { JSX } from 'preact'
import { useMemo, useRef } from 'preact/hooks'
import type { HiddenTool } from '../../admin/catalog/hidden-tools.ts'
import type { Lint } from '../../admin/catalog/lint.ts'
import type { UnapprovedChange } from '../../admin/catalog/offered.ts'
import type { Stats, ToolStats } from '../../admin/calls/stats.ts'
import type { Status } from '../../admin/state/status.ts'
import type { ToolRow } from '../../admin/catalog/tools.ts'
import { formatAgo, formatCount, formatMs, formatPercent, plural } from '../model/format.ts'
import { namesBetween } from '../model/name-range.ts'
import { lineOf } from '../model/text.ts'
import { session } from '../page/api.ts'
import { useKeys } from '../page/keys.ts'
import type { Key } from '../page/keys.ts'
import { STORED_STATS, useLoad, useTools } from '../page/load.ts'
import { clearMarks, marks, setMarks } from '../page/marks.ts'
import { go, pathTo, route, selectBy, selectedNow, setQuery } from '../page/route.ts'
import { Button, Chip, Empty, Failed, Heading, Line, Section } from '../parts/basics.tsx'
import { SearchBox } from '../parts/search-box.tsx'
import { VirtualList } from '../parts/virtual-list.tsx'
import { MarkedTools } from './marked-tools.tsx'

export const HOSTS = ['claude-desktop', 'claude-code', 'cursor', 'vscode', 'windsurf', 'codex', 'gemini', 'copilot-cli']

interface Row extends ToolRow {
  readonly stats: ToolStats | undefined
  /** Names of hosts that would reject the tool unchanged. */
  readonly hosts: readonly string[]
  /** True if it differs from the approved definition. */
  readonly isChanged: boolean
  /** The rule that hides it from hosts; `undefined`: it is listed to them. */
  readonly off: HiddenTool | undefined
  /** Searchable text in lower case. */
  readonly words: string
}

/** Only this many characters of a description are searched. */
const MOST_SEARCHED = 10_000

const wordsOf = ({ name, server, original, definition }: ToolRow): string =>
  `${name} ${server} ${original} ${(definition.description ?? '').slice(0, MOST_SEARCHED)}`.toLowerCase()

const SORTS: Readonly<Record<string, (a: Row, b: Row) => number>> = {
  name: (a, b) => a.name.localeCompare(b.name),
  server: (a, b) => a.server.localeCompare(b.server) || a.name.localeCompare(b.name),
  tokens: (a, b) => b.tokens - a.tokens,
  calls: (a, b) => (b.stats?.calls ?? 0) - (a.stats?.calls ?? 0),
  p95: (a, b) => (b.stats?.p95 ?? -1) - (a.stats?.p95 ?? -1),
  errors: (a, b) => (b.stats?.errors ?? 0) - (a.stats?.errors ?? 0),
}

interface Hints {
  readonly annotations?: { readonly readOnlyHint?: unknown; readonly destructiveHint?: unknown }
}

/** Annotations of a tool; those of an untrusted server may be false. */
export const hintsOf = ({ definition }: Pick<ToolRow, 'definition'>): readonly string[] => {
  // Cast: a value that is not a hint is not shown.
  const { annotations } = definition as Hints
  return [annotations?.readOnlyHint === true ? 'reads' : '', annotations?.destructiveHint === true ? 'destructive' : ''].filter(
    Boolean,
  )
}

export const Catalog = (): JSX.Element => {
  const { query } = route.value
  const text = query.get('q') ?? ''
  const sort = query.get('sort') ?? 'server'
  const selected = query.get('sel') ?? ''
  const box = useRef<HTMLInputElement>(null)
  const tools = useTools()
  const stats = useLoad<Stats>(STORED_STATS, 5_000)
  const lint = useLoad<Lint>(`/lint?${HOSTS.map((host) => `host=${host}`).join('&')}`)
  const status = useLoad<Status>('/status', 10_000)
  const mayWrite = session.value?.write === true
  const hidden = useLoad<{ readonly tools: readonly HiddenTool[] }>('/hidden', 10_000)
  const changed = useLoad<readonly UnapprovedChange[]>('/changes', 10_000)
  const isOffShown = query.has('off')
  const rows = useMemo(() => {
    const byTool = new Map(stats.data?.tools.map((one) => [one.tool, one]))
    const byHost = Map.groupBy(
      lint.data?.findings.filter(({ tool, toolset }) => tool !== '' && toolset === '') ?? [],
      ({ tool }) => tool,
    )
    const deviating = new Set(changed.data?.filter(({ kind }) => kind === 'tools').map(({ exposed }) => exposed))
    return (tools.data?.tools ?? []).map((tool): Row => {
      const hosts = [...new Set(byHost.get(tool.name)?.map(({ host }) => host))]
      const isChanged = deviating.has(tool.name)
      return { ...tool, stats: byTool.get(tool.name), hosts, isChanged, off: undefined, words: wordsOf(tool) }
    })
  }, [tools.data, stats.data, lint.data, changed.data])
  const offRows = useMemo(
    () =>
      (hidden.data?.tools ?? []).map((off): Row => {
        const { name, description } = off
        const tool = { ...off, definition: { name, description } }
        return { ...tool, stats: undefined, hosts: [], isChanged: false, off, words: wordsOf(tool) }
      }),
    [hidden.data],
  )
  const shown = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean)
    const holds = (row: Row): boolean => words.every((word) => row.words.includes(word))
    return [...rows, ...(isOffShown ? offRows : [])].filter(holds).toSorted(SORTS[sort] ?? SORTS['server'])
  }, [rows, offRows, isOffShown, text, sort])
  const names = shown.map(({ name }) => name)
  const lastMarked = useRef('')
  /** `isRange`: also all tools between it and the previously marked one. */
  const mark = (name: string, isMarked: boolean, isRange: boolean): void => {
    setMarks(isRange ? namesBetween(names, lastMarked.current, name) : [name], isMarked)
    lastMarked.current = name
  }
  const markSelected = (isRange: boolean): void => {
    const name = selectedNow()
    if (name !== '') mark(name, isRange || !marks.peek().has(name), isRange)
  }
  const areAllMarked = shown.length > 0 && shown.every(({ name }) => marks.value.has(name))
  const markAll = (): void => setMarks(names, !areAllMarked)
  const markKeys: readonly Key[] = [
    { key: 'x', does: 'mark or unmark the tool', run: () => markSelected(false) },
    { key: 'X', does: 'mark all tools up to this one', run: () => markSelected(true) },
    { key: 'a', does: 'mark or unmark all shown tools', run: markAll },
  ]
  useKeys([
    { key: '/', does: 'search tools', run: () => box.current?.focus() },
    { key: 'j', does: 'next tool', run: () => selectBy(names, 1) },
    { key: 'k', does: 'previous tool', run: () => selectBy(names, -1) },
    { key: 'Enter', does: 'open the tool', run: () => selectedNow() !== '' && go(pathTo('tools', selectedNow())) },
    ...(mayWrite ? markKeys : []),
    {
      key: 'Escape',
      does: 'remove the marks, then the search text',
      run: () => (marks.peek().size > 0 ? clearMarks() : setQuery({ q: '', sel: '' })),
    },
  ])
  const marked = [...rows, ...offRows].filter(({ name }) => marks.value.has(name))
  const cells = useMemo(
    () => (row: Row) => cellsOf(row, mayWrite ? marks.value : undefined, mark),
    [shown, marks.value, mayWrite],
  )
  const tokens = rows.reduce((sum, row) => sum + row.tokens, 0)
  const idle = rows.filter((row) => row.stats === undefined)
  const leftOut = status.data?.servers.flatMap((server) => server.leftOut.map((one) => ({ ...one, server: server.key }))) ?? []
  const column = (name: string, key: string, className: string): JSX.Element => (
    <span
      role="columnheader"
      class={className}
      aria-sort={sort === key ? (key === 'name' || key === 'server' ? 'ascending' : 'descending') : 'none'}
    >
      <button type="button" class="sort" onClick={() => setQuery({ sort: key })}>
        {name}
        {sort === key && <span aria-hidden="true">{key === 'name' || key === 'server' ? ' ↑' : ' ↓'}</span>}
      </button>
    </span>
  )
  return (
    <div class="screen screen-full">
      <Heading title="Catalog">
        <span class="muted num" hidden={tools.isLoading}>
          {plural(rows.length, 'tool')}, about {formatCount(tokens)} tokens
          {stats.data !== undefined && idle.length > 0 && rows.length > 0 && (
            <>
              {' '}
              · {plural(idle.length, 'tool')} without a stored call: {formatCount(idle.reduce((sum, row) => sum + row.tokens, 0))}{' '}
              tokens
            </>
          )}
        </span>
      </Heading>
      <div class="filter-bar">
        <SearchBox
          box={box}
          label="Search names and descriptions"
          placeholder="Search names and descriptions"
          value={text}
          hasKey
          spellcheck={false}
        />
        {offRows.length > 0 && (
          <button type="button" class="choice" aria-pressed={isOffShown} onClick={() => setQuery({ off: isOffShown ? '' : '1' })}>
            Switched off ({formatCount(offRows.length)})
          </button>
        )}
        <p class="filter-problem muted" role="status">
          {!tools.isLoading && `${formatCount(shown.length)} of ${formatCount(rows.length + (isOffShown ? offRows.length : 0))}`}
        </p>
      </div>
      {mayWrite && marked.length > 0 && (
        <MarkedTools
          tools={marked}
          onDone={() => {
            tools.reload()
            hidden.reload()
          }}
        />
      )}
      {tools.error !== undefined && <Failed error={tools.error} onRetry={tools.reload} />}
      <VirtualList
        items={shown}
        keyOf={({ name }) => name}
        label="Tools"
        className={mayWrite ? 'tools tools-marked' : 'tools'}
        header={[
          ...(mayWrite
            ? [
                <span key="mark" role="columnheader" class="c-mark">
                  <label class="mark-box">
                    <input
                      type="checkbox"
                      checked={areAllMarked}
                      indeterminate={!areAllMarked && marks.value.size > 0}
                      aria-label="Mark all shown tools"
                      onClick={markAll}
                    />
                  </label>
                </span>,
              ]
            : []),
          column('Tool', 'name', 'c-tool'),
          column('Server', 'server', 'c-server'),
          column('Tokens', 'tokens', 'num'),
          column('Calls', 'calls', 'num'),
          column('p95', 'p95', 'num c-wide'),
          column('Errors', 'errors', 'num c-wide'),
          <span key="last" role="columnheader" class="c-wide num">
            Last
          </span>,
          <span key="notes" role="columnheader" class="c-notes">
            Notes
          </span>,
        ]}
        cells={cells}
        rowClass={({ off }) => (off === undefined ? '' : 'row-off')}
        selected={selected}
        onSelect={(key) => setQuery({ sel: key }, { replace: true })}
        onOpen={({ name }) => go(pathTo('tools', name))}
        empty={<NoTools isLoading={tools.isLoading} isFiltered={text !== ''} />}
      />
      {leftOut.length > 0 && (
        <details class="left-out">
          <summary>{plural(leftOut.length, 'entry', 'entries')} left out</summary>
          <Section title="Left out">
            <ul class="rows">
              {leftOut.map(({ server, kind, name, reason }) => (
                <li key={`${server} ${kind} ${name}`}>
                  <code>
                    <Line text={name} most={80} />
                  </code>{' '}
                  <span class="muted">
                    {kind} of {server}
                  </span>{' '}
                  <Line text={reason} />
                </li>
              ))}
            </ul>
          </Section>
        </details>
      )}
    </div>
  )
}

/** `marked`: `undefined`: the page is read-only. */
const cellsOf = (
  row: Row,
  marked: ReadonlySet<string> | undefined,
  mark: (name: string, isMarked: boolean, isRange: boolean) => void,
): JSX.Element[] => {
  const { name, server, original, tokens, definition, stats, hosts, off, isChanged } = row
  return [
    ...(marked === undefined
      ? []
      : [
          <span key="mark" role="gridcell" class="c-mark">
            <label class="mark-box">
              <input
                type="checkbox"
                tabIndex={-1}
                checked={marked.has(name)}
                aria-label={`Mark ${name}`}
                onClick={(event) => mark(name, event.currentTarget.checked, event.shiftKey)}
              />
            </label>
          </span>,
        ]),
    <span key="tool" role="gridcell" class="c-tool">
      <span class="call-name">
        <Line text={name} most={100} />
      </span>
      {isRenamed(row) && (
        <span class="muted c-original">
          <Line text={original} most={60} />{' '}
        </span>
      )}
      <span class="muted">
        <Line text={definition.description ?? ''} most={200} />
      </span>
    </span>,
    <span key="server" role="gridcell" class="c-server muted" title={lineOf(original, 200)}>
      {server}
    </span>,
    <span key="tokens" role="gridcell" class="num">
      {formatCount(tokens)}
    </span>,
    <span key="calls" role="gridcell" class="num">
      {stats === undefined ? '' : formatCount(stats.calls)}
    </span>,
    <span key="p95" role="gridcell" class="num c-wide">
      {stats?.p95 === null || stats === undefined ? '' : formatMs(stats.p95)}
    </span>,
    <span key="errors" role="gridcell" class={`num c-wide${(stats?.errors ?? 0) > 0 ? ' trouble' : ''}`}>
      {stats === undefined || stats.errors === 0
        ? ''
        : `${formatCount(stats.errors)} (${formatPercent(stats.errors / stats.calls)})`}
    </span>,
    <span key="last" role="gridcell" class="c-wide muted num">
      {stats === undefined ? '' : formatAgo(stats.lastAt, Date.now())}
    </span>,
    <span key="notes" role="gridcell" class="c-notes">
      {off !== undefined && <Chip title={`${off.path} ${off.place}`}>off</Chip>}
      {isChanged && (
        <Chip tone="notice" title="its definition differs from the approved one">
          changed
        </Chip>
      )}
      {hintsOf(row).map((hint) => (
        <Chip key={hint} tone={hint === 'destructive' ? 'notice' : 'plain'}>
          {hint}
        </Chip>
      ))}
      {hosts.map((host) => (
        <Chip key={host} tone="notice" title={`${host} does not accept it unchanged`}>
          {host}
        </Chip>
      ))}
    </span>,
  ]
}

/** True unless the exposed name is the original name, with or without a prefix. */
const isRenamed = ({ name, original }: Row): boolean => !name.endsWith(`__${original}`) && name !== original

const NoTools = ({ isLoading, isFiltered }: { readonly isLoading: boolean; readonly isFiltered: boolean }): JSX.Element =>
  isLoading ? (
    <p class="muted pad">Loading …</p>
  ) : isFiltered ? (
    <Empty title="No tool matches">
      <Button onClick={() => setQuery({ q: '' })}>Show all tools</Button>
    </Empty>
  ) : (
    <Empty title="No server offers a tool yet">
      <p>
        Tools appear here when a server has listed them. The page <a href="/servers">Servers</a> shows the state of each server.
      </p>
    </Empty>
  )
