/** `servers.<key>` and `defaults`. Unknown keys are errors. */
import { z } from 'zod'
import { DEFAULT_LIMITS, DEFAULT_SERVER, DEFAULT_TIMEOUTS } from '../../downstream/options.ts'
import { credentialsSchema } from './credentials-schema.ts'
import { curatedTool, toolFilter, uriFilter, nameFilter } from './curation-schema.ts'
import {
  argument,
  choice,
  countField,
  durationField,
  durationOrNever,
  exposedName,
  field,
  filledText,
  flag,
  headerValue,
  hostName,
  httpUrl,
  prefixKind,
  proxyUrl,
  rate,
  sizeField,
  text,
} from './kinds.ts'
import { formatDuration } from './units.ts'

const T = DEFAULT_TIMEOUTS
const L = DEFAULT_LIMITS
const S = DEFAULT_SERVER

const timeouts = z.strictObject({
  start: durationField('Start of the process or connection, including the handshake.', T.startMs),
  probe: durationField('Time without an answer on stdio after which the legacy handshake is tried as well.', T.probeMs),
  wait: durationField('How long a call waits for a server that is starting.', T.connectTimeoutMs),
  idle: durationField('Time without a message during a call.', T.idleMs),
  total: durationField('Total time of a call.', T.totalMs),
  ping: durationField('Time without a message after which a legacy server over HTTP gets a ping.', T.pingMs),
  grace: durationField(
    'How long the entries of a server stay listed while its command cannot be found, such as during an upgrade.',
    T.graceMs,
  ),
})

const limits = z.strictObject({
  concurrency: countField('Calls at one time.', L.maxConcurrent),
  queue: countField('Calls that wait for a free slot, for 10 s at most.', L.maxQueued, 0),
  rate: field(rate, 'Calls of all callers together; more are refused with `rate_limited`.'),
  log_messages: field(rate, 'Log messages of one connection that reach hosts; more are dropped.', L.maxLogMessages.text),
  write_queue: sizeField(
    'Bytes sent to a server on a pipe that it has not read yet. Further requests wait, for 10 s at most.',
    L.maxWriteQueueBytes,
  ),
  links: countField('Connections per server and caller.', L.maxLinks, 1, 10_000),
  restarts: countField('Restarts in one minute after the process ended unexpectedly.', L.maxRestarts),
  stderr: sizeField('Bytes kept of the stderr of its process.', L.maxStderrBytes),
  max_message: sizeField('Size of one message from the server.', L.maxMessageBytes),
  tools: countField('Tools read from the server.', L.maxTools),
  entries: countField('Prompts, resources or templates read from the server.', L.maxEntries),
  pages: countField('Pages of one list.', L.maxPages),
  max_text: sizeField('Size of one title, description or other text of a definition.', L.maxTextBytes),
  max_schema: sizeField('Size of one schema of a definition.', L.maxSchemaBytes),
  max_schema_depth: countField('Levels of nesting in a schema or another member of a definition.', L.maxSchemaDepth, 1, 500),
})

const lifecycle = z.strictObject({
  start: field(choice('eager', 'lazy'), '`eager`: at once. `lazy`: at first use, once its lists are stored.', S.start),
  sharing: field(choice('session', 'principal', 'shared', 'call'), 'The scope that shares one connection to a legacy server.', S.sharing),
  spare: countField(
    'Processes started in advance for the next session: after the first legacy session, if a start takes over 1 s; they end after 10 idle minutes.',
    S.spare,
    0,
    1,
  ),
  idle_stop: field(durationOrNever, 'Time after which an unused connection is closed, or a lazy server stops.', formatDuration(S.idleStopMs)),
})

const hiddenCharacters = field(
  choice('warn', 'strip', 'drop'),
  'Invisible characters in definitions: `warn`: served with a warning; `strip`: served without them; `drop`: the definition is left out.',
  S.hidden,
)

export const onChange = choice('allow', 'warn', 'hold', 'quarantine')

const lock = field(
  z.strictObject({
    on_change: field(
      onChange,
      'A definition that differs from the lock file (without one: a tool that differs from its first definition): `allow`: it is served; `warn`: served with a warning; `hold`: the old one is served; `quarantine`: it is hidden. `trunkline approve` ends the last two.',
      S.onChange,
    ),
  }),
  'Changes of definitions.',
)

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
  transport: field(choice('auto', 'http', 'sse'), 'Streamable HTTP, the older HTTP+SSE, or detected.', S.transport),
  era: field(choice('auto', 'legacy', 'modern'), 'Revisions up to 2025-11-25, from 2026-07-28, or detected.', S.era),
  http_client: field(
    choice('own', 'undici'),
    'The HTTP client for `http://` URLs; for `https://` and through a proxy it is always undici.',
    S.httpClient,
  ),
  proxy: field(
    proxyUrl,
    'HTTP proxy to the server and its authorization server, in place of `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` of the environment; `none`: no proxy. This machine is always reached directly.',
  ),
  tls,
  headers: field(z.record(z.string(), headerValue), 'Sent with every HTTP request to the server.'),
  credentials: field(credentialsSchema, 'Authentication to the server.'),
  trusted: field(flag, '`true`: its annotations may affect retries and policy. `false`: it also gets less information and fewer permissions.'),
  prefix: field(prefixKind, 'Prefix of its exposed names, in place of the key.'),
  display_name: field(filledText, 'Its name in labels and messages, in place of the key.'),
  tags: field(z.array(filledText), 'Words by which toolsets select servers.'),
  enabled: field(flag, '`false`: the server is checked and left out.', true),
  roots: field(z.array(filledText), 'Folders (relative to the folder of the file) or URIs in which the server may work.'),
  timeouts: field(timeouts, 'Time-outs of this server.'),
  limits: field(limits, 'Limits of this server.'),
  lifecycle: field(lifecycle, 'Start, sharing and stop of its connections.'),
  alias: field(z.record(z.string(), exposedName), 'Exposed name by original name; wins over every rule of naming.'),
  filter: toolFilter,
  tools: field(z.record(z.string(), curatedTool), 'Changes to single tools, by the name that the server gives them.'),
  prompts: nameFilter('The prompts that hosts see.'),
  resources: field(
    z.strictObject({
      ...uriFilter,
      rewrite: field(
        choice('namespaced', 'identity'),
        '`namespaced`: `<prefix>+<uri>`. `identity`: as the server has them.',
        S.uris,
      ),
    }),
    'The resources that hosts see, and how they are exposed.',
  ),
  unalias_arguments: field(flag, 'Exposed URIs in arguments become original ones.', S.unaliasArguments),
  decorate_titles: field(flag, 'Titles end with the display name.', S.decorateTitles),
  dynamic_lists: field(
    flag,
    '`true`: the lists of a session, or of a principal, are read over its own connection as soon as that is open. `false`: they are read once the server announces a change on that connection.',
    S.dynamicLists,
  ),
  apps: field(flag, 'MCP Apps of this server are passed on.', S.apps),
  hidden_characters: hiddenCharacters,
  lock,
  drive_tasks: field(flag, 'Trunkline polls its tasks for hosts that do not support tasks.', S.driveTasks),
  instructions: field(flag, 'Its instructions are part of the instructions of Trunkline.', S.instructions),
})

export const defaultsSchema = z.strictObject({
  timeouts: field(timeouts, 'Time-outs of every server.'),
  limits: field(limits, 'Limits of every server.'),
  lifecycle: field(lifecycle, 'Start, sharing and stop of connections.'),
  env: field(z.strictObject({ inherit: field(z.array(text), INHERIT) }), 'Inherited variables of processes.'),
  hidden_characters: hiddenCharacters,
  lock,
})

export type ServerEntry = z.output<typeof serverSchema>
export type Defaults = z.output<typeof defaultsSchema>
