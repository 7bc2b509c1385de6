/** One server: its state, links and processes, its output, the translation of its calls, restart and sign-in. */
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Stats } from '../../admin/calls/stats.ts'
import type { ServerStatus } from '../../admin/state/server-status.ts'
import type { Status } from '../../admin/state/status.ts'
import { formatBytes, formatCount, formatMs, plural } from '../model/format.ts'
import { blockOf } from '../model/text.ts'
import { ask, session } from '../page/api.ts'
import { useKeys } from '../page/keys.ts'
import { useLoad, useTools } from '../page/load.ts'
import { attempting, notify } from '../page/notices.ts'
import { go, pathTo, route } from '../page/route.ts'
import { Button, Chip, Dialog, Empty, Facts, Failed, Heading, Line, Section } from '../parts/basics.tsx'
import { HealthSign } from '../parts/health-state.tsx'
import { Icon } from '../parts/icons.tsx'
import { SignIn } from '../parts/sign-in.tsx'

export const Server = (): JSX.Element => {
  const { item: key } = route.value
  const { data: status, error, reload } = useLoad<Status>('/status', 2_000)
  const server = status?.servers.find((one) => one.key === key)
  useKeys([{ key: 'Escape', does: 'back to the servers', run: () => go('/servers') }])
  return (
    <div class="screen">
      <nav class="crumbs" aria-label="Server">
        <a class="button" href="/servers">
          <Icon name="back" /> Servers
        </a>
      </nav>
      {error !== undefined && <Failed error={error} onRetry={reload} />}
      {server !== undefined ? (
        <Known server={server} onChange={reload} />
      ) : status === undefined ? (
        <Heading title={<Line text={key} />} />
      ) : (
        <>
          <Heading title={<Line text={key} />} />
          <Empty title="No such server is configured">
            <a class="button" href="/servers">
              Show the servers
            </a>
          </Empty>
        </>
      )}
    </div>
  )
}

/** Revisions before 2026-07-28 begin with a handshake. */
const eraOf = (revision: string): string => (revision < '2026-07-28' ? 'legacy' : 'modern')

const Known = ({ server, onChange }: { readonly server: ServerStatus; readonly onChange: () => void }): JSX.Element => {
  const { key, reason, isResting, needsSignIn, callers, nextTryMs, failures } = server
  const { data: stats } = useLoad<Stats>('/stats?window=5m', 2_000)
  const [isAsking, setAsking] = useState(false)
  const mayWrite = session.value?.write === true
  const figures = stats?.servers.find((one) => one.server === key)
  const restart = async (): Promise<void> => {
    setAsking(false)
    await attempting(async () => {
      await ask('POST', `/restart?server=${encodeURIComponent(key)}`, '{}')
      notify(`${key} restarts`)
    })
    onChange()
  }
  useKeys([{ key: 'x', does: 'restart the server', run: () => mayWrite && setAsking(true) }])
  return (
    <>
      <Heading
        title={
          <>
            {key} <HealthSign server={server} />
          </>
        }
      >
        <a class="button" href={pathTo('traffic', '', { q: `server:${key}` })}>
          Calls
        </a>
        <Button disabled={!mayWrite} title={mayWrite ? 'x' : 'ui.write is off'} onClick={() => setAsking(true)}>
          Restart
        </Button>
      </Heading>
      {(reason !== undefined || needsSignIn) && (
        <div class={isResting ? 'muted' : 'banner banner-notice'}>
          <span>
            <Line text={reason ?? 'A user must sign in to this server.'} />
            {nextTryMs !== undefined && ` · next try in ${formatMs(nextTryMs)}`}
          </span>
          {needsSignIn && <SignIn server={key} onDone={onChange} />}
        </div>
      )}
      <Section title="State">
        <Facts
          facts={[
            ['Transport', server.transport],
            ['Revision', server.revision === undefined ? null : `${server.revision} (${eraOf(server.revision)})`],
            ['Links', formatCount(server.links)],
            ['Calls in progress', formatCount(server.inFlight)],
            ['Calls waiting for a slot', formatCount(server.queued)],
            ['Calls, five minutes', figures === undefined ? null : formatCount(figures.calls)],
            [
              'p50, p95',
              figures === undefined || figures.p50 === null || figures.p95 === null
                ? null
                : `${formatMs(figures.p50)}, ${formatMs(figures.p95)}`,
            ],
            ['Errors, five minutes', figures === undefined ? null : formatCount(figures.errors)],
            ['Outages', formatCount(failures)],
            ['Next try', nextTryMs === undefined ? null : `in ${formatMs(nextTryMs)}`],
            ['Callers', callers === undefined ? null : `${callers.all}, of which ${callers.unsigned} must sign in`],
            [
              'Offers',
              `${plural(server.tools, 'tool')}, ${plural(server.prompts, 'prompt')}, ${plural(server.resources, 'resource')}`,
            ],
            ['Cost of the tools', `about ${formatCount(server.tokens)} tokens`],
          ]}
        />
      </Section>
      <Processes server={server} />
      <Stderr server={key} hasProcess={server.transport === 'stdio' || server.processes.length > 0} />
      <Notes server={server} />
      <Tools server={key} />
      {isAsking && (
        <Dialog title={`Restart ${key}?`} onClose={() => setAsking(false)}>
          <p>
            {server.inFlight === 0
              ? 'No call is in progress.'
              : `${plural(server.inFlight, 'call')} in progress may finish first (reload.drain).`}{' '}
            Its processes and connections are closed and opened again.
          </p>
          <div class="dialog-actions">
            <Button tone="accent" onClick={() => void restart()}>
              Restart
            </Button>
          </div>
        </Dialog>
      )}
    </>
  )
}

const Processes = ({ server: { processes } }: { readonly server: ServerStatus }): JSX.Element | null =>
  processes.length === 0 ? null : (
    <Section title="Processes">
      <ul class="processes">
        {processes.map(({ pid, memoryBytes, uptimeMs }) => (
          <li key={pid}>
            <span class="num">
              {pid}, up {formatMs(uptimeMs)}
            </span>
            <strong class="num">{memoryBytes === undefined ? 'memory unknown' : formatBytes(memoryBytes)}</strong>
          </li>
        ))}
      </ul>
      <p class="muted note">Resident memory of each process with its descendants.</p>
    </Section>
  )

/** Polling interval. */
const STDERR_MS = 1_000

const Stderr = ({ server, hasProcess }: { readonly server: string; readonly hasProcess: boolean }): JSX.Element | null => {
  const { data } = useLoad<{ readonly lines: readonly string[] }>(
    hasProcess ? `/stderr?server=${encodeURIComponent(server)}&lines=200` : '',
    STDERR_MS,
  )
  const box = useRef<HTMLPreElement>(null)
  const isAtEnd = useRef(true)
  const text = data?.lines.join('\n') ?? ''
  // Follows the end, unless the user has scrolled away from it.
  useEffect(() => {
    if (box.current !== null && isAtEnd.current) box.current.scrollTop = box.current.scrollHeight
  }, [text])
  if (!hasProcess) return null
  return (
    <Section title="What it prints on stderr" tools={<span class="muted">live</span>}>
      {text === '' ? (
        <p class="muted">Nothing so far.</p>
      ) : (
        <pre
          ref={box}
          class="block stderr"
          tabIndex={0}
          aria-label="stderr"
          onScroll={(event) => {
            const { scrollTop, clientHeight, scrollHeight } = event.currentTarget
            isAtEnd.current = scrollTop + clientHeight >= scrollHeight - 4
          }}
        >
          <bdi>{blockOf(text)}</bdi>
        </pre>
      )}
    </Section>
  )
}

const Notes = ({ server: { fidelity, findings, warnings, leftOut } }: { readonly server: ServerStatus }): JSX.Element | null => {
  if (fidelity.length + findings.length + warnings.length + leftOut.length === 0) return null
  return (
    <Section title="Notes">
      <ul class="rows">
        {fidelity.map((one) => (
          <li key={`${one.rule} ${one.feature} ${one.reason}`}>
            <Chip tone={one.verdict === 'impossible' ? 'notice' : 'plain'}>{one.rule}</Chip>
            {one.verdict}, {formatCount(one.count)} times: <Line text={one.reason} />
          </li>
        ))}
        {findings.map(({ kind, name, note }) => (
          <li key={`${kind} ${name} ${note}`}>
            <Chip tone="notice">{kind}</Chip>
            <Line text={name} /> <span class="muted">{<Line text={note} />}</span>
          </li>
        ))}
        {warnings.map((warning) => (
          <li key={warning}>
            <Line text={warning} />
          </li>
        ))}
        {leftOut.map(({ kind, name, reason }) => (
          <li key={`${kind} ${name}`}>
            <Chip tone="notice">left out</Chip>
            <Line text={name} /> <Line text={reason} />
          </li>
        ))}
      </ul>
      {findings.length > 0 && (
        <p class="note">
          <a href="/changes">Compare and approve</a>
        </p>
      )}
    </Section>
  )
}

const Tools = ({ server }: { readonly server: string }): JSX.Element | null => {
  const { data } = useTools(server)
  const own = data?.tools.filter((tool) => tool.server === server) ?? []
  if (own.length === 0) return null
  return (
    <Section title={plural(own.length, 'tool')}>
      <ul class="tool-links">
        {own.map(({ name, tokens }) => (
          <li key={name}>
            <a href={pathTo('tools', name)}>
              <Line text={name} most={80} />
            </a>{' '}
            <span class="muted num">{formatCount(tokens)}</span>
          </li>
        ))}
      </ul>
    </Section>
  )
}
