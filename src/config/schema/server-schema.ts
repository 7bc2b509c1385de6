/** `servers.<key>` and `defaults`. Unknown keys are errors. */
import { z } from 'zod'
import { DEFAULT_LIMITS, DEFAULT_SERVER, DEFAULT_TIMEOUTS } from '../../downstream/options.ts'
import { credentialsSchema } from './credentials-schema.ts'
import { curatedTool, toolFilter, uriFilter, nameFilter } from './curation-schema.ts'
import {
  argument,
  choice,
  durationOrNever,
  exposedName,
  field,
  fieldsOf,
  filledText,
  flag,
  headerValue,
  hostName,
  httpUrl,
  prefixKind,
  proxyUrl,
  rate,
  text,
} from './kinds.ts'
import { formatDuration } from './units.ts'

const T = fieldsOf(DEFAULT_TIMEOUTS)
const L = fieldsOf(DEFAULT_LIMITS)
const S = fieldsOf(DEFAULT_SERVER)

export const timeoutsSchema = z.strictObject({
  start: T.duration('startMs', 'Start of the process or connection, including the handshake.'),
  probe: T.duration('probeMs', 'Time without an answer on stdio after which the legacy handshake is tried as well.'),
  wait: T.duration('connectTimeoutMs', 'How long a call waits for a server that is starting.'),
  idle: T.duration('idleMs', 'Time during a call without a message and, over Streamable HTTP, without more of one.'),
  total: T.duration('totalMs', 'Total time of a call.'),
  ping: T.duration('pingMs', 'Time without a message after which a legacy server over HTTP gets a ping.'),
  grace: T.duration(
    'graceMs',
    'How long the entries of a server stay listed while its command cannot be found, such as during an upgrade.',
  ),
})

export const serverLimitsSchema = z.strictObject({
  concurrency: L.count('maxConcurrent', 'Calls at one time.'),
  queue: L.count('maxQueued', 'Calls that wait for a free slot or connection, for 10 s at most.', 0),
  rate: L.of('rate', rate, 'Calls of all callers together; more are refused with `rate_limited`.'),
  log_messages: L.of(
    'maxLogMessages',
    rate,
    'Log messages of one connection that reach hosts; more are dropped.',
    DEFAULT_LIMITS.maxLogMessages.text,
  ),
  write_queue: L.size(
    'maxWriteQueueBytes',
    'Bytes sent to a server on a pipe that it has not read yet. Further requests wait, for 10 s at most.',
  ),
  links: L.count('maxLinks', 'Connections per server and caller.', 1, 10_000),
  restarts: L.count('maxRestarts', 'Restarts in one minute after the process ended unexpectedly.'),
  stderr: L.size('maxStderrBytes', 'Bytes kept of the stderr of its process.'),
  max_message: L.size('maxMessageBytes', 'Size of one message from the server.'),
  tools: L.count('maxTools', 'Tools read from the server.'),
  entries: L.count('maxEntries', 'Prompts, resources or templates read from the server.'),
  pages: L.count('maxPages', 'Pages of one list.'),
  max_text: L.size('maxTextBytes', 'Size of one title, description or other text of a definition.'),
  max_schema: L.size('maxSchemaBytes', 'Size of one schema of a definition.'),
  max_schema_depth: L.count('maxSchemaDepth', 'Levels of nesting in a schema or another member of a definition.', 1, 500),
})

export const lifecycleSchema = z.strictObject({
  start: S.of('start', choice('eager', 'lazy'), '`eager`: at once. `lazy`: at first use, once its lists are stored.'),
  sharing: S.of(
    'sharing',
    choice('session', 'principal', 'shared', 'call'),
    'The scope that shares one connection to a legacy server.',
  ),
  spare: S.count(
    'spare',
    'Processes started in advance for the next session: after the first legacy session, if a start takes over 1 s; they end after 10 idle minutes.',
    0,
    1,
  ),
  idle_stop: S.of(
    'idleStopMs',
    durationOrNever,
    'Time after which an unused connection is closed. The one that lists are read on stays open, unless `start` is `lazy`: then the next call opens it again.',
    formatDuration(DEFAULT_SERVER.idleStopMs),
  ),
})

const hiddenCharacters = S.of(
  'hidden',
  choice('warn', 'strip', 'drop'),
  'Invisible characters in definitions: `warn`: served with a warning; `strip`: served without them; `drop`: the definition is left out.',
)

export const onChange = choice('allow', 'warn', 'hold', 'quarantine')

export const serverLockSchema = z.strictObject({
  on_change: S.of(
    'onChange',
    onChange,
    'A definition that differs from the lock file (without one: a tool that differs from its first definition): `allow`: it is served; `warn`: served with a warning; `hold`: the old one is served; `quarantine`: it is hidden. `trunkline approve` ends the last two.',
  ),
})

const lock = field(serverLockSchema, 'Changes of definitions.')

const tls = field(
  z.strictObject({
    ca: field(filledText, 'File of trusted certificates (PEM), in place of those that Node trusts.'),
    cert: field(filledText, 'File of the client certificate (PEM), for servers that require one; with `key`.'),
    key: field(filledText, 'File of its private key (PEM), without a passphrase.'),
    server_name: field(hostName, "Name in the server's certificate and in SNI, in place of the host of `url`."),
  }),
  'TLS to the server. Paths are relative to the folder of the file; changed files are read again.',
)

const INHERIT = 'Names of variables that a process inherits, in place of the default ones; `LC_*` matches all with this prefix.'

export const serverSchema = z.strictObject({
  command: field(filledText, 'Program to start, without a shell. A relative path with a `/` starts at the folder of the file.'),
  args: field(z.array(argument), 'Its arguments, unchanged.'),
  env: field(
    z.object({ inherit: field(z.array(filledText), INHERIT) }).catchall(argument),
    'Its environment, in addition to inherited variables: `NAME: value`.',
  ),
  cwd: field(filledText, 'Its working directory, relative to the folder of the file.', '.'),
  url: field(httpUrl, 'URL of the server. With `command`: the process that is started serves this URL.'),
  transport: S.of('transport', choice('auto', 'http', 'sse'), 'Streamable HTTP, the older HTTP+SSE, or detected.'),
  era: S.of('era', choice('auto', 'legacy', 'modern'), 'Revisions up to 2025-11-25, from 2026-07-28, or detected.'),
  http_client: S.of(
    'httpClient',
    choice('own', 'undici'),
    'The HTTP client for `http://` URLs; for `https://` and through a proxy it is always undici.',
  ),
  proxy: field(
    proxyUrl,
    'HTTP proxy to the server and its authorization server, in place of `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` of the environment; `none`: no proxy. This machine is always reached directly.',
  ),
  tls,
  headers: field(z.record(z.string(), headerValue), 'Sent with every HTTP request to the server.'),
  credentials: field(credentialsSchema, 'Authentication to the server.'),
  trusted: S.of(
    'trusted',
    flag,
    '`true`: its annotations may affect retries and policy. `false`: it also gets less information and fewer permissions.',
  ),
  prefix: field(prefixKind, 'Prefix of its exposed names, in place of the key.'),
  display_name: field(filledText, 'Its name in labels and messages, in place of the key.'),
  tags: field(z.array(filledText), 'Words by which toolsets select servers.'),
  enabled: field(flag, '`false`: the server is checked and left out.', true),
  roots: field(z.array(filledText), 'Folders (relative to the folder of the file) or URIs in which the server may work.'),
  timeouts: field(timeoutsSchema, 'Time-outs of this server.'),
  limits: field(serverLimitsSchema, 'Limits of this server.'),
  lifecycle: field(lifecycleSchema, 'Start, sharing and stop of its connections.'),
  alias: field(
    z.record(z.string(), exposedName),
    'Exposed name by original name; wins over every rule of naming.',
    undefined,
    'alias',
  ),
  filter: toolFilter,
  tools: field(z.record(z.string(), curatedTool), 'Changes to single tools, by the name that the server gives them.'),
  prompts: nameFilter('The prompts that hosts see.'),
  resources: field(
    z.strictObject({
      ...uriFilter,
      rewrite: field(
        choice('namespaced', 'identity'),
        '`namespaced`: `<prefix>+<uri>`. `identity`: as the server has them.',
        DEFAULT_SERVER.uris,
      ),
    }),
    'The resources that hosts see, and how they are exposed.',
  ),
  unalias_arguments: S.of('unaliasArguments', flag, 'Exposed URIs in arguments become original ones.'),
  decorate_titles: S.of('decorateTitles', flag, 'Titles end with the display name.'),
  dynamic_lists: S.of(
    'dynamicLists',
    flag,
    '`true`: the lists of a session, or of a principal, are read over its own connection as soon as that is open. `false`: they are read once the server announces a change on that connection.',
  ),
  apps: S.of('apps', flag, 'MCP Apps of this server are passed on.'),
  hidden_characters: hiddenCharacters,
  lock,
  drive_tasks: S.of('driveTasks', flag, 'Trunkline polls its tasks for hosts that do not support tasks.'),
  instructions: S.of('instructions', flag, 'Its instructions are part of the instructions of Trunkline.'),
})

export const defaultsSchema = z.strictObject({
  timeouts: field(timeoutsSchema, 'Time-outs of every server.'),
  limits: field(serverLimitsSchema, 'Limits of every server.'),
  lifecycle: field(lifecycleSchema, 'Start, sharing and stop of connections.'),
  env: field(z.strictObject({ inherit: field(z.array(text), INHERIT) }), 'Inherited variables of processes.'),
  hidden_characters: hiddenCharacters,
  lock,
})

export type ServerEntry = z.output<typeof serverSchema>
export type Defaults = z.output<typeof defaultsSchema>
