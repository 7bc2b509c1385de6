/**
 * The table of hosts: paths of their files, the form of our entry there, and when the host reads a change. A new host is a new row. Entries
 * are read by config/read/host-entry. Limits of hosts are in catalog/lint/host-limits.
 *
 * The surprise: hosts use five names for one URL (`url`, `serverUrl`, `httpUrl`, `uri`, or none), and ignore a wrong one silently.
 */
import { posix, win32 } from 'node:path'
import type { RuntimeEnvironment } from '../config/runtime-environment.ts'
import type { HostKind } from '../config/read/host-entry.ts'

/** The environment of the user, which decides where the files of hosts are. */
export type UserEnvironment = Pick<RuntimeEnvironment, 'env' | 'home' | 'cwd' | 'platform' | 'uid'>

/** `user`: all projects of the user. `local`: one project, in the file of the user. `project`: a file in the project. */
export type Scope = 'user' | 'local' | 'project'

/** A file that may contain servers of a host. Of several files with one scope, the first existing one is written, else the first with an existing folder. */
export interface HostPlace {
  readonly scope: Scope
  readonly path: string
  /** Path of keys to the servers in the file. */
  readonly at: readonly string[]
  /** The servers are a list of items with a `name`. */
  readonly isList?: true
  /** A deprecated place of the host: it is read, but not written. */
  readonly isOld?: true
  /** Text at the beginning of a new file. */
  readonly start?: string
  /** A further key that newer files of this host have on the path to the servers. */
  readonly inner?: string
  /** Path of keys to a list of disabled servers in the same file. */
  readonly off?: readonly string[]
}

/** How a host connects to Trunkline. */
export type Target =
  | {
      readonly kind: 'http'
      readonly url: string
      /** Name of the variable with the token. */
      readonly tokenVariable?: string | undefined
    }
  | {
      readonly kind: 'stdio'
      readonly command: string
      readonly args: readonly string[]
      /** Variables that the host may not pass on by itself. */
      readonly env?: Readonly<Record<string, string>> | undefined
    }

/** An entry in the form of a host, as plain data. */
export type HostEntry = Readonly<Record<string, unknown>>

export interface HostRow {
  /** The usual name. */
  readonly label: string
  /** The form of its entries. */
  readonly kind: HostKind
  readonly places: (user: UserEnvironment) => readonly HostPlace[]
  readonly stdio: (command: string, args: readonly string[]) => HostEntry
  /** The key for environment variables, if it is not `env`. */
  readonly environment?: string
  /** The entry for a URL; `undefined`: the host accepts no URL in its file. */
  readonly http: ((url: string, headers: Headers | undefined, tokenVariable: string | undefined) => HostEntry) | undefined
  /** A reference to a variable in a header; `undefined`: the host has none, so that the file would contain the token itself. */
  readonly variable: ((name: string) => string) | undefined
  /** Matches its `clientInfo.name`, in lower case. */
  readonly client: RegExp
  /** When the host reads a change of its file, for messages. */
  readonly afterwards: string
  /** A precondition or limitation, for messages. */
  readonly note?: string
  /** A link by which the host adds the entry itself. */
  readonly link?: (name: string, entry: HostEntry) => string
}

type Headers = Readonly<Record<string, string>>

const paths = ({ platform = process.platform }: UserEnvironment) => (platform === 'win32' ? win32 : posix)
const absolute = (user: UserEnvironment, variable: string): string | undefined => {
  const value = user.env[variable]
  return value && paths(user).isAbsolute(value) ? value : undefined
}
const inHome = (user: UserEnvironment, ...steps: readonly string[]): string => paths(user).join(user.home, ...steps)
const inProject = (user: UserEnvironment, ...steps: readonly string[]): string => paths(user).join(user.cwd, ...steps)

/** Settings folder of desktop programs: `~/.config` on Linux, Application Support on macOS, Roaming on Windows. */
const inApplications = (user: UserEnvironment, ...steps: readonly string[]): string => {
  const { platform = process.platform } = user
  if (platform === 'darwin') return inHome(user, 'Library', 'Application Support', ...steps)
  if (platform === 'win32') return paths(user).join(user.env['APPDATA'] || inHome(user, 'AppData', 'Roaming'), ...steps)
  return inConfig(user, ...steps)
}
/** Settings folder of command-line programs: `~/.config`, also on macOS. */
const inConfig = (user: UserEnvironment, ...steps: readonly string[]): string =>
  paths(user).join(absolute(user, 'XDG_CONFIG_HOME') ?? inHome(user, '.config'), ...steps)
const inCode = (user: UserEnvironment, ...steps: readonly string[]): string => inApplications(user, 'Code', 'User', ...steps)

const MCP_SERVERS = ['mcpServers'] as const
const place = (scope: Scope, path: string, at: readonly string[] = MCP_SERVERS): HostPlace => ({ scope, path, at })

/** Version 2 uses `mcp.servers` and also reads the entries of version 1 in `mcp` (opencode.ai/docs, migrate from V1). */
const inOpencode = (scope: Scope, path: string): HostPlace => ({ scope, path, at: ['mcp'], inner: 'servers' })

const plainStdio = (command: string, args: readonly string[]): HostEntry => ({ command, args })
const typedStdio = (command: string, args: readonly string[]): HostEntry => ({ type: 'stdio', command, args })
const withHeaders = (headers: Headers | undefined): { headers?: Headers } => (headers === undefined ? {} : { headers })
const byUrl = (url: string, headers: Headers | undefined): HostEntry => ({ url, ...withHeaders(headers) })
const typed =
  (type: string, more: HostEntry = {}) =>
  (url: string, headers: Headers | undefined): HostEntry => ({ type, url, ...withHeaders(headers), ...more })

const braces = (name: string): string => `\${${name}}`
const envBraces = (name: string): string => `\${env:${name}}`
const dollar = (name: string): string => `$${name}`

/** Gemini CLI and its forks. */
const likeGemini = (label: string, folder: string, client: RegExp, homeVariable?: string): HostRow => ({
  label,
  client,
  kind: 'gemini',
  places: (user) => [
    place('user', paths(user).join((homeVariable && absolute(user, homeVariable)) || user.home, folder, 'settings.json')),
    place('project', inProject(user, folder, 'settings.json')),
  ],
  stdio: plainStdio,
  http: (url, headers) => ({ httpUrl: url, ...withHeaders(headers) }),
  variable: dollar,
  afterwards: 'starts with the next session',
  note: 'it must trust the folder that it runs in',
})

/** The names of hosts for `connect` and `import`. */
export type HostName =
  | 'claude-code'
  | 'claude-desktop'
  | 'vscode'
  | 'cursor'
  | 'windsurf'
  | 'zed'
  | 'codex'
  | 'copilot-cli'
  | 'cline'
  | 'roo'
  | 'continue'
  | 'goose'
  | 'librechat'
  | 'opencode'
  | 'gemini'
  | 'qwen'
  | 'jetbrains'
  | 'amp'

/** The source is the documentation of the vendor, unless a row names another one. */
export const HOSTS: Readonly<Record<HostName, HostRow>> = {
  'claude-code': {
    label: 'Claude Code',
    client: /^claude-code/,
    kind: 'common',
    places: (user) => {
      const file = paths(user).join(absolute(user, 'CLAUDE_CONFIG_DIR') ?? user.home, '.claude.json')
      const off = ['projects', user.cwd, 'disabledMcpServers']
      return [
        { scope: 'local', path: file, at: ['projects', user.cwd, 'mcpServers'], off },
        place('project', inProject(user, '.mcp.json')),
        { scope: 'user', path: file, at: MCP_SERVERS, off },
      ]
    },
    stdio: typedStdio,
    http: typed('http'),
    variable: braces,
    afterwards: 'starts with the next session',
  },
  'claude-desktop': {
    label: 'Claude Desktop',
    client: /^(?:claude-ai|claude desktop)/,
    kind: 'common',
    places: (user) => [place('user', inApplications(user, 'Claude', 'claude_desktop_config.json'))],
    stdio: plainStdio,
    http: undefined,
    variable: undefined,
    afterwards: 'quit it and start it again',
  },
  vscode: {
    label: 'VS Code',
    client: /^visual studio code/,
    kind: 'vscode',
    places: (user) => [
      place('user', inCode(user, 'mcp.json'), ['servers']),
      { scope: 'user', path: inCode(user, 'settings.json'), at: ['mcp', 'servers'], isOld: true },
      place('project', inProject(user, '.vscode', 'mcp.json'), ['servers']),
    ],
    stdio: typedStdio,
    http: typed('http'),
    variable: envBraces,
    afterwards: 'reads the change at once; it asks once whether the server is trusted',
    // code.visualstudio.com, MCP developer guide: URL handler.
    link: (name, entry) => `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name, ...entry }))}`,
  },
  cursor: {
    label: 'Cursor',
    client: /^cursor/,
    kind: 'common',
    places: (user) => [
      place('user', inHome(user, '.cursor', 'mcp.json')),
      place('project', inProject(user, '.cursor', 'mcp.json')),
    ],
    stdio: plainStdio,
    http: byUrl,
    variable: envBraces,
    afterwards: 'reads the change at once; the server may have to be switched on under Settings, MCP',
    // docs.cursor.com, MCP install links.
    link: (name, entry) =>
      `cursor://anysphere.cursor-deeplink/mcp/install?name=${encodeURIComponent(name)}&config=${encodeURIComponent(
        Buffer.from(JSON.stringify(entry)).toString('base64'),
      )}`,
  },
  windsurf: {
    label: 'Windsurf',
    client: /^(?:windsurf|codeium)/,
    kind: 'common',
    places: (user) => [
      place('user', inHome(user, '.codeium', 'windsurf', 'mcp_config.json')),
      // Its plugin for other editors.
      place('user', inHome(user, '.codeium', 'mcp_config.json')),
    ],
    stdio: plainStdio,
    http: (url, headers) => ({ serverUrl: url, ...withHeaders(headers) }),
    variable: envBraces,
    afterwards: 'press refresh in its MCP panel',
  },
  zed: {
    label: 'Zed',
    client: /^zed/,
    kind: 'zed',
    places: (user) => [
      place(
        'user',
        user.platform === 'win32' ? inApplications(user, 'Zed', 'settings.json') : inConfig(user, 'zed', 'settings.json'),
        ['context_servers'],
      ),
      place('project', inProject(user, '.zed', 'settings.json'), ['context_servers']),
    ],
    stdio: plainStdio,
    http: byUrl,
    variable: undefined,
    afterwards: 'reads the change at once',
  },
  codex: {
    label: 'Codex',
    client: /^codex/,
    kind: 'codex',
    places: (user) => [
      place('user', paths(user).join(absolute(user, 'CODEX_HOME') ?? inHome(user, '.codex'), 'config.toml'), ['mcp_servers']),
      place('project', inProject(user, '.codex', 'config.toml'), ['mcp_servers']),
    ],
    stdio: plainStdio,
    http: (url, _headers, tokenVariable) => ({
      url,
      ...(tokenVariable === undefined ? {} : { bearer_token_env_var: tokenVariable }),
    }),
    variable: braces,
    afterwards: 'starts with the next session',
  },
  gemini: likeGemini('Gemini CLI', '.gemini', /^gemini|^mcp-test-client$/, 'GEMINI_CLI_HOME'),
  qwen: likeGemini('Qwen Code', '.qwen', /^qwen|^mcp-test-client$/),
  'copilot-cli': {
    label: 'Copilot CLI',
    client: /^(?:github-copilot|copilot)/,
    kind: 'common',
    places: (user) => [
      place('user', paths(user).join(absolute(user, 'COPILOT_HOME') ?? inHome(user, '.copilot'), 'mcp-config.json')),
      place('project', inProject(user, '.github', 'mcp.json')),
    ],
    stdio: (command, args) => ({ type: 'local', command, args, tools: ['*'] }),
    http: typed('http', { tools: ['*'] }),
    variable: braces,
    afterwards: 'starts with the next session',
  },
  cline: {
    label: 'Cline',
    client: /^@?cline/,
    kind: 'common',
    places: (user) => [
      place('user', inCode(user, 'globalStorage', 'saoudrizwan.claude-dev', 'settings', 'cline_mcp_settings.json')),
      place(
        'user',
        absolute(user, 'CLINE_MCP_SETTINGS_PATH') ?? inHome(user, '.cline', 'data', 'settings', 'cline_mcp_settings.json'),
      ),
    ],
    stdio: (command, args) => ({ command, args, disabled: false }),
    http: typed('streamableHttp', { disabled: false }),
    variable: undefined,
    afterwards: 'reads the change at once',
  },
  roo: {
    label: 'Roo Code',
    client: /^roo/,
    kind: 'common',
    places: (user) => [
      place('user', inCode(user, 'globalStorage', 'rooveterinaryinc.roo-cline', 'settings', 'mcp_settings.json')),
      place('project', inProject(user, '.roo', 'mcp.json')),
    ],
    stdio: (command, args) => ({ command, args, disabled: false }),
    http: typed('streamable-http', { disabled: false }),
    variable: envBraces,
    afterwards: 'reads the change at once',
  },
  continue: {
    label: 'Continue',
    client: /^continue/,
    kind: 'continue',
    places: (user) => [
      { scope: 'user', path: inHome(user, '.continue', 'config.yaml'), at: MCP_SERVERS, isList: true },
      {
        scope: 'project',
        path: inProject(user, '.continue', 'mcpServers', 'trunkline.yaml'),
        at: MCP_SERVERS,
        isList: true,
        start: 'name: trunkline\nversion: 0.0.1\nschema: v1\n',
      },
    ],
    stdio: typedStdio,
    http: (url, headers) => ({
      type: 'streamable-http',
      url,
      ...(headers !== undefined && { requestOptions: { headers } }),
    }),
    variable: (name) => `\${{ secrets.${name} }}`,
    afterwards: 'reads the change at once; servers are used only in agent mode',
  },
  goose: {
    label: 'Goose',
    client: /^goose/,
    kind: 'goose',
    places: (user) => [
      place(
        'user',
        user.platform === 'win32'
          ? inApplications(user, 'Block', 'goose', 'config', 'config.yaml')
          : inConfig(user, 'goose', 'config.yaml'),
        ['extensions'],
      ),
    ],
    stdio: (command, args) => ({ type: 'stdio', name: 'trunkline', enabled: true, cmd: command, args, timeout: 300 }),
    environment: 'envs',
    http: (url, headers) => ({
      type: 'streamable_http',
      name: 'trunkline',
      enabled: true,
      uri: url,
      ...withHeaders(headers),
      timeout: 300,
    }),
    variable: dollar,
    afterwards: 'starts with the next session',
  },
  librechat: {
    label: 'LibreChat',
    client: /^@?librechat/,
    kind: 'common',
    places: (user) => [place('project', absolute(user, 'CONFIG_PATH') ?? inProject(user, 'librechat.yaml'))],
    stdio: typedStdio,
    http: typed('streamable-http'),
    variable: braces,
    afterwards: 'start it again',
    note: 'addresses of this machine must be listed under mcpSettings.allowedDomains, and a container reaches them under another name',
  },
  opencode: {
    label: 'opencode',
    client: /^opencode/,
    kind: 'opencode',
    places: (user) => [
      ...['opencode.json', 'opencode.jsonc'].map((name) => inOpencode('user', inConfig(user, 'opencode', name))),
      ...['opencode.json', 'opencode.jsonc'].map((name) => inOpencode('project', inProject(user, name))),
      ...['opencode.json', 'opencode.jsonc'].map((name) => inOpencode('project', inProject(user, '.opencode', name))),
    ],
    // Without `enabled`, which version 2 does not know. The default of version 1 is true.
    stdio: (command, args) => ({ type: 'local', command: [command, ...args] }),
    environment: 'environment',
    http: typed('remote'),
    variable: (name) => `{env:${name}}`,
    afterwards: 'starts with the next session',
  },
  jetbrains: {
    label: 'JetBrains (Junie)',
    client: /^(?:jetbrains|junie|intellij)/,
    kind: 'common',
    places: (user) => [
      place('user', inHome(user, '.junie', 'mcp', 'mcp.json')),
      place('project', inProject(user, '.junie', 'mcp', 'mcp.json')),
    ],
    stdio: plainStdio,
    http: undefined,
    variable: undefined,
    afterwards: 'reads the change at once; AI Assistant imports the same text under Settings, Tools, MCP',
  },
  amp: {
    label: 'Amp',
    client: /^amp/,
    kind: 'common',
    places: (user) => [
      place('user', inConfig(user, 'amp', 'settings.json'), ['amp.mcpServers']),
      place('project', inProject(user, '.amp', 'settings.json'), ['amp.mcpServers']),
    ],
    stdio: plainStdio,
    http: byUrl,
    variable: braces,
    afterwards: 'starts with the next session',
  },
}

/** The files of a host with these scopes. If the project is the home folder, some are a file of both: they count as the user's. */
export const placesOf = (host: HostName, user: UserEnvironment, scopes: readonly Scope[]): readonly HostPlace[] => {
  const places = HOSTS[host].places(user).filter(({ scope }) => scopes.includes(scope))
  const isUsers = ({ scope, path }: HostPlace): boolean =>
    places.some((one) => one.scope === 'user' && scope === 'project' && one.path === path)
  return places.filter((place) => !isUsers(place))
}

/** The entry by which `host` connects to `target`; `undefined`: its file supports no such entry. */
export const entryFor = (host: HostRow, target: Target): HostEntry | undefined => {
  if (target.kind === 'stdio') {
    const entry = host.stdio(target.command, target.args)
    return target.env === undefined ? entry : { ...entry, [host.environment ?? 'env']: target.env }
  }
  const { url, tokenVariable } = target
  if (tokenVariable !== undefined && host.variable === undefined) return undefined
  const headers = tokenVariable === undefined ? undefined : { Authorization: `Bearer ${host.variable?.(tokenVariable)}` }
  return host.http?.(url, headers, tokenVariable)
}
