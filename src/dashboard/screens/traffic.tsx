/** The first screen: all calls, live, with the filter language of `trunkline tail`. */
import type { JSX } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { parseFilter } from '../../observe/filter.ts'
import { isGap } from '../model/call-list.ts'
import type { ListItem } from '../model/call-list.ts'
import { formatBytes, formatCount, formatMs, formatTime } from '../model/format.ts'
import { ApiError, session } from '../page/api.ts'
import { commandOf } from '../page/command.ts'
import { calls, callsVersion, feedProblem, feedState, loadOlder, loadPage } from '../page/feed.ts'
import { useKeys } from '../page/keys.ts'
import { go, pathTo, route, selectBy, selectedNow, setQuery } from '../page/route.ts'
import { Button, Command, Empty, Heading, Line, SplitBar } from '../parts/basics.tsx'
import { Icon } from '../parts/icons.tsx'
import { SearchBox } from '../parts/search-box.tsx'
import { isTrouble, Outcome } from '../parts/outcome.tsx'
import { VirtualList } from '../parts/virtual-list.tsx'

const CHOICES = [
  { term: 'err', label: 'Errors' },
  { term: '>1s', label: 'Slow' },
  { term: 'open', label: 'Open' },
] as const

/** Delay of the search in kept calls after the last key press. */
const SEARCH_MS = 250

/** The calls that match the filter in the address, newest first; also used by the call screen to step through them. */
export const selectCalls = (text: string, untilId = Infinity): { readonly items: ListItem[]; readonly problem: string } => {
  const end = parseFilter(text)
  if (text.trim() === '') return { items: calls.all(untilId), problem: '' }
  if ('problem' in end) return { items: calls.all(untilId), problem: `${end.problem.message} (at ${end.problem.at + 1})` }
  const nowMs = Date.now()
  return { items: calls.matching((row) => end.filter(row, nowMs), untilId), problem: '' }
}

export const Traffic = (): JSX.Element => {
  const { query } = route.value
  const filter = query.get('q') ?? ''
  const selected = query.get('sel') ?? ''
  const until = Number(query.get('until') ?? 0) || Infinity
  const isPaused = until !== Infinity
  const pinned = (query.get('pin') ?? '').split(',').filter((id) => /^\d+$/.test(id))
  const version = callsVersion.value
  const box = useRef<HTMLInputElement>(null)
  const { items, problem } = useMemo(() => selectCalls(filter, until), [filter, until, version])
  const [refused, setRefused] = useState('')

  useEffect(() => {
    if (filter === '' || problem !== '') return undefined
    const timer = setTimeout(() => {
      loadPage(filter).then(
        () => setRefused(''),
        (error: unknown) => setRefused(error instanceof ApiError ? error.message : String(error)),
      )
    }, SEARCH_MS)
    return () => clearTimeout(timer)
  }, [filter, problem])

  const open = (id: string): void => go(pathTo('calls', id, filter === '' ? {} : { q: filter }))
  const togglePause = (): void => setQuery({ until: isPaused ? '' : String(calls.latest) }, { replace: true })
  const togglePin = (id: string): void =>
    setQuery({ pin: (pinned.includes(id) ? pinned.filter((one) => one !== id) : [...pinned, id]).join(',') }, { replace: true })
  const toggleTerm = (term: string): void => {
    const terms = filter.split(/\s+/).filter(Boolean)
    setQuery({ q: (terms.includes(term) ? terms.filter((one) => one !== term) : [...terms, term]).join(' ') })
  }
  const step = (by: number): void => {
    const ids = items.flatMap((item) => (isGap(item) ? [] : [String(item.id)]))
    selectBy(ids, by)
  }
  useKeys([
    { key: '/', does: 'filter', run: () => box.current?.focus() },
    { key: 'j', does: 'next call', run: () => step(1) },
    { key: 'k', does: 'previous call', run: () => step(-1) },
    { key: 'Enter', does: 'open the call', run: () => selectedNow() !== '' && open(selectedNow()) },
    { key: 'p', does: 'pin the call', run: () => selectedNow() !== '' && togglePin(selectedNow()) },
    { key: ' ', does: 'pause, continue', run: togglePause },
    { key: 'Escape', does: 'remove the filter', run: () => setQuery({ q: '', sel: '' }) },
  ])

  const waiting = isPaused ? calls.latest - until : 0
  const pins = pinned.flatMap((id) => calls.find(Number(id)) ?? [])
  return (
    <div class="screen screen-full">
      <Heading title="Traffic">
        <FeedState />
        <Button aria-pressed={isPaused} onClick={togglePause}>
          <Icon name={isPaused ? 'play' : 'pause'} />{' '}
          {isPaused ? (waiting > 0 ? `Continue (${formatCount(waiting)} new)` : 'Continue') : 'Pause'}
        </Button>
      </Heading>
      <div class="filter-bar">
        <SearchBox
          box={box}
          label="Filter"
          placeholder="tool:gh__* err >1s server:github since:10m"
          value={filter}
          hasKey
          spellcheck={false}
          problemId="filter-problem"
          isWrong={problem !== ''}
        />
        <div class="choices" role="group" aria-label="Often used filters">
          {CHOICES.map(({ term, label }) => (
            <button
              key={term}
              type="button"
              class="choice"
              aria-pressed={filter.split(/\s+/).includes(term)}
              onClick={() => toggleTerm(term)}
            >
              {label}
            </button>
          ))}
        </div>
        <p id="filter-problem" class={problem || refused ? 'filter-problem' : 'filter-problem muted'} role="status">
          {problem || refused || `${formatCount(items.length)} of ${formatCount(calls.size)}`}
        </p>
      </div>
      {pins.length > 0 && (
        <div class="pins" role="group" aria-label="Pinned calls">
          {pins.map((row) => (
            <div key={row.id} class="pin">
              <Icon name="pin" />
              <a href={pathTo('calls', String(row.id))}>
                <Line text={row.name ?? row.method} most={60} />
              </a>
              <Outcome row={row} />
              <SplitBar ms={row.ms} />
              <span class="num">{formatMs(row.ms.total)}</span>
              <Button tone="small" onClick={() => togglePin(String(row.id))}>
                Unpin
              </Button>
            </div>
          ))}
        </div>
      )}
      <VirtualList
        items={items}
        keyOf={keyOf}
        label="Calls"
        className="calls"
        header={HEADER}
        cells={cellsOf}
        rowClass={(item) => (isGap(item) ? 'row-gap' : isTrouble(item) ? 'row-trouble' : '')}
        selected={selected}
        onSelect={(key) => setQuery({ sel: key.startsWith('gap') ? '' : key }, { replace: true })}
        onOpen={(item) => !isGap(item) && open(String(item.id))}
        onEnd={() => void loadOlder(filter)}
        empty={<NoCalls filter={filter} />}
      />
    </div>
  )
}

const keyOf = (item: ListItem): string => (isGap(item) ? `gap-${item.afterId}` : String(item.id))

const column = (name: string, className: string): JSX.Element => (
  <span key={name} role="columnheader" class={className}>
    {name}
  </span>
)

const HEADER = [
  column('Time', 'c-time'),
  column('Status', 'c-status'),
  column('Call', 'c-call'),
  column('Host', 'c-host'),
  column('Time', 'c-split'),
  column('Total', 'c-ms num'),
  column('In', 'c-in num'),
  column('Out', 'c-out num'),
  column('Tokens', 'c-tokens num'),
]

const cellsOf = (item: ListItem): JSX.Element | JSX.Element[] => {
  if (isGap(item))
    return (
      <span role="gridcell" class="gap">
        {formatCount(item.missed)} rows were not sent, as this page took none; the filter looks them up
      </span>
    )
  const { at, name, method, server, original, host, toolset, ms, bytesIn, bytesOut, tokensOut, lanes, replayOf } = item
  return [
    <span key="time" role="gridcell" class="c-time muted">
      {formatTime(at)}
    </span>,
    <span key="status" role="gridcell" class="c-status">
      <Outcome row={item} />
    </span>,
    <span key="call" role="gridcell" class="c-call">
      <span class="call-name">
        <Line text={name ?? method} most={160} />
      </span>
      <span class="muted">
        {method !== 'tools/call' && name !== null && `${method} `}
        {server !== null && (
          <>
            →{' '}
            <Line
              text={original !== null && original !== name && method !== 'tools/call' ? `${server} ${original}` : server}
              most={80}
            />
          </>
        )}
        {lanes > 1 && ` · ${lanes} lanes`}
        {replayOf !== null && ` · replay of ${replayOf}`}
      </span>
      {item.error?.message !== null && item.error !== null && isTrouble(item) && (
        <span class="call-error">
          <Line text={item.error.message ?? ''} most={160} />
        </span>
      )}
    </span>,
    <span key="host" role="gridcell" class="c-host muted">
      <Line text={[host ?? 'dashboard or terminal', toolset ?? ''].filter(Boolean).join(' · ')} most={60} />
    </span>,
    <span key="split" role="gridcell" class="c-split">
      <SplitBar ms={ms} />
    </span>,
    <span key="ms" role="gridcell" class="c-ms num">
      {formatMs(ms.total)}
    </span>,
    <span key="in" role="gridcell" class="c-in num muted" title={`about ${formatCount(Math.ceil(bytesIn / 4))} tokens`}>
      {formatBytes(bytesIn)}
    </span>,
    <span key="out" role="gridcell" class="c-out num muted">
      {bytesOut === 0 ? '' : formatBytes(bytesOut)}
    </span>,
    <span key="tokens" role="gridcell" class="c-tokens num muted">
      {tokensOut === 0 ? '' : formatCount(tokensOut)}
    </span>,
  ]
}

const STATES = { connecting: 'Connecting', live: 'Live', lost: 'No connection' } as const

const FeedState = (): JSX.Element => (
  <span class={`feed feed-${feedState.value}`} role="status">
    <span class="feed-sign" aria-hidden="true" />
    {feedState.value === 'live' ? STATES.live : feedProblem.value || STATES[feedState.value]}
  </span>
)

const NoCalls = ({ filter }: { readonly filter: string }): JSX.Element =>
  filter === '' ? (
    <Empty title="No calls yet">
      <p>
        Each request of a host is a row: its outcome, and how its time is divided between the host, Trunkline and the server.
        Connect a host, or make a call in a terminal:
      </p>
      <Command text={commandOf('connect', 'claude-code')} />
      <Command text={commandOf('tools')} />
      {session.value?.role === 'operator' && (
        <p>
          Or try a tool from the <a href="/catalog">catalog</a>.
        </p>
      )}
    </Empty>
  ) : (
    <Empty title="No call matches">
      <p>
        <code>server:github</code> <code>tool:gh__*</code> <code>host:cursor</code> <code>err</code> <code>{'>1s'}</code>{' '}
        <code>downstream{'>'}1s</code> <code>out{'>'}1MiB</code> <code>since:10m</code> <code>-method:ping</code>
      </p>
      <p class="muted">
        Terms are separated by spaces. A call must match all of them. trunkline&nbsp;tail uses the same language.
      </p>
      <Button onClick={() => setQuery({ q: '' })}>Show all calls</Button>
    </Empty>
  )
