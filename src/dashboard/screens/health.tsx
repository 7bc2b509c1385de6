/** Health of Trunkline itself: configuration, reached limits, refusals, losses in translation. */
import type { JSX } from 'preact'
import type { Lint } from '../../admin/catalog/lint.ts'
import type { Settings } from '../../admin/state/settings.ts'
import type { Stats } from '../../admin/calls/stats.ts'
import type { Status } from '../../admin/state/status.ts'
import { formatCount, formatMs, plural } from '../model/format.ts'
import { leftOutOf, lineOf } from '../model/text.ts'
import { STORED_STATS, useLoad } from '../page/load.ts'
import { ROW_KEYS, useKeys } from '../page/keys.ts'
import { pathTo, setQuery, route } from '../page/route.ts'
import { Chip, Facts, Failed, Heading, Line, Section, Table } from '../parts/basics.tsx'
import { HealthSign } from '../parts/health-state.tsx'
import { HOSTS } from './catalog.tsx'
import { Problems } from './changes.tsx'

/** How hosts authenticate. */
const AUTH: ReadonlyMap<string, string> = new Map([
  ['none', 'no authentication (loopback only)'],
  ['tokens', 'tokens'],
  ['oauth', 'OAuth'],
  ['any', 'tokens or OAuth'],
])

export const Health = (): JSX.Element => {
  const { data: status, error, reload } = useLoad<Status>('/status', 3_000)
  useKeys(ROW_KEYS)
  return (
    <div class="screen">
      <Heading title="Health">
        {status !== undefined && (
          <span class="muted num">
            version {status.version}, process {status.pid}, up {formatMs(status.uptimeMs)}
          </span>
        )}
      </Heading>
      {error !== undefined && <Failed error={error} onRetry={reload} />}
      {status !== undefined && <Known status={status} />}
    </div>
  )
}

const Known = ({ status }: { readonly status: Status }): JSX.Element => {
  const { data: settings } = useLoad<Settings>('/settings', 10_000)
  const unhealthy = status.servers.filter(
    ({ state, isResting, needsSignIn }) => (state !== 'healthy' && !isResting) || needsSignIn,
  )
  return (
    <>
      {status.faults.length > 0 && (
        <div class="banner banner-trouble" role="alert">
          Faults are injected on purpose (--allow-faults):{' '}
          {status.faults.map((fault, at) => (
            <Line key={at} text={`${JSON.stringify(fault)} `} most={200} />
          ))}
        </div>
      )}
      <Section title="Configuration">
        {status.problems.length > 0 ? (
          <>
            <p class="banner banner-trouble">The files contain errors. The previous configuration is in use.</p>
            <Problems problems={status.problems} />
          </>
        ) : (
          <p>The files are in use.</p>
        )}
        <Facts
          facts={[
            ['Files', codeLines(status.files)],
            ['MCP', codeLines(status.urls)],
            ['Authentication of hosts', AUTH.get(status.auth) ?? status.auth],
            ['Audit log', status.audit === undefined ? 'none' : <code key="audit">{JSON.stringify(status.audit)}</code>],
            [
              'Prometheus',
              settings && (settings.telemetry.prometheus ?? 'not available: the listener is open on demand, or metrics are off'),
            ],
            ['OpenTelemetry', settings && (settings.telemetry.otlp ?? 'not configured (telemetry.otlp)')],
          ]}
        />
        {settings !== undefined && <Origins settings={settings} />}
      </Section>
      <div class="columns">
        <Section title="Servers">
          {unhealthy.length === 0 ? (
            <p>All {plural(status.servers.length, 'server')} work.</p>
          ) : (
            <ul class="rows">
              {unhealthy.map((server) => (
                <li key={server.key} data-row>
                  <a href={pathTo('servers', server.key)}>{server.key}</a> <HealthSign server={server} />{' '}
                  <Line text={server.reason ?? ''} />
                </li>
              ))}
            </ul>
          )}
        </Section>
        <Texts title="Warnings" texts={[...status.collisions, ...status.warnings]} none="None." />
        <Limits status={status} />
        <Fidelity status={status} />
      </div>
      <Errors />
      <HostCheck />
    </>
  )
}

const codeLines = (texts: readonly string[]): JSX.Element[] =>
  texts.map((text) => (
    <div key={text}>
      <code>{text}</code>
    </div>
  ))

/** Maximum number of listed values. */
const MOST_SETTINGS = 500

const Origins = ({ settings: { settings, more } }: { readonly settings: Settings }): JSX.Element => {
  const hidden = Math.max(0, settings.length - MOST_SETTINGS) + more
  return (
    <details class="origins">
      <summary>What the files say, line by line ({plural(settings.length + more, 'value')})</summary>
      <Table columns={['Option', 'Value in the file', 'Place']}>
        {settings.slice(0, MOST_SETTINGS).map(({ path, value, place }) => (
          <tr key={`${place} ${path}`}>
            <td>
              <code>{lineOf(path, 200)}</code>
            </td>
            <td>
              <Line text={value} most={200} />
            </td>
            <td class="muted">{place}</td>
          </tr>
        ))}
      </Table>
      {hidden > 0 && <p class="muted">{leftOutOf(hidden, 'values')}</p>}
    </details>
  )
}

const Errors = (): JSX.Element => {
  const { data } = useLoad<Stats>(STORED_STATS, 5_000)
  return (
    <Section title="Errors of stored calls">
      {data?.errors.length === 0 ? (
        <p>No stored call ended with an error.</p>
      ) : (
        <Table columns={['Kind', 'Server']} figures="Calls">
          {data?.errors.slice(0, MOST_ERRORS).map(({ server, kind, count }) => (
            <tr key={`${server} ${kind}`}>
              <td>
                <a href={pathTo('traffic', '', { q: `server:${server} ${termOf(kind)}` })}>{kind}</a>
              </td>
              <td>{server}</td>
              <td class="num">{formatCount(count)}</td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  )
}

const MOST_ERRORS = 20
const OUTCOMES: ReadonlySet<string> = new Set(['tool_error', 'error', 'failed', 'refused', 'cancelled'])

/** Its name in the traffic filter. */
const termOf = (kind: string): string => (OUTCOMES.has(kind) ? `outcome:${kind}` : `kind:${kind}`)

const Limits = ({ status: { limits, rates } }: { readonly status: Status }): JSX.Element => (
  <Section title="Limits and overload">
    {limits.length === 0 && rates.every(({ refused }) => refused === 0) ? (
      <p>No limit was reached since Trunkline started.</p>
    ) : (
      <Table columns={['Option', 'At']} figures="Reached">
        {limits.map(({ option, server, count }) => (
          <tr key={`${option} ${server ?? ''}`}>
            <td>
              <code>{option}</code>
            </td>
            <td>{server ?? 'Trunkline'}</td>
            <td class="num">{formatCount(count)}</td>
          </tr>
        ))}
        {rates
          .filter(({ refused }) => refused > 0)
          .map(({ option, rate, refused }) => (
            <tr key={option}>
              <td>
                <code>{option}</code>
              </td>
              <td>{rate}</td>
              <td class="num">{formatCount(refused)} refused</td>
            </tr>
          ))}
      </Table>
    )}
  </Section>
)

const Fidelity = ({ status: { servers } }: { readonly status: Status }): JSX.Element => {
  const rows = servers.flatMap(({ key, fidelity }) => fidelity.map((one) => ({ ...one, server: key })))
  return (
    <Section title="Fidelity: translations and losses">
      {rows.length === 0 ? (
        <p>Nothing was translated since the servers started.</p>
      ) : (
        <Table columns={['Rule', 'Server', 'What']} figures="Times">
          {rows.map(({ server, rule, verdict, feature, reason, count }) => (
            <tr key={`${server} ${rule} ${feature} ${reason}`}>
              <td>
                <a href={pathTo('traffic', '', { q: `rule:${rule}` })}>
                  <Chip tone={verdict === 'impossible' ? 'notice' : 'plain'}>{rule}</Chip>
                </a>
              </td>
              <td>{server}</td>
              <td>
                {verdict === 'impossible' && <strong>impossible: </strong>}
                <Line text={reason} />
              </td>
              <td class="num">{formatCount(count)}</td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  )
}

const Texts = ({
  title,
  texts,
  none,
}: {
  readonly title: string
  readonly texts: readonly string[]
  readonly none: string
}): JSX.Element => (
  <Section title={title}>
    {texts.length === 0 ? (
      <p>{none}</p>
    ) : (
      <ul class="rows">
        {texts.map((text) => (
          <li key={text}>
            <Line text={text} most={600} />
          </li>
        ))}
      </ul>
    )}
  </Section>
)

const HostCheck = (): JSX.Element => {
  const host = route.value.query.get('host') ?? HOSTS[0] ?? ''
  const { data, error } = useLoad<Lint>(`/lint?host=${encodeURIComponent(host)}`)
  return (
    <Section title="Compatibility with a host">
      <div class="choices" role="group" aria-label="Host">
        {HOSTS.map((one) => (
          <button key={one} type="button" class="choice" aria-pressed={one === host} onClick={() => setQuery({ host: one })}>
            {one}
          </button>
        ))}
      </div>
      {error !== undefined && <Failed error={error} />}
      {data?.findings.length === 0 && <p class="pad-top">It accepts all {plural(data.tools, 'tool')} unchanged.</p>}
      <ul class="rows pad-top">
        {data?.findings.map(({ tool, toolset, consequence, message, remedy, from }) => (
          <li key={`${toolset} ${tool} ${message}`}>
            <Chip tone={consequence === 'breaks' ? 'trouble' : 'notice'}>{consequence}</Chip>
            {toolset !== '' && <Chip>{toolset}</Chip>}
            <Line text={message} /> <span class="muted">{remedy}</span> <span class="muted">({from})</span>
          </li>
        ))}
      </ul>
    </Section>
  )
}
