/**
 * Converts one server of a host's file to our form. What the user disabled stays disabled, and authentication is kept; a member that
 * would change either and has no counterpart here gives a warning with its place. Other members (labels, time-outs, approvals in the
 * host's dialogs) concern the host only and are ignored.
 */
import { forwardedVariables } from './forwarded-variables.ts'
import type { Problem } from '../syntax/problems.ts'
import { child, childPath, itemsOf, listAt, mapAt, plain, scalars, scalarTexts, textOf } from '../syntax/tree.ts'
import type { ListTree, MapTree, ScalarTree, Tree } from '../syntax/tree.ts'
import { ownValue } from '../../values/own-value.ts'

/** The host whose form a file has; `common`: `mcpServers` of Claude, Cursor, Windsurf, Cline and most others. */
export type HostKind = 'common' | 'gemini' | 'vscode' | 'zed' | 'codex' | 'goose' | 'opencode' | 'continue'

export interface EntryContext {
  readonly kind: HostKind
  /** The environment, for members that name a variable. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly problems: Problem[]
  readonly warnings: string[]
}

/** Transport by the `type` that hosts write; `auto`: detect. */
const TYPES: Readonly<Record<string, 'stdio' | 'http' | 'sse' | 'auto'>> = {
  stdio: 'stdio',
  local: 'stdio',
  remote: 'auto',
  http: 'http',
  'streamable-http': 'http',
  streamable_http: 'http',
  streamableHttp: 'http',
  // AnythingLLM's.
  streamable: 'http',
  sse: 'sse',
  // MetaMCP's.
  STDIO: 'stdio',
  STREAMABLE_HTTP: 'http',
  SSE: 'sse',
}

/** Types of Goose extensions that are not servers. */
const GOOSE_PARTS = ['builtin', 'platform', 'frontend', 'inline_python']

/** Whether the entry is a part of the host itself, which no other program can start. Such an entry is not an error. */
export const isPartOfHost = (entry: MapTree, kind: HostKind): boolean => {
  if (kind === 'goose') return GOOSE_PARTS.includes(textOf(child(entry, 'type')) ?? '')
  // Of a Zed extension the file has the settings only; the extension contains the command.
  return kind === 'zed' && firstOf(entry, [...COMMAND, ...URLS]) === undefined
}

/** Names of one member in the files of different hosts; the first that exists counts. */
const COMMAND = ['command', 'cmd']
const ENVIRONMENT = ['env', 'envs', 'environment']
const URLS = ['url', 'serverUrl', 'httpUrl', 'uri', 'baseUrl', 'base_url']
const HEADERS = ['headers', 'http_headers']
/** FastMCP and others. An unknown value is ignored: the transport is detected. */
const TRANSPORTS = ['transport', 'transportType']
const OFF_IF_TRUE = ['disabled', 'isDisabled']
const OFF_IF_FALSE = ['enabled', 'isActive', 'active']
/** Lists of the only tools that may be used. */
const ALLOWED = ['includeTools', 'enabledTools', 'enabled_tools', 'allowedTools', 'allowed_tools', 'available_tools', 'tools']
/** Lists of tools that may not be used. */
const DENIED = ['excludeTools', 'disabledTools', 'disabled_tools', 'excludedTools', 'deniedTools', 'blockedTools']

/** Members about permissions or authentication that have no counterpart here, with the rest of the warning. */
const NOT_HONOURED: Readonly<Record<string, string>> = {
  headersHelper: 'it runs a program that prints headers; name them under headers, or use secrets with exec in trunkline.yaml',
  authProviderType: 'write the server into trunkline.yaml, with credentials',
  targetAudience: 'write the server into trunkline.yaml, with credentials',
  targetServiceAccount: 'write the server into trunkline.yaml, with credentials',
  env_keys: 'the values are in the keyring of the host; set the variables under envs',
  sandbox: 'the server is started without a sandbox',
  sandboxEnabled: 'the server is started without a sandbox',
  experimental_environment: 'the server is started on this machine',
  oauth_resource: 'the URL of the server is sent as the resource',
  apiKey: 'write the header that carries it under headers',
  customUserVars: 'no user is asked; write the values under headers, as ${VAR}',
}

/** The entry in our form; problems that make it unusable are added. `isOff`: it is disabled outside of the entry. */
export const convertEntry = (entry: MapTree, name: string, key: string, isOff: boolean, context: EntryContext): MapTree => {
  const type = textOf(child(entry, 'type'))
  const command = firstOf(entry, COMMAND)
  const other = command === undefined ? textOf(firstOf(entry, TRANSPORTS)) : undefined
  const transport = ownValue(TYPES, type ?? other ?? '')
  const isStarted = transport === 'stdio' || (transport === undefined && command !== undefined)
  const problems: Problem[] = []
  if (type !== undefined && transport === undefined)
    // Cast: `type` exists.
    problems.push(problemAt(child(entry, 'type')!, `transport ${JSON.stringify(type)} is not known`, 'use stdio, http or sse'))
  const own = { ...context, problems }
  const parts: Readonly<Record<string, Tree | undefined>> = {
    ...(isStarted ? started(entry, command, own) : reached(entry, transport, own)),
    filter: filterOf(entry, own),
    display_name: key === name ? undefined : literal(name, entry),
    // 1MCP has tags, too.
    tags: child(entry, 'tags')?.kind === 'list' ? child(entry, 'tags') : undefined,
  }
  const off =
    isOff || OFF_IF_TRUE.some((one) => is(child(entry, one), true)) || OFF_IF_FALSE.some((one) => is(child(entry, one), false))
  if (off) return { ...entry, entries: present({ ...parts, enabled: literal(false, entry) }) }
  context.problems.push(...problems)
  for (const [member, tree] of entry.entries) {
    const remedy = ownValue(NOT_HONOURED, member)
    if (remedy === undefined || isEmpty(tree) || textOf(tree) === 'dynamic_discovery') continue
    if (member === 'apiKey' && context.kind === 'continue') continue
    context.warnings.push(`${tree.place} ${tree.path}: not honoured; ${remedy}`)
  }
  for (const text of [parts['url'], parts['headers'], parts['env']].flatMap(scalars)) {
    const [placeholder] = PLACEHOLDER.exec(textOf(text) ?? '') ?? []
    if (placeholder !== undefined && context.kind === 'common')
      context.warnings.push(`${text.place} ${text.path}: ${placeholder} stays as it is; the host replaces it for each user`)
  }
  return { ...entry, entries: present(parts) }
}

/** LibreChat's, such as `{{LIBRECHAT_USER_ID}}`. */
const PLACEHOLDER = /\{\{[A-Z]\w*\}\}/

const started = (entry: MapTree, command: Tree | undefined, context: EntryContext): Record<string, Tree | undefined> => {
  // Zed wrote a mapping of path, args and env; opencode writes one list.
  const launch = command?.kind === 'map' ? command : entry
  const words = command?.kind === 'list' ? command : undefined
  const program = words?.items[0] ?? (launch === entry ? command : firstOf(launch, ['path', ...COMMAND]))
  const args = words === undefined ? firstOf(launch, ['args']) : { ...words, items: words.items.slice(1) }
  const names = forwardedVariables(textOf(program) ?? '', scalarTexts(args)).map((name) => literal(name, args ?? entry))
  const forwarded = listAt({ ...(child(entry, 'env_vars') ?? entry), path: childPath(entry.path, 'env_vars') }, [
    ...itemsOf(child(entry, 'env_vars')),
    ...names,
  ])
  return {
    command: program,
    args,
    env: withForwarded(firstOf(launch, ENVIRONMENT), forwarded, context),
    cwd: firstOf(entry, ['cwd']),
    env_file: firstOf(entry, ['envFile']),
  }
}

const reached = (
  entry: MapTree,
  transport: (typeof TYPES)[string] | undefined,
  context: EntryContext,
): Record<string, Tree | undefined> => ({
  url: firstOf(entry, URLS),
  // LibreChat's.
  proxy: textOf(child(entry, 'proxy')) === undefined ? undefined : child(entry, 'proxy'),
  headers: headersOf(entry, context),
  credentials: credentialsOf(entry, context),
  // In VS Code `http` means HTTP, else SSE. Cast: one of them exists.
  transport:
    transport === undefined || transport === 'auto' || (context.kind === 'vscode' && transport === 'http')
      ? undefined
      : literal(transport, firstOf(entry, ['type', ...TRANSPORTS])!),
})

/** Variables of the environment that the process inherits (`env_vars` of Codex). One that is not set is left out. */
const withForwarded = (env: Tree | undefined, names: ListTree, { env: values }: EntryContext): Tree | undefined => {
  if (names.items.length === 0) return env
  const forwarded = names.items.flatMap((item) => {
    const name = textOf(item) ?? textOf(child(item, 'name'))
    const value = name === undefined ? undefined : values[name]
    return name === undefined || value === undefined ? [] : [[name, filled(value, item, childPath(names.path, name))] as const]
  })
  const own = env?.kind === 'map' ? env.entries : []
  // Cast: an `env` that is not a mapping keeps its kind, which validation reports.
  return {
    kind: 'map',
    path: names.path,
    place: names.place,
    ...env,
    entries: new Map<string, Tree>([...forwarded, ...own]),
  } as MapTree
}

/** Headers of the entry, and those that Codex reads from variables. */
const headersOf = (entry: MapTree, context: EntryContext): Tree | undefined => {
  const written = firstOf(entry, HEADERS) ?? child(child(entry, 'requestOptions'), 'headers')
  const named = child(entry, 'env_http_headers')
  const bearer = child(entry, 'bearer_token_env_var')
  // Of FastMCP, MetaMCP and Continue.
  const token = firstOf(entry, ['auth', 'bearerToken', ...(context.kind === 'continue' ? ['apiKey'] : [])])
  const isToken = typeof textOf(token) === 'string' && textOf(token) !== 'oauth'
  if (named === undefined && bearer === undefined && !isToken) return written
  const headers = new Map<string, Tree>(written?.kind === 'map' ? written.entries : [])
  const fromVariable = (header: string, at: Tree, before = ''): void => {
    const name = textOf(at) ?? ''
    const value = context.env[name]
    if (value === undefined) context.problems.push(problemAt(at, `variable ${name} is not set`, 'set it'))
    else headers.set(header, filled(`${before}${value}`, at))
  }
  if (named?.kind === 'map') for (const [header, at] of named.entries) fromVariable(header, at)
  if (bearer !== undefined) fromVariable('Authorization', bearer, 'Bearer ')
  if (isToken && token?.kind === 'scalar')
    headers.set('Authorization', { ...token, value: `Bearer ${textOf(token)}`, path: childPath(token.path, 'Authorization') })
  // Cast: one of them exists.
  return mapAt(written ?? named ?? bearer ?? token!, headers)
}

const CLIENT_MEMBERS: Readonly<Record<string, string>> = {
  clientId: 'client_id',
  client_id: 'client_id',
  CLIENT_ID: 'client_id',
  clientSecret: 'client_secret',
  client_secret: 'client_secret',
  CLIENT_SECRET: 'client_secret',
  scopes: 'scopes',
  scope: 'scopes',
}

/** An OAuth client that the user registered: `oauth` of Claude, Gemini and opencode, `auth` of Cursor. */
const credentialsOf = (entry: MapTree, { warnings }: EntryContext): Tree | undefined => {
  const tree = firstOf(entry, ['oauth', 'auth'])
  const flat = child(entry, 'oauthClientId')
  const usesOauth = textOf(child(entry, 'auth')) === 'oauth'
  if (tree?.kind !== 'map' && flat === undefined && !usesOauth) return undefined
  const members = new Map<string, Tree>()
  if (flat !== undefined) members.set('client_id', flat)
  if (tree?.kind === 'map') {
    if (is(child(tree, 'enabled'), false)) return undefined
    for (const [member, value] of tree.entries) {
      const ours = ownValue(CLIENT_MEMBERS, member)
      if (ours !== undefined) members.set(ours, ours === 'scopes' ? scopesOf(value) : value)
      else if (member !== 'enabled' && !isNothing(value))
        warnings.push(`${value.place} ${value.path}: not honoured; write the server into trunkline.yaml, with credentials`)
    }
  }
  // Cast: one of them exists.
  const at = tree ?? flat ?? child(entry, 'auth')!
  return mapAt(at, new Map([['oauth', mapAt(at, members)]]))
}

/** A list, or words separated by spaces. */
const scopesOf = (tree: Tree): Tree => {
  if (tree.kind !== 'scalar') return tree
  const items = (textOf(tree) ?? '').split(/\s+/).filter(Boolean)
  return listAt(
    tree,
    items.map((item) => ({ ...tree, value: item })),
  )
}

/** Which tools may be used. An invalid list makes the entry unusable: a disabled tool must not become available. */
const filterOf = (entry: MapTree, context: EntryContext): Tree | undefined => {
  const { filter, isAllowing } = toolFilterOf(entry, context)
  const denied = [...DENIED.map((member) => child(entry, member)), isAllowing ? undefined : filter].flatMap((tree) =>
    namesIn(tree, context),
  )
  const allowed = [...ALLOWED.map((member) => child(entry, member)), isAllowing ? filter : undefined].flatMap((tree) => {
    if (tree === undefined || isNothing(tree)) return []
    if (tree.kind === 'map') return (denied.push(...switchedOff(tree)), [])
    const names = namesIn(tree, context)
    // In Goose an empty list means all tools.
    if (names.length === 0 && context.kind === 'goose') return []
    return names.some(({ value }) => value === '*') ? [] : [{ tree, names }]
  })
  const [first, ...others] = allowed
  const at = first?.tree ?? denied[0]
  if (at === undefined) return undefined
  const both = first?.names.filter(({ value }) => others.every(({ names }) => names.some((name) => name.value === value)))
  return mapAt(at, present({ allow: both && listAt(at, both), deny: denied.length === 0 ? undefined : listAt(at, denied) }))
}

/** mcp-proxy's `options.toolFilter`: a list of names and its mode. An unknown mode makes the entry unusable. */
const toolFilterOf = (
  entry: MapTree,
  { problems }: EntryContext,
): { readonly filter: Tree | undefined; readonly isAllowing: boolean } => {
  const tree = child(child(entry, 'options'), 'toolFilter')
  const mode = child(tree, 'mode')
  const isAllowing = textOf(mode) === 'allow'
  if (tree !== undefined && !isNothing(tree) && !isAllowing && textOf(mode) !== 'block')
    problems.push(problemAt(mode ?? tree, 'the mode of a toolFilter is "allow" or "block"', 'correct it'))
  return { filter: child(tree, 'list'), isAllowing }
}

/** Names of tools. In Gemini `name(…)` means `name`. */
const namesIn = (tree: Tree | undefined, { problems, kind }: EntryContext): readonly ScalarTree[] => {
  if (tree === undefined || isNothing(tree)) return []
  const items = tree.kind === 'list' ? tree.items : [tree]
  return items.flatMap((item): ScalarTree[] => {
    const name = textOf(item)
    if (name !== undefined && item.kind === 'scalar')
      return [kind === 'gemini' ? { ...item, value: name.replace(/\([^]*$/, ''), variables: true } : { ...item, variables: true }]
    problems.push(problemAt(item, 'expected a list of names of tools', 'correct it'))
    return []
  })
}

/** Tools disabled by `{ "name": false }` or `{ "name": { "enabled": false } }`. */
const switchedOff = (tree: MapTree): ScalarTree[] =>
  [...tree.entries].flatMap(([name, value]) => {
    const isOff = is(value, false) || is(child(value, 'enabled'), false) || is(child(value, 'disabled'), true)
    return isOff ? [{ ...literal(name, value), path: value.path }] : []
  })

/** The entry with further deny patterns. */
export const withDenied = (entry: MapTree, patterns: readonly string[], at: Tree): MapTree => {
  if (patterns.length === 0) return entry
  const filter = child(entry, 'filter')
  const deny = child(filter, 'deny')
  const items = [...itemsOf(deny), ...patterns.map((pattern) => literal(pattern, at))]
  const entries = new Map(filter?.kind === 'map' ? filter.entries : []).set('deny', listAt(at, items))
  return { ...entry, entries: new Map(entry.entries).set('filter', mapAt(at, entries)) }
}

const present = (parts: Readonly<Record<string, Tree | undefined>>): ReadonlyMap<string, Tree> =>
  new Map(Object.entries(parts).filter((pair): pair is [string, Tree] => pair[1] !== undefined))
const firstOf = (entry: Tree, members: readonly string[]): Tree | undefined =>
  members.map((member) => child(entry, member)).find((tree) => tree !== undefined && !isNothing(tree))
const literal = (value: string | boolean, { path, place }: Tree): ScalarTree => ({
  kind: 'scalar',
  value,
  source: String(value),
  path,
  place,
  variables: true,
})
/** A text from a variable: messages never show it. */
const filled = (value: string, at: Tree, path = at.path): ScalarTree => ({
  kind: 'scalar',
  value,
  source: textOf(at) ?? '',
  path,
  place: at.place,
  variables: true,
})
const problemAt = ({ place, path }: Tree, message: string, remedy: string): Problem => ({ place, path, message, remedy })
const isNothing = (tree: Tree): boolean => tree.kind === 'scalar' && (tree.value === null || tree.value === false)
const isEmpty = (tree: Tree): boolean =>
  isNothing(tree) || (tree.kind === 'list' && tree.items.length === 0) || (tree.kind === 'map' && tree.entries.size === 0)
/** Also the text, since some hosts write `"true"`. */
const is = (tree: Tree | undefined, value: boolean): boolean =>
  tree?.kind === 'scalar' && String(plain(tree)).toLowerCase() === String(value)
