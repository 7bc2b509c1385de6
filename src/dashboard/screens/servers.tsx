/** All servers: state, load and cost. */
import type { JSX } from 'preact'
import type { Stats } from '../../admin/calls/stats.ts'
import type { Status } from '../../admin/state/status.ts'
import { formatBytes, formatCount, formatMs, plural } from '../model/format.ts'
import { commandOf } from '../page/command.ts'
import { ROW_KEYS, useKeys } from '../page/keys.ts'
import { useLoad } from '../page/load.ts'
import { pathTo } from '../page/route.ts'
import { Command, Empty, Failed, Heading, Line } from '../parts/basics.tsx'
import { HealthSign } from '../parts/health-state.tsx'
import { SignIn } from '../parts/sign-in.tsx'

/** Servers that are named above the list: it may be long. */
const MOST_BROKEN = 12

export const Servers = (): JSX.Element => {
  const { data: status, error, reload, isLoading } = useLoad<Status>('/status', 2_000)
  const { data: stats } = useLoad<Stats>('/stats?window=5m', 2_000)
  useKeys(ROW_KEYS)
  const broken = status?.servers.filter(({ state, needsSignIn }) => state === 'down' || state === 'failed' || needsSignIn) ?? []
  return (
    <div class="screen">
      <Heading title="Servers">
        {status !== undefined && (
          <span class="muted num">{plural(status.servers.length, 'server')} · calls of the last five minutes</span>
        )}
      </Heading>
      {broken.length > 0 && (
        <p class="broken">
          {formatCount(broken.length)} of {plural(status?.servers.length ?? 0, 'server')} {broken.length === 1 ? 'does' : 'do'}{' '}
          not work:{' '}
          {broken.slice(0, MOST_BROKEN).map((server) => (
            <span key={server.key}>
              <a href={pathTo('servers', server.key)}>{server.key}</a> <HealthSign server={server} />
            </span>
          ))}
          {broken.length > MOST_BROKEN && <a href="/health">and {formatCount(broken.length - MOST_BROKEN)} more</a>}
        </p>
      )}
      {error !== undefined && <Failed error={error} onRetry={reload} />}
      {status?.servers.length === 0 && !isLoading && (
        <Empty title="No server is configured">
          <p>Add a server. The arguments are those of claude mcp add:</p>
          <Command text={commandOf('add', 'files', '--', 'npx', '-y', '@modelcontextprotocol/server-filesystem', '.')} />
        </Empty>
      )}
      <ul class="servers">
        {status?.servers.map((server) => {
          const figures = stats?.servers.find((one) => one.server === server.key)
          const bytes = server.processes.reduce((sum, { memoryBytes }) => sum + (memoryBytes ?? 0), 0)
          return (
            <li key={server.key} data-row class="server">
              <div class="server-name">
                <a href={pathTo('servers', server.key)}>{server.key}</a>
                <HealthSign server={server} />
                <span class="muted">
                  {server.transport}
                  {server.revision !== undefined && ` · ${server.revision}`}
                </span>
              </div>
              <dl class="server-figures">
                <Figure name="Tools" value={formatCount(server.tools)} />
                <Figure name="Tokens" value={formatCount(server.tokens)} />
                <Figure name="Calls" value={figures === undefined ? '–' : formatCount(figures.calls)} />
                <Figure name="p50" value={figures?.p50 === null || figures === undefined ? '–' : formatMs(figures.p50)} />
                <Figure name="p95" value={figures?.p95 === null || figures === undefined ? '–' : formatMs(figures.p95)} />
                <Figure
                  name="Errors"
                  value={figures === undefined || figures.errors === 0 ? '–' : formatCount(figures.errors)}
                  isTrouble={(figures?.errors ?? 0) > 0}
                />
                <Figure name="In progress" value={server.inFlight === 0 ? '–' : formatCount(server.inFlight)} />
                <Figure name="Memory" value={bytes === 0 ? '–' : formatBytes(bytes)} />
              </dl>
              {(server.reason !== undefined || server.needsSignIn) && (
                <div class="server-reason">
                  {server.reason !== undefined && (
                    <span>
                      <Line text={server.reason} />
                      {server.nextTryMs !== undefined && <span class="muted"> · next try in {formatMs(server.nextTryMs)}</span>}
                    </span>
                  )}
                  {server.needsSignIn && <SignIn server={server.key} onDone={reload} />}
                </div>
              )}
            </li>
          )
        })}
      </ul>
    </div>
  )
}

const Figure = ({
  name,
  value,
  isTrouble = false,
}: {
  readonly name: string
  readonly value: string
  readonly isTrouble?: boolean
}): JSX.Element => (
  <div>
    <dt>{name}</dt>
    <dd class={isTrouble ? 'num trouble' : 'num'}>{value}</dd>
  </div>
)
