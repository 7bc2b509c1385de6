/** What may stand in a configuration file of ours. The one source of validation, of `schema/v1.json` and of `docs/configuration.md`. */
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

const H = DEFAULT_HOST
const L = DEFAULT_HOST_LIMITS
const G = DEFAULT_GATEWAY
const revision = choice(...LEGACY_REVISIONS, ...MODERN_REVISIONS)

const listenLimits = z.strictObject({
  max_body: sizeField('One request of a host.', L.maxBodyBytes),
  max_header: sizeField('All headers of a request.', L.maxHeaderBytes),
  header_lines: countField('Headers of a request.', L.maxHeaderLines, 10, 2_000),
  max_batch: countField('Messages in one batch, where the revision has batches.', L.maxBatch),
  max_depth: countField('Levels of nesting in a message.', L.maxDepth, 1, 1_000),
  max_values: countField('Values in a message.', L.maxValues, 1, 100_000_000),
  max_keys: countField('Keys of one object in a message.', L.maxKeysPerObject),
  connections: countField(
    'Open connections; never more than the file descriptors of the process (`ulimit -n`) leave room for.',
    L.maxConnections,
  ),
  connections_per_address: countField(
    'And from one address; those from this machine only where it is set.',
    L.maxConnectionsPerAddress,
  ),
  sessions: countField('Legacy sessions.', L.maxSessions),
  in_flight: countField('Calls in flight, of all hosts.', L.maxInFlight),
  in_flight_per_principal: countField(
    'And of one principal; everybody without a credential counts in `in_flight` only.',
    L.maxInFlightPerPrincipal,
  ),
  in_flight_per_session: countField('Calls in flight of one session.', L.maxInFlightPerSession),
  headers_timeout: durationField('Until the headers of a request are there.', L.headersTimeoutMs),
  request_timeout: durationField('Until a request is there.', L.requestTimeoutMs),
  unread_body: sizeField(
    'Read of a body that was refused, so that a host that writes before it reads gets the answer; no longer than `request_timeout`.',
    L.maxUnreadBytes,
  ),
  keep_alive: durationField('An idle connection stays open.', L.keepAliveTimeoutMs),
  session_idle: durationField('An unused session ends.', L.sessionIdleMs),
  session_max: durationField('A session ends, used or not.', L.sessionMaxMs),
  sessions_per_principal: countField(
    'And of one principal; everybody without a credential counts in `sessions` only.',
    L.maxSessionsPerPrincipal,
  ),
  events: countField('Messages kept of one stream, for a host whose connection broke.', L.maxEvents),
  event_bytes: sizeField('And bytes of them.', L.maxEventBytes),
  session_event_bytes: sizeField('Bytes kept of all streams of one session.', L.maxSessionEventBytes),
  event_age: durationField('How long they are kept.', L.maxEventAgeMs),
  sse_keep_alive: durationField('A silent stream gets a comment.', L.sseKeepAliveMs),
  write_stall: durationField('A host that takes nothing loses its stream.', L.writeStallMs),
  max_queued: sizeField('Queued for one slow host.', L.maxQueuedBytes),
  event_log: sizeField(
    'Kept of all sessions together, for streams that are resumed. The sessions idle longest lose theirs first.',
    L.maxTotalEventBytes,
  ),
  loop_lag: durationField(
    'So late we may be for a second before new sessions are refused, and for three before calls are.',
    L.maxLoopLagMs,
  ),
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
    if (typeof value === 'string' && value !== '') return { path: value, tags: [] }
    const parsed = z.strictObject({ mcpServers: filledText, tags: z.array(text).optional() }).safeParse(value)
    if (parsed.success) return { path: parsed.data.mcpServers, tags: parsed.data.tags ?? [] }
    context.addIssue({ code: 'custom', message: 'expected a path such as ./servers/*.yaml, or { mcpServers: ./.mcp.json }' })
    return z.NEVER
  })

export const fileSchema = z
  .strictObject({
    $schema: field(text, 'For editors; says nothing to Trunkline.'),
    version: field(count(1, 1), 'Version of this form.', 1),
    include: field(
      z.array(includeItem),
      'More files: paths, with `*`, `?` and `**`; `{ mcpServers: path, tags: […] }` for a file of a host.',
    ),
    env_file: field(texts, 'Files of `NAME=value` lines for the variables below. The environment of the process wins.'),
    secrets: field(
      z.record(z.string().regex(SECRET_NAME), secretSchema),
      'Where secrets come from, by name: `${secret:name}`, or `${secret:provider/name}` where `${name}` stands in the entry.',
    ),
    listen: field(
      z.strictObject({
        http: field(
          z.strictObject({
            bind: field(addressesOrNone, 'Where hosts come in; `none` where `listen.unix` or `listen.systemd` is enough.', ['127.0.0.1:7420', '[::1]:7420']),
            path: field(urlPath, 'Path of Streamable HTTP.', H.path),
            allowed_hosts: field(
              z.array(hostName),
              'Names beside the loopback ones that the `Host` header may carry.',
              H.allowedHosts,
            ),
            allowed_origins: field(z.array(origin), 'Origins of web pages that may come in, exact.', H.allowedOrigins),
            public_url: field(
              publicUrl,
              'How hosts and browsers reach us, if not at a bound address: `https://mcp.example.com`, or with the path that a proxy has before ours, `https://example.com/gateway`.',
            ),
            server: field(
              choice('own', 'node'),
              'What reads plain requests; all others are always read by node:http.',
              H.httpServer,
            ),
            sse: field(flag, '`/sse` and `/messages` for hosts that know nothing newer.', H.sse),
            tls: field(
              z.strictObject({
                cert: field(filledText, 'File with the certificate and its chain, PEM.'),
                key: field(filledText, 'File with its key, PEM, without a passphrase.'),
              }),
              'HTTPS on all TCP addresses. The files are watched: a renewed certificate is used for new connections.',
            ),
            trusted_proxies: field(
              z.array(proxyEntry),
              'Proxies that may say who their client is: addresses, networks, `loopback`, `unix`. `connections_per_address` does not hold for them.',
              H.trustedProxies,
            ),
            proxy_protocol: field(
              flag,
              'Connections of these proxies begin with a header of the PROXY protocol, version 1 or 2.',
              H.takesProxyHeader,
            ),
            forwarded: field(
              choice('x-forwarded-for', 'forwarded'),
              'The one header of these proxies that names the client. It must be one that they write themselves.',
              H.forwarded,
            ),
          }),
          'The HTTP listener.',
        ),
        unix: field(
          filledText,
          'A unix socket beside the addresses, for hosts of this machine; on Windows a named pipe. Without `auth`, its permissions say which users may connect.',
        ),
        unix_mode: field(fileMode, 'Its permissions.', '0600'),
        systemd: field(flag, 'Listen on the sockets that systemd passes (`LISTEN_FDS`), in place of the usual addresses.', false),
        revisions: field(
          z.strictObject({
            min: field(revision, 'The oldest revision that is spoken with hosts.', H.revisions.min),
            max: field(revision, 'The newest one.', H.revisions.max),
          }),
          'Revisions of the protocol.',
        ),
        stream_after: field(
          z.strictObject({
            legacy: field(pause, 'For sessions of legacy hosts that may be asked; `0s`: streams from the start.', '200ms'),
            modern: field(pause, 'For all other hosts.', '2s'),
          }),
          'How long an answer may stay undecided between one JSON body and a stream.',
        ),
        poll_after: field(
          durationOrNever,
          'Streams of requests are closed after this long, and their hosts come back for the rest (sessions of 2025-11-25).',
          'never',
        ),
        orphan: durationField('How long a call runs on for a legacy host whose connection broke.', L.orphanMs),
        workers: field(
          workers,
          'Processes that serve hosts, all at the same addresses, with one more that watches over them; `auto`: one for each core. See [several cores](scale-out.md#several-cores-of-one-machine).',
          1,
        ),
        limits: field(listenLimits, 'Limits towards hosts.'),
      }),
      'Where hosts come in.',
    ),
    auth: field(authSchema, 'Who may come in over HTTP, and as whom. What comes by `trunkline stdio` is asked for nothing.'),
    admin: field(adminSchema, 'The listener of operators.'),
    ui: field(uiSchema, 'The dashboard.'),
    naming: field(
      z.strictObject({
        prefix: field(
          choice('always', 'never'),
          '`never`: original names and URIs; duplicates belong to the first server.',
          G.prefix,
        ),
        max_length: countField('The longest exposed name.', G.maxNameLength, 16, 128),
        collision: field(choice('warn', 'error'), 'Two equal exposed names: leave one out, or refuse.', G.collision),
      }),
      'Exposed names.',
    ),
    timeouts: field(
      z.strictObject({
        list_budget: durationField(
          'How long the first list waits for servers that are still unknown, and the first legacy `initialize` at a bridge for the legacy side of a server of both eras.',
          G.listBudgetMs,
        ),
        handshake_budget: durationField(
          'How long the first handshake on stdio waits for servers that are still unknown, because it names their instructions; 0s: not at all.',
          G.handshakeBudgetMs,
        ),
      }),
      'Time-outs of the gateway itself.',
    ),
    limits: field(
      z.strictObject({
        park_ttl: durationField('How long a modern host may take to answer what a legacy server asks.', G.parking.ttlMs),
        parked: countField('Calls that wait for such an answer, in all.', G.parking.maxParked),
        parked_per_principal: countField(
          'And of one principal; everybody without a credential counts in `parked` only.',
          G.parking.maxPerPrincipal,
        ),
        in_flight_bytes: sizeField(
          'Messages held at one time, of hosts and servers together, but never more than a quarter of the heap. Beyond it no new call is taken; beyond twice of it, no large answer either.',
          L.maxInFlightBytes,
        ),
        starts: countField('Servers that start at the same time.', G.maxStarts),
        retry_budget: countField('Calls that are sent a second time, in per cent of all.', G.retryPercent, 0, 100),
        rate_per_principal: field(
          rate,
          'Calls of one principal; more are refused with `rate_limited`. Does not apply to unauthenticated callers.',
        ),
        results: sizeField(
          'What is kept of results over their limit, to be read as resources; the oldest goes first.',
          G.results.maxBytes,
        ),
        result_ttl: durationField('How long it is kept.', G.results.ttlMs),
        subscriptions: countField('Resources that one session, or one `subscriptions/listen`, watches.', G.maxSubscriptions),
        personal_catalogs: countField(
          'Catalogs kept of callers who sign in at servers for themselves; the least recently used is dropped, and built again on demand.',
          G.maxPersonalCatalogs,
        ),
      }),
      'Limits of the gateway itself.',
    ),
    cache: field(
      z.strictObject({
        fresh: durationField(
          'Age at which a list is read again for a host that asks for it; the answer waits up to 250 ms for that.',
          G.freshMs,
        ),
        legacy_ttl: durationField('How long lists of a legacy server are believed.', G.legacyTtlMs),
        list_ttl: durationField('Upper bound of `ttlMs` on merged lists.', G.listTtlCapMs),
        page_items: countField('Entries on one page of a merged list.', G.pageMaxItems),
      }),
      'Lists and how long they hold.',
    ),
    defaults: field(defaultsSchema, 'What holds for every server that says nothing else.'),
    servers: field(
      z.record(z.string().regex(SERVER_KEY), serverSchema),
      'The servers behind the gateway, by key: a-z, 0-9 and `-`, at most 20, beginning with a letter.',
    ),
    toolsets: field(
      z.record(z.string(), toolsetSchema),
      'Named parts of the catalog, each at `/mcp/<name>`. `default` is what a host gets that names none.',
    ),
    policy: field(policySchema, 'Who may call what. Without: everything that a caller sees may be called.'),
    policy_tests: field(
      z.array(policyTestSchema),
      'Calls and what `policy` is to decide of them. A file whose tests fail is refused, by `check` and at every reload.',
    ),
    lock: field(
      z.strictObject({
        file: field(
          filledText,
          'Definitions as they were approved, for git, from the folder of this file. `trunkline lock` writes it. Without: what was seen first of tools.',
        ),
        on_change: field(
          onChange,
          'What becomes of a definition that is not as it was approved; servers may say otherwise: served; served and told; the approved one stays; hidden.',
          'warn',
        ),
        covers: field(
          z.array(choice(...LOCK_KINDS)),
          'What the file holds, for servers whose resources come and go.',
          LOCK_KINDS,
        ),
      }),
      'What servers may offer.',
    ),
    registry: field(registrySchema, 'The MCP registry that `trunkline add` reads.'),
    strict: field(
      flag,
      'What is only told of by default is blocked: hidden characters, changed definitions, equal names.',
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
            level: field(choice('trace', 'debug', 'info', 'warn', 'error', 'silent'), 'What is logged, to stderr.', 'info'),
            format: field(choice('auto', 'json', 'pretty'), '`auto`: pretty on a terminal, else JSON lines.', 'auto'),
            audit: field(filledText, 'File to which one line of JSON is added for every call and every denial.'),
            audit_bodies: field(
              flag,
              'Parameters and results stand in these lines, too, without secrets; up to 64 KiB each.',
              false,
            ),
            audit_on_failure: field(
              choice('refuse', 'drop'),
              'What happens when the file cannot be written: no call is made, or calls go on and the lines that are lost are counted.',
              'refuse',
            ),
          }),
          'The log.',
        ),
        otlp: field(otlpSchema, 'Traces of calls and their durations, sent to a collector of OpenTelemetry.'),
        prometheus: field(prometheusSchema, 'Metrics, on the admin listener.'),
      }),
      'What can be seen from outside.',
    ),
    reload: field(
      z.strictObject({
        watch: field(flag, 'Read the files again when they change.', true),
        confirm: field(flag, 'What changed waits for `trunkline reload` or SIGHUP; `trunkline plan` shows it.', false),
        drain: durationField('How long calls may end when we stop, or when a server leaves.', H.drainMs),
        lame_duck: field(
          pause,
          'How long, of `drain`, we serve on when we stop while `/readyz` is 503 already, so that proxies notice. Default: `0s` without a probe of `/readyz` in the last minute, else 5 s, or until three probes were refused, within 10 s.',
        ),
      }),
      'Changes while running.',
    ),
    state: field(
      z.strictObject({
        dir: field(filledText, 'Where lists and verdicts are kept, in place of the usual folder of the system.'),
        key: field(
          sealKeys,
          'What seals tokens that hosts bring back (session ids, cursors, states of calls, tasks), in place of a key of this state folder: the same for all replicas. 32 random bytes as base64 or hex digits, from a variable or a file: `${TRUNKLINE_KEY}`, `${file:/run/secrets/key}`. Two keys, as a list or in one text with a blank, a comma or a line break between: the first seals, both open.',
        ),
      }),
      'What is kept on disk.',
    ),
    replicas: field(
      z.strictObject({
        url: field(
          publicUrl,
          'How the other replicas reach this one, at a listener of `listen.http.bind`: `http://${POD_IP}:7420`. What belongs to one replica (sessions of legacy hosts, calls that wait for an answer) is passed on to it once. Needs `state.key`.',
        ),
      }),
      'Several replicas behind one address.',
    ),
    store: field(
      storeKind,
      'A Valkey or Redis that all replicas share, so that they take over from each other: `redis://user:password@host:6379/0`, `rediss://` for TLS; `{ url: […], cluster: true }`; `{ url: […], sentinel: name of the primary }`, with `sentinel_user` and `sentinel_password` where sentinels ask for them; `prefix` of all keys, `trunkline` by default; `tls` with files `ca`, `cert` and `key` (PEM) and `server_name`, as of servers. Needs `state.key`.',
    ),
  })
  .meta({ title: 'Trunkline configuration', description: 'A configuration file of Trunkline, as YAML or JSON.' })

type Output = z.output<typeof fileSchema>
export type SectionName = keyof Output
export type Section<K extends SectionName> = NonNullable<Output[K]>
/** Everything a set of files says, but their servers, which are read one by one. */
export type Settings = {
  [K in Exclude<SectionName, '$schema' | 'version' | 'include' | 'env_file' | 'secrets' | 'servers'>]?: Section<K>
}
