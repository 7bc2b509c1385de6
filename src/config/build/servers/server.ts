/** One entry of `servers`, validated and complete: defaults filled in, paths absolute, the environment of the process put together. */
import { DEFAULT_SERVER } from '../../../downstream/options.ts'
import type { LaunchOptions, ServerLimits, ServerOptions, ServerTimeouts } from '../../../downstream/options.ts'
import { isLoopbackHost } from '../../../transport/loopback.ts'
import { buildCredential } from '../../schema/credentials.ts'
import { childEnvironment } from './child-environment.ts'
import type { GatheredServer } from '../../read/gather.ts'
import type { Context } from '../../runtime-environment.ts'
import { buildCuration } from './curation.ts'
import { checkHeaders } from './headers.ts'
import { fill } from '../fill.ts'
import { proxiesOf, readProxies } from './proxies.ts'
import { buildTls } from '../tls.ts'
import type { Problem } from '../../syntax/problems.ts'
import { serverSchema } from '../../schema/server-schema.ts'
import type { Defaults, ServerEntry } from '../../schema/server-schema.ts'
import { asTyped, changeChild, nearest } from '../../syntax/tree.ts'
import { validate } from '../../syntax/validate.ts'
import { absolutePath } from '../../syntax/variables.ts'

type Given<K extends 'timeouts' | 'limits' | 'lifecycle'> = NonNullable<ServerEntry[K]>

const TIMEOUT_NAMES: { readonly [K in keyof Required<Given<'timeouts'>>]: keyof ServerTimeouts } = {
  start: 'startMs',
  probe: 'probeMs',
  wait: 'connectTimeoutMs',
  idle: 'idleMs',
  total: 'totalMs',
  ping: 'pingMs',
  grace: 'graceMs',
}
const LIMIT_NAMES: { readonly [K in keyof Required<Given<'limits'>>]: keyof ServerLimits } = {
  concurrency: 'maxConcurrent',
  queue: 'maxQueued',
  log_messages: 'maxLogMessages',
  rate: 'rate',
  write_queue: 'maxWriteQueueBytes',
  links: 'maxLinks',
  restarts: 'maxRestarts',
  stderr: 'maxStderrBytes',
  max_message: 'maxMessageBytes',
  tools: 'maxTools',
  entries: 'maxEntries',
  pages: 'maxPages',
  max_text: 'maxTextBytes',
  max_schema: 'maxSchemaBytes',
  max_schema_depth: 'maxSchemaDepth',
}
const LIFECYCLE_NAMES = {
  start: 'start',
  sharing: 'sharing',
  spare: 'spare',
  idle_stop: 'idleStopMs',
} as const satisfies Record<keyof Given<'lifecycle'>, keyof ServerOptions>
const SWITCH_NAMES = {
  transport: 'transport',
  era: 'era',
  http_client: 'httpClient',
  trusted: 'trusted',
  alias: 'alias',
  unalias_arguments: 'unaliasArguments',
  drive_tasks: 'driveTasks',
  decorate_titles: 'decorateTitles',
  dynamic_lists: 'dynamicLists',
  apps: 'apps',
  instructions: 'instructions',
} as const satisfies Partial<Record<keyof ServerEntry, keyof ServerOptions>>

const VETTING_NAMES = { hidden_characters: 'hidden', on_change: 'onChange' } as const satisfies Record<
  string,
  keyof ServerOptions
>
const vetting = ({ hidden_characters, lock }: Pick<Defaults, 'hidden_characters' | 'lock'>) => ({
  hidden_characters,
  on_change: lock?.on_change,
})

/** `undefined`: the entry has problems, which were added. */
export const buildServer = (
  gathered: GatheredServer,
  defaults: Defaults,
  context: Context,
  problems: Problem[],
): ServerOptions | undefined => {
  // Values of the environment, arguments and headers are texts: a number keeps the digits it was typed with.
  const tree = ['env', 'args', 'headers', 'credentials'].reduce((tree, key) => changeChild(tree, key, asTyped), gathered.tree)
  const entry = validate(serverSchema, tree, problems)
  if (entry === undefined) return undefined
  const before = problems.length
  const complain = (path: readonly string[], message: string, remedy: string) => {
    const node = nearest(tree, path)
    problems.push({ place: node.place, path: node.path, message, remedy })
  }
  checkEntry(entry, complain)
  const headers = checkHeaders(entry, complain)
  const credential = buildCredential(entry.credentials, entry.url, (path, ...words) =>
    complain(['credentials', ...path], ...words),
  )
  const tls = buildTls(entry, gathered.folder, context, complain)
  const curation = buildCuration(entry, tree, complain)
  if (problems.length > before) return undefined
  const switches = fill(
    SWITCH_NAMES,
    fill(VETTING_NAMES, fill(VETTING_NAMES, DEFAULT_SERVER, vetting(defaults)), vetting(entry)),
    entry,
  )
  return {
    ...fill(LIFECYCLE_NAMES, fill(LIFECYCLE_NAMES, switches, defaults.lifecycle), entry.lifecycle),
    key: gathered.key,
    prefix: entry.prefix ?? gathered.key,
    displayName: entry.display_name ?? gathered.key,
    place: tree.place,
    launch: buildLaunch(entry, gathered.folder, defaults, context),
    url: entry.url,
    proxies: proxiesOf(entry.proxy, readProxies(context.env).rules),
    tls,
    headers,
    credential,
    roots: entry.roots?.map((root) =>
      /^[a-z][a-z0-9+.-]+:/i.test(root) ? root : absolutePath(root, gathered.folder, context.home),
    ),
    timeouts: fill(TIMEOUT_NAMES, fill(TIMEOUT_NAMES, DEFAULT_SERVER.timeouts, defaults.timeouts), entry.timeouts),
    limits: fill(LIMIT_NAMES, fill(LIMIT_NAMES, DEFAULT_SERVER.limits, defaults.limits), entry.limits),
    uris: entry.resources?.rewrite ?? DEFAULT_SERVER.uris,
    curation,
    tags: [...new Set([...gathered.tags, ...(entry.tags ?? [])])],
  }
}

type Complain = (path: readonly string[], message: string, remedy: string) => void

/** What no single value shows: members that need each other. */
const checkEntry = (entry: ServerEntry, complain: Complain): void => {
  const { command, url } = entry
  if (command === undefined && url === undefined) complain([], 'neither command nor url', 'give one of them, or both')
  const [program = '', ...words] = command?.split(/\s+/) ?? []
  // A path may hold spaces; the name of a program does not.
  if (words.length > 0 && !/[/\\]/.test(program)) {
    const args = [...words, ...(entry.args ?? [])].map((word) => JSON.stringify(word)).join(', ')
    complain(
      ['command'],
      `${JSON.stringify(command)} is a program with its arguments`,
      `write command: ${program}, args: [${args}]`,
    )
  }
  for (const key of ['args', 'cwd', 'env'] as const) {
    if (command === undefined && entry[key]) complain([key], `"${key}" without command has no effect`, 'remove it')
  }
  for (const key of ['headers', 'credentials', 'transport', 'http_client', 'proxy', 'tls'] as const) {
    if (command !== undefined && url === undefined && entry[key] && entry[key] !== 'auto') {
      complain([key], `"${key}" without url has no effect`, 'remove it, or give the url that the process serves')
    }
  }
  if (url !== undefined && entry.proxy instanceof URL && isLoopbackHost(url.hostname))
    complain(['proxy'], '"proxy" has no effect: this machine is never reached through a proxy', 'remove it')
  const exposed = new Map<string, string>()
  for (const [original, name] of Object.entries(entry.alias ?? {})) {
    const other = exposed.get(name)
    if (other !== undefined) complain(['alias', original], `"${name}" is already the alias of "${other}"`, 'choose another name')
    exposed.set(name, original)
  }
}

const buildLaunch = (entry: ServerEntry, folder: string, defaults: Defaults, context: Context): LaunchOptions | undefined => {
  if (entry.command === undefined) return undefined
  const { inherit, ...own } = entry.env ?? {}
  return {
    command: /[/\\]/.test(entry.command) ? absolutePath(entry.command, folder, context.home) : entry.command,
    args: entry.args ?? [],
    env: childEnvironment(context.env, inherit ?? defaults.env?.inherit, own, context.platform),
    cwd: absolutePath(entry.cwd ?? '.', folder, context.home),
  }
}
