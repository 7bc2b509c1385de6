/** The schema of our configuration files: the only source of validation, of `schema/v1.json` and of `docs/configuration.md`. */
import { z } from 'zod'
import { LOCK_KINDS } from '../../catalog/lock/lock.ts'
import { DEFAULT_GATEWAY } from '../../gateway/options.ts'
import { DEFAULT_HOST, DEFAULT_HOST_LIMITS } from '../../host/options.ts'
import { LEGACY_REVISIONS, MODERN_REVISIONS } from '../../wire/protocol/revisions.ts'
import { authSchema } from './auth-schema.ts'
import { faultSchema } from './faults-schema.ts'
import {
  addressesOrNone,
  choice,
  count,
  countField,
  durationField,
  durationOrNever,
  field,
  fieldsOf,
  fileMode,
  filledText,
  flag,
  hostName,
  origin,
  pause,
  proxyEntry,
  publicUrl,
  rate,
  sealKeys,
  sizeField,
  text,
  texts,
  urlPath,
  workers,
} from './kinds.ts'
import { policySchema, policyTestSchema } from './policy-schema.ts'
import { registrySchema } from './registry.ts'
import { adminSchema, prometheusSchema, uiSchema } from './observe-schema.ts'
import { SECRET_NAME, secretSchema } from './secret-schema.ts'
import { defaultsSchema, onChange, serverSchema } from './server-schema.ts'
import { SERVER_KEY } from './server-key.ts'
import { otlpSchema } from './otlp-schema.ts'
import { storeKind } from './store-kind.ts'
import { toolsetSchema } from './toolset-schema.ts'
import { formatDuration } from './units.ts'

const H = DEFAULT_HOST
const L = DEFAULT_HOST_LIMITS
const G = DEFAULT_GATEWAY
const host = fieldsOf(DEFAULT_HOST)
const listen = fieldsOf(DEFAULT_HOST_LIMITS)
const gateway = fieldsOf(DEFAULT_GATEWAY)
const revision = choice(...LEGACY_REVISIONS, ...MODERN_REVISIONS)

export const listenLimitsSchema = z.strictObject({
  max_body: listen.size('maxBodyBytes', 'Body of one request.'),
  max_header: listen.size('maxHeaderBytes', 'All headers of a request.'),
  header_lines: listen.count('maxHeaderLines', 'Headers of a request.', 10, 2_000),
  max_batch: listen.count('maxBatch', 'Messages in one batch, where the revision has batches.'),
  max_depth: listen.count('maxDepth', 'Levels of nesting in a message.', 1, 1_000),
  max_values: listen.count('maxValues', 'Values in a message.', 1, 100_000_000),
  max_keys: listen.count('maxKeysPerObject', 'Keys of one object in a message.'),
  connections: listen.count(
    'maxConnections',
    'Open connections; at most as many as the file descriptor limit of the process (`ulimit -n`) allows.',
  ),
  connections_per_address: listen.count(
    'maxConnectionsPerAddress',
    'Open connections from one address. Connections from this machine are limited only where this is set.',
  ),
  sessions: listen.count('maxSessions', 'Legacy sessions.'),
  in_flight: listen.count('maxInFlight', 'Calls in flight, of all hosts.'),
  in_flight_per_principal: listen.count(
    'maxInFlightPerPrincipal',
    'Calls in flight of one principal. Callers without a credential count in `in_flight` only.',
  ),
  in_flight_per_session: listen.count('maxInFlightPerSession', 'Calls in flight of one session.'),
  headers_timeout: listen.duration('headersTimeoutMs', 'Time until the headers of a request are complete.'),
  request_timeout: listen.duration('requestTimeoutMs', 'Time until a request is complete.'),
  unread_body: listen.size(
    'maxUnreadBytes',
    'Bytes that are still read from a refused body, for at most `request_timeout`. A host that writes before it reads then gets the answer.',
  ),
  keep_alive: listen.duration('keepAliveTimeoutMs', 'Time after which an idle connection is closed.'),
  session_idle: listen.duration('sessionIdleMs', 'Time after which an unused session ends.'),
  session_max: listen.duration('sessionMaxMs', 'Time after which every session ends.'),
  sessions_per_principal: listen.count(
    'maxSessionsPerPrincipal',
    'Sessions of one principal. Callers without a credential count in `sessions` only.',
  ),
  events: listen.count('maxEvents', 'Messages kept per stream, for a host that resumes it after its connection broke.'),
  event_bytes: listen.size('maxEventBytes', 'Bytes of these messages.'),
  session_event_bytes: listen.size('maxSessionEventBytes', 'Bytes kept for all streams of one session.'),
  event_age: listen.duration('maxEventAgeMs', 'How long they are kept.'),
  sse_keep_alive: listen.duration('sseKeepAliveMs', 'Interval of comments on a stream without messages.'),
  write_stall: listen.duration('writeStallMs', 'Time after which the stream of a host that reads nothing is closed.'),
  max_queued: listen.size('maxQueuedBytes', 'Bytes queued for one host. Answers do not count while it reads.'),
  event_log: listen.size(
    'maxTotalEventBytes',
    'Bytes kept for all sessions together, for resumed streams. Those of the longest idle sessions are dropped first.',
  ),
  loop_lag: listen.duration(
    'maxLoopLagMs',
    'Delay of the event loop. Above it for one second, new sessions are refused; for three seconds, calls as well.',
  ),
})

export const httpSchema = z.strictObject({
  bind: host.of('addresses', addressesOrNone, 'Addresses for hosts; `none` where `listen.unix` or `listen.systemd` is enough.', [
    '127.0.0.1:7420',
    '[::1]:7420',
  ]),
  path: host.of('path', urlPath, 'Path of Streamable HTTP.'),
  allowed_hosts: host.of(
    'allowedHosts',
    z.array(hostName),
    'Names that the `Host` header may contain, in addition to the loopback ones.',
  ),
  allowed_origins: host.of('allowedOrigins', z.array(origin), 'Origins of web pages that may connect, exact.'),
  public_url: host.of(
    'publicUrl',
    publicUrl,
    'The URL at which hosts and browsers reach Trunkline, if it is not a bound address: `https://mcp.example.com`, or with the path prefix of a proxy, `https://example.com/gateway`.',
  ),
  server: host.of(
    'httpServer',
    choice('own', 'node'),
    'The parser of fast-path requests; all others are always parsed by node:http.',
  ),
  sse: host.of('sse', flag, '`/sse` and `/messages` for hosts that support nothing newer.'),
  tls: field(
    z.strictObject({
      cert: field(filledText, 'File with the certificate and its chain, PEM.'),
      key: field(filledText, 'File with its key, PEM, without a passphrase.'),
    }),
    'HTTPS on all TCP addresses. The files are watched: a renewed certificate is used for new connections.',
  ),
  trusted_proxies: host.of(
    'trustedProxies',
    z.array(proxyEntry),
    'Proxies that may name the address of their client: addresses, networks, `loopback`, `unix`. `connections_per_address` does not apply to them.',
  ),
  proxy_protocol: host.of(
    'takesProxyHeader',
    flag,
    'Connections of these proxies begin with a header of the PROXY protocol, version 1 or 2.',
  ),
  forwarded: host.of(
    'forwarded',
    choice('x-forwarded-for', 'forwarded'),
    'The header of these proxies that names the client. They must set it themselves.',
  ),
})

export const namingSchema = z.strictObject({
  prefix: gateway.of(
    'prefix',
    choice('always', 'never'),
    '`never`: original names and URIs; of duplicates the first server wins.',
  ),
  max_length: gateway.count('maxNameLength', 'The longest exposed name.', 16, 128),
  collision: gateway.of(
    'collision',
    choice('warn', 'error'),
    'Two equal exposed names: leave one out with a warning, or refuse.',
  ),
})

export const gatewayTimeoutsSchema = z.strictObject({
  list_budget: gateway.duration(
    'listBudgetMs',
    'How long the first list waits for servers whose lists are not known yet. At a bridge to a server of both eras, the first legacy `initialize` also waits this long for its legacy side.',
  ),
  handshake_budget: gateway.of(
    'handshakeBudgetMs',
    pause,
    'How long the first handshake on stdio waits for servers that are not known yet, because it contains their instructions; `0s`: not at all.',
    formatDuration(G.handshakeBudgetMs),
  ),
})

export const gatewayLimitsSchema = z.strictObject({
  park_ttl: durationField('How long a modern host may take to answer the request of a legacy server.', G.parking.ttlMs),
  parked: countField('Calls that wait for such an answer.', G.parking.maxParked),
  parked_per_principal: countField(
    'Such calls of one principal. Callers without a credential count in `parked` only.',
    G.parking.maxPerPrincipal,
  ),
  in_flight_bytes: sizeField(
    'Bytes of messages in memory, of hosts and servers together, at most a quarter of the heap. Above it new calls are refused; above twice this value, large answers as well.',
    L.maxInFlightBytes,
  ),
  starts: gateway.count('maxStarts', 'Servers that start at the same time.'),
  retry_budget: gateway.count('retryPercent', 'Retried calls, in percent of all calls.', 0, 100),
  rate_per_principal: field(
    rate,
    'Calls of one principal; more are refused with `rate_limited`. Does not apply to unauthenticated callers.',
  ),
  results: sizeField(
    'Bytes kept of results that exceed their limit and are read as resources; the oldest are dropped first.',
    G.results.maxBytes,
  ),
  result_ttl: durationField('How long such a result is kept.', G.results.ttlMs),
  subscriptions: gateway.count('maxSubscriptions', 'Resources that one session, or one `subscriptions/listen`, watches.'),
  personal_catalogs: gateway.count(
    'maxPersonalCatalogs',
    'Catalogs kept for callers that sign in to servers separately; the least recently used is dropped, and built again on demand.',
  ),
})

export const cacheSchema = z.strictObject({
  fresh: gateway.duration(
    'freshMs',
    'Age at which a list is read again for a host that requests it; the answer waits up to 250 ms for that.',
  ),
  legacy_ttl: gateway.duration(
    'legacyTtlMs',
    'How long lists of a legacy server are valid; at most 30 s if it does not announce changes.',
  ),
  list_ttl: gateway.duration('listTtlCapMs', 'Upper bound of `ttlMs` on merged lists.'),
  page_items: gateway.count('pageMaxItems', 'Entries on one page of a merged list.'),
})

const includeItem = z
  .unknown()
  .meta({
    anyOf: [
      { type: 'string', minLength: 1 },
      {
        type: 'object',
        properties: { mcpServers: { type: 'string', minLength: 1 }, tags: { type: 'array', items: { type: 'string' } } },
        required: ['mcpServers'],
        additionalProperties: false,
      },
    ],
  })
  .transform((value, context) => {
    if (typeof value === 'string' && value !== '') return { path: value, tags: [], isHosts: false }
    const parsed = z.strictObject({ mcpServers: filledText, tags: z.array(text).optional() }).safeParse(value)
    if (parsed.success) return { path: parsed.data.mcpServers, tags: parsed.data.tags ?? [], isHosts: true }
    context.addIssue({ code: 'custom', message: 'expected a path such as ./servers/*.yaml, or { mcpServers: ./.mcp.json }' })
    return z.NEVER
  })

export const fileSchema = z
  .strictObject({
    $schema: field(text, 'For editors; ignored by Trunkline.'),
    version: field(count(1, 1), 'Version of the file format.', 1),
    include: field(
      z.array(includeItem),
      'More files: paths, with `*`, `?` and `**`; `{ mcpServers: path, tags: […] }` for a file of a host.',
    ),
    env_file: field(texts, 'Files of `NAME=value` lines for the variables below. The environment of the process wins.'),
    secrets: field(
      z.record(z.string().regex(SECRET_NAME), secretSchema),
      'Sources of secrets, by name: `${secret:name}`, or `${secret:provider/name}` if the entry contains `${name}`.',
    ),
    listen: field(
      z.strictObject({
        http: field(httpSchema, 'The HTTP listener.'),
        unix: field(
          filledText,
          'A unix socket in addition to the addresses, for hosts on this machine; on Windows a named pipe. Without `auth`, its permissions decide which users may connect.',
        ),
        unix_mode: field(fileMode, 'Its permissions.', '0600'),
        systemd: field(
          flag,
          'Listen on the sockets that systemd passes (`LISTEN_FDS`), in place of the default addresses.',
          false,
        ),
        revisions: field(
          z.strictObject({
            min: field(revision, 'The oldest revision for hosts.', H.revisions.min),
            max: field(revision, 'The newest revision for hosts.', H.revisions.max),
          }),
          'Revisions of the protocol.',
        ),
        stream_after: field(
          z.strictObject({
            legacy: field(
              pause,
              'For sessions of legacy hosts that can answer server requests; `0s`: streams from the start.',
              '200ms',
            ),
            modern: field(pause, 'For all other hosts.', '2s'),
          }),
          'Time after which the answer to a request becomes a stream; before it, the answer is one JSON body.',
        ),
        poll_after: field(
          durationOrNever,
          'Time after which streams of requests are closed; their hosts reconnect for the rest (sessions of 2025-11-25).',
          'never',
        ),
        orphan: durationField('How long a call of a legacy host continues after its connection broke.', L.orphanMs),
        workers: field(
          workers,
          'Processes that serve hosts, all at the same addresses, and one more that supervises them; `auto`: one for each core. See [several cores](scale-out.md#several-cores-of-one-machine).',
          1,
        ),
        limits: field(listenLimitsSchema, 'Limits for hosts.'),
      }),
      'The listeners for hosts.',
    ),
    auth: field(authSchema, 'Authentication of hosts over HTTP. `trunkline stdio` needs no credential.'),
    admin: field(adminSchema, 'The listener of operators.'),
    ui: field(uiSchema, 'The dashboard.'),
    naming: field(namingSchema, 'Exposed names.'),
    timeouts: field(gatewayTimeoutsSchema, 'Time-outs of the gateway itself.'),
    limits: field(gatewayLimitsSchema, 'Limits of the gateway itself.'),
    cache: field(cacheSchema, 'Lists, and how long they are valid.'),
    defaults: field(defaultsSchema, 'Defaults for every server.'),
    servers: field(
      z.record(z.string().regex(SERVER_KEY), serverSchema),
      'The servers behind the gateway, by key: a-z, 0-9 and `-`, at most 20, beginning with a letter.',
    ),
    toolsets: field(
      z.record(z.string(), toolsetSchema),
      'Named parts of the catalog, each at `/mcp/<name>`. A host that names none gets `default`.',
    ),
    policy: field(policySchema, 'Which calls are allowed. Without it, callers may call everything that they see.'),
    policy_tests: field(
      z.array(policyTestSchema),
      'Calls, each with the decision that `policy` must make. A file whose tests fail is refused, by `check` and at every reload.',
    ),
    lock: field(
      z.strictObject({
        file: field(
          filledText,
          'File of approved definitions, to be committed to git; relative to the folder of this file. `trunkline lock` writes it. Without it, the first definition of each tool counts as approved.',
        ),
        on_change: field(
          onChange,
          'What happens to a definition that differs from the approved one: `allow`: it is served; `warn`: served with a warning; `hold`: the approved one is served; `quarantine`: it is hidden. Servers may override this.',
          'warn',
        ),
        covers: field(
          z.array(choice(...LOCK_KINDS)),
          'The kinds of definitions in the file, for servers whose resources change often.',
          LOCK_KINDS,
        ),
      }),
      'Approval of definitions.',
    ),
    registry: field(registrySchema, 'The MCP registry that `trunkline add` reads.'),
    strict: field(
      flag,
      'Hidden characters, changed definitions and equal names are blocked, where the default is a warning.',
      false,
    ),
    faults: field(
      z.array(faultSchema),
      'Faults injected into calls on purpose, for hardening agents. Refused without `--allow-faults`.',
    ),
    telemetry: field(
      z.strictObject({
        log: field(
          z.strictObject({
            level: field(
              choice('trace', 'debug', 'info', 'warn', 'error', 'silent'),
              'Lowest level that is logged, to stderr.',
              'info',
            ),
            format: field(choice('auto', 'json', 'pretty'), '`auto`: pretty on a terminal, else JSON lines.', 'auto'),
            audit: field(filledText, 'File to which one line of JSON is added for every call and every denial.'),
            audit_bodies: field(
              flag,
              'These lines contain parameters and results as well, without secrets; up to 64 KiB each.',
              false,
            ),
            audit_on_failure: field(
              choice('refuse', 'drop'),
              'What happens when the file cannot be written: `refuse`: calls are refused; `drop`: calls continue, and lost lines are counted.',
              'refuse',
            ),
          }),
          'The log.',
        ),
        otlp: field(otlpSchema, 'Traces of calls and their durations, sent to a collector of OpenTelemetry.'),
        prometheus: field(prometheusSchema, 'Metrics, on the admin listener.'),
      }),
      'Log, traces and metrics.',
    ),
    reload: field(
      z.strictObject({
        watch: field(flag, 'Read the files again when they change.', true),
        confirm: field(flag, 'Changes are applied only by `trunkline reload` or SIGHUP; `trunkline plan` shows them.', false),
        drain: durationField('How long open calls may take when the process stops, or when a server is removed.', H.drainMs),
        lame_duck: field(
          pause,
          'The part of `drain` in which a stopping process still serves while `/readyz` is 503, so that proxies notice. Default: `0s` without a probe of `/readyz` in the last minute, else 5 s, or until three probes were refused, within 10 s.',
        ),
      }),
      'Changes while running.',
    ),
    state: field(
      z.strictObject({
        dir: field(filledText, 'Folder of stored lists and approvals, in place of the default folder of the system.'),
        key: field(
          sealKeys,
          'The key that seals tokens which hosts send back (session ids, cursors, states of calls, tasks), in place of a key in the state folder. The same for all replicas. 32 random bytes as base64 or hex digits, from a variable or a file: `${TRUNKLINE_KEY}`, `${file:/run/secrets/key}`. Of two keys (a list, or one text separated by a blank, a comma or a line break) the first seals, both open.',
        ),
      }),
      'State on disk.',
    ),
    replicas: field(
      z.strictObject({
        url: field(
          publicUrl,
          'The URL at which the other replicas reach this one, at a listener of `listen.http.bind`: `http://${POD_IP}:7420`. Requests that belong to another replica (sessions of legacy hosts, calls that wait for an answer) are passed on to it, once. Needs `state.key`.',
        ),
      }),
      'Several replicas behind one address.',
    ),
    store: field(
      storeKind,
      'A Valkey or Redis that all replicas share, so that they can take over sessions from each other: `redis://user:password@host:6379/0`, `rediss://` for TLS; `{ url: […], cluster: true }`; `{ url: […], sentinel: name of the primary }`, with `sentinel_user` and `sentinel_password` where sentinels need them; `prefix` of all keys, `trunkline` by default; `tls` with files `ca`, `cert` and `key` (PEM) and `server_name`, as for servers. Needs `state.key`.',
    ),
  })
  .meta({ title: 'Trunkline configuration', description: 'A configuration file of Trunkline, as YAML or JSON.' })

type Output = z.output<typeof fileSchema>
type SectionName = keyof Output
export type Section<K extends SectionName> = NonNullable<Output[K]>
/** All sections of a configuration except `servers`, whose entries are validated one by one. */
export type Settings = {
  [K in Exclude<SectionName, '$schema' | 'version' | 'include' | 'env_file' | 'secrets' | 'servers'>]?: Section<K>
}
