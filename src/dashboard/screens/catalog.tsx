/** Every tool that hosts can be listed: what it costs, how it fares, which host would not take it. */
import type { JSX } from 'preact'
import { useMemo, useRef } from 'preact/hooks'
import type { Lint } from '../../admin/catalog/lint.ts'
import type { Stats, ToolStats } from '../../admin/calls/stats.ts'
import type { Status } from '../../admin/state/status.ts'
import type { ToolRow } from '../../admin/catalog/tools.ts'
import { formatAgo, formatCount, formatMs, plural } from '../model/format.ts'
import { useKeys } from '../page/keys.ts'
import { useLoad } from '../page/load.ts'
import { go, pathTo, route, selectedNow, setQuery } from '../page/route.ts'
import { Chip, Empty, Failed, Heading, Line, Section } from '../parts/basics.tsx'
import { Icon } from '../parts/icons.tsx'
import { VirtualList } from '../parts/virtual-list.tsx'

export const HOSTS = ['claude-desktop', 'claude-code', 'cursor', 'vscode', 'windsurf', 'codex', 'gemini', 'copilot-cli']
const WINDOW = '1h'

interface Row extends ToolRow {
  readonly stats: ToolStats | undefined
  /** Names of hosts that would not take it as it is. */
  readonly hosts: readonly string[]
}

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

/** What a tool says of itself; an untrusted server may say anything. */
export const hintsOf = ({ definition }: Pick<ToolRow, 'definition'>): readonly string[] => {
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
  const tools = useLoad<{ readonly tools: readonly ToolRow[] }>('/tools', 10_000)
  const stats = useLoad<Stats>(`/stats?window=${WINDOW}`, 5_000)
  const lint = useLoad<Lint>(`/lint?${HOSTS.map((host) => `host=${host}`).join('&')}`)
  const status = useLoad<Status>('/status', 10_000)
  const rows = useMemo(() => {
    const byTool = new Map(stats.data?.tools.map((one) => [one.tool, one]))
    const byHost = Map.groupBy(
      lint.data?.findings.filter(({ tool, toolset }) => tool !== '' && toolset === '') ?? [],
      ({ tool }) => tool,
    )
    return (tools.data?.tools ?? []).map((tool): Row => {
      const hosts = [...new Set(byHost.get(tool.name)?.map(({ host }) => host))]
      return { ...tool, stats: byTool.get(tool.name), hosts }
    })
  }, [tools.data, stats.data, lint.data])
  const shown = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean)
    const holds = ({ name, server, original, definition }: Row): boolean => {
      const all = `${name} ${server} ${original} ${definition.description ?? ''}`.toLowerCase()
      return words.every((word) => all.includes(word))
    }
    return rows.filter(holds).toSorted(SORTS[sort] ?? SORTS['server'])
  }, [rows, text, sort])
  const step = (by: number): void => {
    const now = shown.findIndex(({ name }) => name === selectedNow())
    const next = shown[Math.min(Math.max(now + by, 0), shown.length - 1)]
    if (next !== undefined) setQuery({ sel: next.name })
  }
  useKeys([
    { key: '/', does: 'look for tools', run: () => box.current?.focus() },
    { key: 'j', does: 'next tool', run: () => step(1) },
    { key: 'k', does: 'tool before', run: () => step(-1) },
    { key: 'Enter', does: 'open the tool', run: () => selectedNow() !== '' && go(pathTo('tools', selectedNow())) },
    { key: 'Escape', does: 'take the words away', run: () => setQuery({ q: '', sel: '' }) },
  ])
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
        <span class="muted num">
          {plural(rows.length, 'tool')}, about {formatCount(tokens)} tokens
          {stats.data !== undefined && idle.length > 0 && rows.length > 0 && (
            <>
              {' '}
              · {plural(idle.length, 'tool')} without a call in the last hour:{' '}
              {formatCount(idle.reduce((sum, row) => sum + row.tokens, 0))} tokens
            </>
          )}
        </span>
      </Heading>
      <div class="filter-bar">
        <label class="filter">
          <Icon name="search" />
          <span class="sr-only">Words in names and descriptions</span>
          <input
            ref={box}
            type="search"
            value={text}
            placeholder="Words in names and descriptions"
            spellcheck={false}
            onInput={(event) => setQuery({ q: event.currentTarget.value })}
          />
          <kbd aria-hidden="true">/</kbd>
        </label>
        <p class="filter-problem muted" role="status">
          {formatCount(shown.length)} of {formatCount(rows.length)}
        </p>
      </div>
      {tools.error !== undefined && <Failed error={tools.error} onRetry={tools.reload} />}
      <VirtualList
        items={shown}
        keyOf={({ name }) => name}
        label="Tools"
        className="tools"
        header={[
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
        cells={cellsOf}
        selected={selected}
        onSelect={(key) => setQuery({ sel: key })}
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

const cellsOf = (row: Row): JSX.Element[] => {
  const { name, server, original, tokens, definition, stats, hosts } = row
  return [
    <span key="tool" role="gridcell" class="c-tool">
      <span class="call-name">
        <Line text={name} most={100} />
      </span>
      <span class="muted">
        <Line text={definition.description ?? ''} most={200} />
      </span>
    </span>,
    <span key="server" role="gridcell" class="c-server muted" title={original}>
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
      {stats === undefined || stats.errors === 0 ? '' : formatCount(stats.errors)}
    </span>,
    <span key="last" role="gridcell" class="c-wide muted num">
      {stats === undefined ? '' : formatAgo(stats.lastAt, Date.now())}
    </span>,
    <span key="notes" role="gridcell" class="c-notes">
      {hintsOf(row).map((hint) => (
        <Chip key={hint} tone={hint === 'destructive' ? 'notice' : 'plain'}>
          {hint}
        </Chip>
      ))}
      {hosts.map((host) => (
        <Chip key={host} tone="notice" title={`${host} does not take it as it is`}>
          {host}
        </Chip>
      ))}
    </span>,
  ]
}

const NoTools = ({ isLoading, isFiltered }: { readonly isLoading: boolean; readonly isFiltered: boolean }): JSX.Element =>
  isLoading ? (
    <p class="muted pad">Loading …</p>
  ) : isFiltered ? (
    <Empty title="No tool holds these words">
      <button type="button" class="button" onClick={() => setQuery({ q: '' })}>
        Show all tools
      </button>
    </Empty>
  ) : (
    <Empty title="No server offers a tool yet">
      <p>
        Tools appear here as soon as a server has told what it has. The <a href="/servers">servers</a> say what they wait for.
      </p>
    </Empty>
  )
