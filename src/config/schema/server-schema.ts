/** What may stand under `servers.<key>` and `defaults`. Strict: a key without behaviour is an error, not a wish. */
import { z } from 'zod'
import { DEFAULT_LIMITS, DEFAULT_SERVER, DEFAULT_TIMEOUTS } from '../../downstream/options.ts'
import { credentialsSchema } from './credentials.ts'
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
  start: durationField('Start of the process or connection, and handshake, together.', T.startMs),
  probe: durationField('Silence on stdio after which the legacy handshake is tried beside the modern one.', T.probeMs),
  wait: durationField('How long a call waits for a server that is starting.', T.connectTimeoutMs),
  idle: durationField('Silence during a call.', T.idleMs),
  total: durationField('A call from beginning to end, whatever happens.', T.totalMs),
  ping: durationField('Silence after which a legacy server over HTTP is asked whether it is there.', T.pingMs),
  grace: durationField(
    'How long the entries of a server that ran stay listed while its command cannot be found, as during an upgrade.',
    T.graceMs,
  ),
})

const limits = z.strictObject({
  concurrency: countField('Calls at one time.', L.maxConcurrent),
  queue: countField('Calls that wait for their turn, for 10 s at most.', L.maxQueued, 0),
  rate: field(rate, 'Calls of all callers together; more are refused with `rate_limited`.'),
  log_messages: field(rate, 'Log messages of one connection that reach hosts; more are dropped.', L.maxLogMessages.text),
  write_queue: sizeField(
    'Sent to a server on a pipe and not read by it. Requests beyond wait, for 10 s at most.',
    L.maxWriteQueueBytes,
  ),
  links: countField('Connections per server and caller.', L.maxLinks, 1, 10_000),
  restarts: countField('Processes started in a minute in place of those that ended by themselves.', L.maxRestarts),
  stderr: sizeField('Kept of what its process prints on stderr.', L.maxStderrBytes),
  max_message: sizeField('One message from the server.', L.maxMessageBytes),
  tools: countField('Tools read from the server.', L.maxTools),
  entries: countField('Prompts, resources or templates read from the server.', L.maxEntries),
  pages: countField('Pages of one list.', L.maxPages),
  max_text: sizeField('One title, description or other text of a definition.', L.maxTextBytes),
  max_schema: sizeField('One schema of a definition.', L.maxSchemaBytes),
  max_schema_depth: countField('Levels of nesting in a schema, or another member of a definition.', L.maxSchemaDepth, 1, 500),
})

const lifecycle = z.strictObject({
  start: field(choice('eager', 'lazy'), '`eager`: at once. `lazy`: at first use, once its lists are stored.', S.start),
  sharing: field(choice('session', 'principal', 'shared', 'call'), 'Who shares one connection to a legacy server.', S.sharing),
  spare: countField(
    'Processes started ahead for the next session: once a legacy session has come, where starting takes over 1 s, for 10 idle minutes.',
    S.spare,
    0,
    1,
  ),
  idle_stop: field(durationOrNever, 'An unused connection, or a lazy server, ends after this.', formatDuration(S.idleStopMs)),
})

const hiddenCharacters = field(
  choice('warn', 'strip', 'drop'),
  'Invisible characters in definitions: served and told, served without them, or the definition is left out.',
  S.hidden,
)

export const onChange = choice('allow', 'warn', 'hold', 'quarantine')

const lock = field(
  z.strictObject({
    on_change: field(
      onChange,
      'A definition that is not the one in the lock file (without one: a tool that is not as first seen): served; served and told; the old one stays listed; hidden. `trunkline approve` ends the last two.',
      S.onChange,
    ),
  }),
  'What may change in definitions.',
)

const tls = field(
  z.strictObject({
    ca: field(filledText, 'File of certificates (PEM) that are trusted in place of those that Node trusts.'),
    cert: field(filledText, 'File of our certificate (PEM), for servers that ask for one; with `key`.'),
    key: field(filledText, 'File of its private key (PEM), without a pass phrase.'),
    server_name: field(hostName, "Name in the server's certificate, and in SNI, in place of the host of `url`."),
  }),
  'TLS to the server; paths count from the folder of the file, and changed files are read again.',
)

const INHERIT = 'Names of variables a process gets from ours, in place of the usual ones; `LC_*` means all that begin so.'

export const serverSchema = z.strictObject({
  command: field(filledText, 'Program to start, without a shell. A relative path with a `/` counts from the folder of the file.'),
  args: field(z.array(argument), 'Its arguments, as they are.'),
  env: field(
    z.object({ inherit: field(z.array(filledText), INHERIT) }).catchall(argument),
    'Its environment, beside what it inherits: `NAME: value`.',
  ),
  cwd: field(filledText, 'Its working directory, from the folder of the file.', '.'),
  url: field(httpUrl, 'Where the server answers. With `command`: the process that is started serves this URL.'),
  transport: field(choice('auto', 'http', 'sse'), 'Streamable HTTP, the older HTTP+SSE, or find out.', S.transport),
  era: field(choice('auto', 'legacy', 'modern'), 'Revisions up to 2025-11-25, from 2026-07-28, or find out.', S.era),
  http_client: field(
    choice('own', 'undici'),
    'What carries `http://` URLs; `https://`, and all that goes through a proxy, is always undici.',
    S.httpClient,
  ),
  proxy: field(
    proxyUrl,
    'HTTP proxy to the server and its authorization server, in place of `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` of the environment; `none`: no proxy. This machine is always reached directly.',
  ),
  tls,
  headers: field(z.record(z.string(), headerValue), 'Sent with every HTTP request to the server.'),
  credentials: field(credentialsSchema, 'How we prove to the server who is calling.'),
  trusted: field(flag, '`true`: its annotations may steer retries and policy. `false`: besides, less is told and granted to it.'),
  prefix: field(prefixKind, 'What its exposed names begin with, in place of the key.'),
  display_name: field(filledText, 'What people read in labels and messages, in place of the key.'),
  tags: field(z.array(filledText), 'Words to choose servers by.'),
  enabled: field(flag, '`false`: the server is checked and left out.', true),
  roots: field(z.array(filledText), 'Folders (from the folder of the file) or URIs that the server may work in.'),
  timeouts: field(timeouts, 'Time-outs of this server.'),
  limits: field(limits, 'Limits of this server.'),
  lifecycle: field(lifecycle, 'When it starts, who shares it, when it stops.'),
  alias: field(z.record(z.string(), exposedName), 'Exposed name by original name; wins over every rule of naming.'),
  filter: toolFilter,
  tools: field(z.record(z.string(), curatedTool), 'Changes to single tools, by the name that the server gives them.'),
  prompts: nameFilter('Which prompts hosts see.'),
  resources: field(
    z.strictObject({
      ...uriFilter,
      rewrite: field(
        choice('namespaced', 'identity'),
        '`namespaced`: `<prefix>+<uri>`. `identity`: as the server has them.',
        S.uris,
      ),
    }),
    'Which resources hosts see, and how they are exposed.',
  ),
  unalias_arguments: field(flag, 'Exposed URIs in arguments become original ones.', S.unaliasArguments),
  decorate_titles: field(flag, 'Titles end with the display name.', S.decorateTitles),
  dynamic_lists: field(
    flag,
    '`true`: the lists of a session, or of a principal, are read over its own connection as soon as that is open; else once the server announces a change there.',
    S.dynamicLists,
  ),
  apps: field(flag, 'MCP Apps of this server are passed on.', S.apps),
  hidden_characters: hiddenCharacters,
  lock,
  drive_tasks: field(flag, 'Its tasks are followed for hosts that declare none.', S.driveTasks),
  instructions: field(flag, 'Its instructions are part of ours.', S.instructions),
})

export const defaultsSchema = z.strictObject({
  timeouts: field(timeouts, 'Time-outs of every server.'),
  limits: field(limits, 'Limits of every server.'),
  lifecycle: field(lifecycle, 'When servers start, who shares them, when they stop.'),
  env: field(z.strictObject({ inherit: field(z.array(text), INHERIT) }), 'What processes inherit.'),
  hidden_characters: hiddenCharacters,
  lock,
})

export type ServerEntry = z.output<typeof serverSchema>
export type Defaults = z.output<typeof defaultsSchema>
