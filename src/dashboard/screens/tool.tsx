/** One tool: a form to try it, its earlier definitions, and the rules behind its name and visibility. */
import type { JSX } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { CatalogHistory } from '../../admin/catalog/history.ts'
import type { Lint } from '../../admin/catalog/lint.ts'
import type { Stats } from '../../admin/calls/stats.ts'
import type { ToolRow } from '../../admin/catalog/tools.ts'
import type { WhyEnd } from '../../admin/explain/why.ts'
import { indentJson } from '../../values/json-tree.ts'
import { formatAgo, formatCount, formatMs, plural } from '../model/format.ts'
import { ApiError, askText, session } from '../page/api.ts'
import { commandOf } from '../page/command.ts'
import { useKeys } from '../page/keys.ts'
import { STORED_STATS, useLoad, useTools } from '../page/load.ts'
import { go, pathTo, route } from '../page/route.ts'
import { ArgumentsEditor } from '../parts/arguments-editor.tsx'
import {
  Banner,
  Block,
  Button,
  Chip,
  Command,
  CopyButton,
  Dialog,
  Empty,
  Failed,
  Heading,
  Line,
  Section,
} from '../parts/basics.tsx'
import { Definitions } from '../parts/definitions.tsx'
import { Icon } from '../parts/icons.tsx'
import { ResultView } from '../parts/result-view.tsx'
import { hintsOf, HOSTS } from './catalog.tsx'
import { ShowAgain, ToolSettings } from './edit.tsx'

export const Tool = (): JSX.Element => {
  const { item: name } = route.value
  const { data, error, reload, isLoading } = useTools(name)
  const tool = data?.tools.find((one) => one.name === name)
  useKeys([{ key: 'Escape', does: 'back to the catalog', run: () => go('/catalog') }])
  return (
    <div class="screen">
      <nav class="crumbs" aria-label="Tool">
        <a class="button" href="/catalog">
          <Icon name="back" /> Catalog
        </a>
      </nav>
      {error !== undefined && <Failed error={error} onRetry={reload} />}
      {tool === undefined ? (
        isLoading ? (
          <Heading title={<Line text={name} />} />
        ) : (
          <Unknown name={name} onShown={reload} />
        )
      ) : (
        <Known key={name} tool={tool} onEdited={reload} />
      )}
    </div>
  )
}

const Known = ({ tool, onEdited }: { readonly tool: ToolRow; readonly onEdited: () => void }): JSX.Element => {
  const { name, server, original, tokens, definition, text } = tool
  const whole = useMemo(() => indentJson(text ?? JSON.stringify(definition)), [definition, text])
  const stats = useLoad<Stats>(STORED_STATS, 5_000)
  const lint = useLoad<Lint>(`/lint?${HOSTS.map((host) => `host=${host}`).join('&')}`)
  const own = stats.data?.tools.find((one) => one.tool === name)
  const findings = lint.data?.findings.filter((finding) => finding.tool === name && finding.toolset === '') ?? []
  return (
    <>
      <Heading title={<Line text={name} most={200} />}>
        {hintsOf(tool).map((hint) => (
          <Chip key={hint} tone={hint === 'destructive' ? 'notice' : 'plain'}>
            {hint}
          </Chip>
        ))}
        <a class="button" href={pathTo('traffic', '', { q: `name:"${name}"` })}>
          Calls
        </a>
      </Heading>
      <p class="lead">
        <Line text={definition.description ?? 'No description.'} most={2_000} />
      </p>
      <p class="muted num">
        <Line text={original} /> of <a href={pathTo('servers', server)}>{server}</a> · about {formatCount(tokens)} tokens
        {own !== undefined && (
          <>
            {' '}
            · {plural(own.calls, 'stored call')}
            {own.p95 !== null && `, p95 ${formatMs(own.p95)}`}
            {own.errors > 0 && <span class="trouble">, {plural(own.errors, 'error')}</span>}, last{' '}
            {formatAgo(own.lastAt, Date.now())}
          </>
        )}
      </p>
      {findings.length > 0 && (
        <ul class="verdict" aria-label="Hosts">
          {findings.map((finding) => (
            <li key={`${finding.host} ${finding.message}`} class="verdict-notice">
              <Icon name="trouble" />
              <span>
                <strong>{finding.host}</strong>: <Line text={finding.message} />{' '}
                {finding.remedy !== '' && <span class="muted">{finding.remedy}</span>}
              </span>
            </li>
          ))}
        </ul>
      )}
      <TryIt tool={tool} />
      <ToolSettings tool={tool} onDone={onEdited} />
      <Why name={name} />
      <History name={name} />
      <Section title="Definition as listed to hosts" tools={<CopyButton text={whole} what="the definition" />}>
        <Block text={whole} />
      </Section>
    </>
  )
}

const TryIt = ({ tool }: { readonly tool: ToolRow }): JSX.Element => {
  const { name, definition } = tool
  const [args, setArgs] = useState<string | undefined>(undefined)
  const [isBusy, setBusy] = useState(false)
  const [isAsking, setAsking] = useState(false)
  const [end, setEnd] = useState<string | undefined>(undefined)
  const [problem, setProblem] = useState('')
  useEffect(() => setEnd(undefined), [name])
  const isRead = hintsOf(tool).includes('reads')
  const call = async (): Promise<void> => {
    setAsking(false)
    setBusy(true)
    setProblem('')
    try {
      setEnd(await askText('POST', `/call?tool=${encodeURIComponent(name)}`, args ?? '{}'))
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setProblem(error.message)
    }
    setBusy(false)
  }
  const mayWrite = session.value?.write === true
  return (
    <Section title="Try it">
      <div class="try">
        <ArgumentsEditor key={name} schema={definition.inputSchema} initial="{}" onChange={setArgs} />
        <div class="try-end">
          {mayWrite ? (
            <Button
              tone="accent"
              disabled={isBusy || args === undefined}
              onClick={() => (isRead ? void call() : setAsking(true))}
            >
              {isBusy ? 'Waiting for the answer …' : 'Call'}
            </Button>
          ) : (
            <>
              <p class="muted">ui.write is off: the dashboard cannot call tools. In a terminal:</p>
              <Command text={commandOf('call', name, '--args', args ?? '{}')} />
            </>
          )}
          {problem !== '' && <Banner text={problem} />}
          {end === undefined ? (
            mayWrite && <p class="muted">The answer appears here and the call in the traffic.</p>
          ) : (
            <ResultView text={end} />
          )}
        </div>
      </div>
      {isAsking && (
        <Dialog title="Call the tool?" onClose={() => setAsking(false)}>
          <p>
            <Line text={name} /> is not marked as read-only. It is called as principal local.
          </p>
          <div class="dialog-actions">
            <Button tone="trouble" onClick={() => void call()}>
              Call the tool
            </Button>
          </div>
        </Dialog>
      )}
    </Section>
  )
}

const Why = ({ name }: { readonly name: string }): JSX.Element | null => {
  const { data } = useLoad<WhyEnd>(`/why?name=${encodeURIComponent(name)}`)
  if (data?.kind !== 'known') return null
  return (
    <Section title="Rules for this tool">
      {data.all.map((why) => (
        <ol key={`${why.server} ${why.original}`} class="chain">
          {why.steps.map(({ effect, what, path, place }, at) => (
            <li key={at}>
              <Chip tone={effect === 'hides' ? 'notice' : 'plain'}>{effect}</Chip>
              <Line text={what} />{' '}
              <span class="muted">
                <code>{path}</code> {place}
              </span>
            </li>
          ))}
        </ol>
      ))}
    </Section>
  )
}

const History = ({ name }: { readonly name: string }): JSX.Element => {
  const { data } = useLoad<CatalogHistory>('/history', 10_000)
  const changes =
    data?.changes.flatMap(({ at, entries }) =>
      entries.filter((entry) => entry.name === name && entry.kind === 'tools').map((entry) => ({ at, entry })),
    ) ?? []
  return (
    <Section title="Earlier definitions">
      {changes.length === 0 ? (
        <p class="muted">
          The definition has not changed
          {data?.since !== null && data?.since !== undefined && ` since ${new Date(data.since).toLocaleString()}`}. Changes are
          stored while the admin listener is open. <code>trunkline.lock</code> contains the approved definitions.
        </p>
      ) : (
        changes.toReversed().map(({ at, entry }, index) => (
          <details key={at} open={index === 0}>
            <summary>
              {entry.change} {formatAgo(at, Date.now())}{' '}
              <span class="muted num">
                ({entry.tokens > 0 ? '+' : ''}
                {entry.tokens} tokens)
              </span>
            </summary>
            <Definitions before={entry.from} after={entry.to} beforeTitle="Before" afterTitle="After" />
          </details>
        ))
      )}
    </Section>
  )
}

const Unknown = ({ name, onShown }: { readonly name: string; readonly onShown: () => void }): JSX.Element => {
  const { data, reload } = useLoad<WhyEnd>(`/why?name=${encodeURIComponent(name)}`)
  return (
    <>
      <Heading title={<Line text={name} most={200} />}>
        <ShowAgain
          why={data}
          onDone={() => {
            reload()
            onShown()
          }}
        />
      </Heading>
      <Empty title="No tool of this name is listed to hosts">
        {data !== undefined && data.kind !== 'known' && data.near.length > 0 && (
          <p>
            Similar names:{' '}
            {data.near.map((near) => (
              <a key={near} class="button button-small" href={pathTo('tools', near)}>
                <Line text={near} />
              </a>
            ))}
          </p>
        )}
      </Empty>
      <Why name={name} />
    </>
  )
}
