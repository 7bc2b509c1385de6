/** One call: why it was slow or failed, its timing, the changes on both hops, and replay with edited parameters. */
import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { CallDetail, CallRow } from '../../observe/capture/captured.ts'
import { isGap } from '../model/call-list.ts'
import { formatBytes, formatCount, formatMs, formatTime } from '../model/format.ts'
import { asCommand, asCurl, asInspector, asTest } from '../model/snippets.ts'
import type { Called } from '../model/snippets.ts'
import { explainCall } from '../model/verdict.ts'
import { session } from '../page/api.ts'
import { commandOf } from '../page/command.ts'
import { callsVersion } from '../page/feed.ts'
import { useKeys } from '../page/keys.ts'
import { useLoad } from '../page/load.ts'
import { go, pathTo, route } from '../page/route.ts'
import {
  Block,
  Button,
  Chip,
  CopyButton,
  Empty,
  Facts,
  Failed,
  Heading,
  Line,
  Section,
  SplitBar,
  SplitLegend,
} from '../parts/basics.tsx'
import { HopsView } from '../parts/hops-view.tsx'
import { Icon } from '../parts/icons.tsx'
import { Outcome } from '../parts/outcome.tsx'
import { paramsOf, ReplayDialog } from '../parts/replay-dialog.tsx'
import { SignIn } from '../parts/sign-in.tsx'
import { WaterfallView } from '../parts/waterfall-view.tsx'
import { selectCalls } from './traffic.tsx'

const REPLAYABLE: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])
/** Interval at which an open call is requested again. */
const OPEN_MS = 1_000

export const Call = (): JSX.Element => {
  const { item: id, query } = route.value
  const [isOpen, setOpen] = useState(false)
  const isNumber = /^\d+$/.test(id)
  const { data: detail, error, reload } = useLoad<CallDetail>(isNumber ? `/calls/${id}` : '', isOpen ? OPEN_MS : 0)
  useEffect(() => setOpen(detail?.state === 'open'), [detail?.state])
  const filter = query.get('q') ?? ''
  const listed = filter === '' ? {} : { q: filter }
  const back = pathTo('traffic', '', { ...listed, sel: id })
  const others = useNeighbors(filter, Number(id))
  const to = (other: CallRow | undefined): void => {
    if (other !== undefined) go(pathTo('calls', String(other.id), listed))
  }
  useKeys([
    { key: 'Escape', does: 'back to the list', run: () => go(back) },
    { key: 'j', does: 'next call of the list', run: () => to(others.older) },
    { key: 'k', does: 'previous call of the list', run: () => to(others.newer) },
  ])
  return (
    <div class="screen">
      <nav class="crumbs" aria-label="Call">
        <a class="button" href={back}>
          <Icon name="back" /> Traffic
        </a>
        <span class="muted">call {id}</span>
        <span class="spacer" />
        <Button disabled={others.newer === undefined} onClick={() => to(others.newer)} aria-label="Newer call">
          <Icon name="back" />
        </Button>
        <Button disabled={others.older === undefined} onClick={() => to(others.older)} aria-label="Older call">
          <Icon name="next" />
        </Button>
      </nav>
      {detail !== undefined ? (
        <Detail detail={detail} />
      ) : (
        <>
          <Heading title={<Line text={`Call ${id}`} />} />
          {!isNumber || error?.code === 'gone' ? (
            <Empty title={isNumber ? 'This call is no longer stored' : 'A call has a number'}>
              <p>
                Calls are kept in memory, bounded by <code>ui.capture.ring</code> and <code>ui.capture.ttl</code>, until Trunkline
                restarts.
              </p>
              <a class="button" href="/traffic">
                Show the traffic
              </a>
            </Empty>
          ) : (
            error !== undefined && <Failed error={error} onRetry={reload} />
          )}
        </>
      )}
    </div>
  )
}

/** The previous and next call in the list from which it was opened. */
const useNeighbors = (
  filter: string,
  id: number,
): { readonly newer: CallRow | undefined; readonly older: CallRow | undefined } => {
  void callsVersion.value
  const rows = selectCalls(filter).items.filter((item): item is CallRow => !isGap(item))
  const at = rows.findIndex((row) => row.id === id)
  return at === -1 ? { newer: undefined, older: undefined } : { newer: rows[at - 1], older: rows[at + 1] }
}

const Detail = ({ detail }: { readonly detail: CallDetail }): JSX.Element => {
  const [replaying, setReplaying] = useState<'no' | 'again' | 'edit'>('no')
  const {
    method,
    name,
    server,
    original,
    ms,
    host,
    era,
    revision,
    principal,
    toolset,
    endpoint,
    rules,
    bytesIn,
    bytesOut,
    tokensOut,
  } = detail
  const why = !REPLAYABLE.has(method)
    ? `${method} cannot be sent again`
    : session.value?.write !== true
      ? 'ui.write is off: the dashboard cannot send calls'
      : detail.request?.text === undefined
        ? 'its request was not stored (ui.capture.bodies)'
        : ''
  const canReplay = why === ''
  const replay = (how: 'again' | 'edit'): void => setReplaying(canReplay ? how : 'no')
  useKeys([
    { key: 'r', does: 'replay', run: () => replay('again') },
    { key: 'e', does: 'edit and replay', run: () => replay('edit') },
  ])
  return (
    <>
      <Heading
        title={
          <>
            <Line text={name ?? method} most={160} /> <Outcome row={detail} />
          </>
        }
      >
        <Button disabled={!canReplay} title={why || 'r'} onClick={() => replay('again')}>
          Replay
        </Button>
        <Button tone="accent" disabled={!canReplay} title={why || 'e'} onClick={() => replay('edit')}>
          Edit and replay
        </Button>
      </Heading>
      {why !== '' && REPLAYABLE.has(method) && <p class="muted note">Replay: {why}.</p>}
      <Verdict detail={detail} />
      <Section title="Time" id="time">
        <div class="time-split">
          <SplitBar ms={ms} isWide />
          <SplitLegend ms={ms} />
        </div>
        <WaterfallView detail={detail} />
      </Section>
      <Bodies detail={detail} />
      <Section title="Facts">
        <Facts
          facts={[
            ['Came', `${formatTime(detail.at)} (${new Date(detail.at).toLocaleDateString()})`],
            ['Host', <Line key="host" text={host ?? 'dashboard or terminal'} />],
            ['Revision', `${revision} (${era})`],
            ['Transport', detail.transport],
            ['Principal', <Line key="principal" text={principal} />],
            ['Session', detail.session],
            ['Toolset', toolset],
            ['Endpoint', endpoint],
            ['Method', method],
            [
              'Server',
              server === null ? null : (
                <a key="server" href={pathTo('servers', server)}>
                  {server}
                </a>
              ),
            ],
            ['Name at the server', original === null ? null : <Line key="original" text={original} />],
            [
              'Tool',
              method === 'tools/call' && name !== null ? (
                <a key="tool" href={pathTo('tools', name)}>
                  definition, history, form
                </a>
              ) : null,
            ],
            ['Request', formatBytes(bytesIn)],
            ['Answer', `${formatBytes(bytesOut)}, about ${formatCount(tokensOut)} tokens`],
            ['Rules', rules.length === 0 ? null : rules.map((rule) => <Chip key={rule}>{rule}</Chip>)],
            [
              'Replay of',
              detail.replayOf === null ? null : (
                <a key="of" href={pathTo('calls', String(detail.replayOf))}>
                  call {detail.replayOf}
                </a>
              ),
            ],
            ['Trace', detail.traceId],
          ]}
        />
      </Section>
      <Snippets detail={detail} />
      {replaying !== 'no' && <ReplayDialog detail={detail} isEdit={replaying === 'edit'} onClose={() => setReplaying('no')} />}
    </>
  )
}

const Verdict = ({ detail }: { readonly detail: CallDetail }): JSX.Element => (
  <ul class="verdict" aria-label="What happened">
    {explainCall(detail).map(({ tone, text, signInAt }, at) => (
      <li key={at} class={`verdict-${tone}`}>
        <Icon name={tone === 'trouble' ? 'trouble' : tone === 'notice' ? 'next' : 'done'} />
        <span>
          <Line text={text} most={600} />
        </span>
        {signInAt !== undefined && <SignIn server={signInAt} />}
      </li>
    ))}
  </ul>
)

const Bodies = ({ detail }: { readonly detail: CallDetail }): JSX.Element => {
  const { request, response, hops, diff, host, server, state } = detail
  const [first, last] = [hops[0], hops.at(-1)]
  const isKept = [request, response, first?.request, last?.response].some((body) => body !== undefined)
  if (!isKept)
    return (
      <Section title="Both hops">
        <Empty title="The messages of this call were not stored">
          <p>
            {session.value?.bodies === 'off'
              ? 'Messages are not stored (ui.capture.bodies: off).'
              : session.value?.bodies === 'errors'
                ? 'Only messages of calls with errors are stored. This call succeeded, or is still in progress.'
                : 'They belong to another caller, or were sent before messages were stored.'}{' '}
            To store all messages, add this option and reload:
          </p>
          <div class="command">
            <code>{'ui: { capture: { bodies: all } }'}</code>
            <CopyButton text="ui: { capture: { bodies: all } }" what="the option" />
          </div>
        </Empty>
      </Section>
    )
  const at = server ?? 'the server'
  const isOpen = state === 'open'
  const unsent = hops.length === 0 ? (isOpen ? 'Nothing was sent so far.' : 'Nothing was sent to a server.') : undefined
  const unanswered = isOpen ? 'No answer so far.' : hops.length === 0 ? 'No server was asked.' : undefined
  return (
    <>
      <Section title="Request, both hops" id="request">
        <HopsView
          from={{ title: `From ${host ?? 'the caller'}`, body: request }}
          to={{ title: `To ${at}`, body: first?.request, ...(unsent !== undefined && { absent: unsent }) }}
          changes={diff?.request ?? null}
        />
      </Section>
      <Section title="Answer, both hops" id="response">
        <HopsView
          from={{ title: `From ${at}`, body: last?.response, ...(unanswered !== undefined && { absent: unanswered }) }}
          to={{ title: `To ${host ?? 'the caller'}`, body: response, ...(isOpen && { absent: 'No answer so far.' }) }}
          changes={diff?.response ?? null}
        />
      </Section>
    </>
  )
}

const Snippets = ({ detail }: { readonly detail: CallDetail }): JSX.Element | null => {
  const { data: status } = useLoad<{ readonly urls: readonly string[]; readonly auth: string }>(
    session.value?.role === 'operator' ? '/status' : '',
  )
  const params = paramsOf(detail)
  if (params === undefined)
    return (
      <Section title="Copy as">
        <p class="muted">The request of this call is not kept, so there is nothing to copy.</p>
      </Section>
    )
  const { method, name, toolset, endpoint } = detail
  const base = status?.urls[0] ?? 'http://127.0.0.1:7420/mcp'
  const url =
    endpoint === null
      ? toolset === null
        ? base
        : `${base}/${encodeURIComponent(toolset)}`
      : new URL(`/servers/${encodeURIComponent(endpoint)}/mcp`, base).href
  const called: Called = {
    method,
    name,
    params,
    toolset,
    url,
    hasAuth: status !== undefined && status.auth !== 'none',
    named: session.value?.named ?? [],
  }
  const forms: readonly (readonly [label: string, what: string, text: string | undefined])[] = [
    ['curl', 'a curl command', asCurl(called)],
    ['Inspector', 'a command of the Inspector', asInspector(called)],
    ['Terminal', 'a trunkline command', asCommand(called)],
    ['Test', 'a test', asTest(called)],
    ['Report', 'the command that makes a report', commandOf('report', String(detail.id))],
  ]
  return (
    <Section title="Copy as">
      <div class="snippets">
        {forms.map(([label, what, text]): ComponentChildren =>
          text === undefined ? null : (
            <div key={label} class="snippet">
              <details>
                <summary>{label}</summary>
                <Block text={text} />
              </details>
              <CopyButton text={text} what={what} />
            </div>
          ),
        )}
      </div>
      <p class="muted note">
        {formatMs(detail.ms.total)} when it was captured. Values that were hidden as secrets are *** in all of these.
      </p>
    </Section>
  )
}
