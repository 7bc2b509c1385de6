/**
 * The hosts whose files are read and written: where the files lie, how a server of ours is entered there, and when the host notices.
 * Adding a host is adding a row. How entries are read is in config/read/host-entry; what hosts refuse is in catalog/lint/host-limits.
 *
 * The surprise: five names for one URL (`url`, `serverUrl`, `httpUrl`, `uri`, and none at all), and a wrong one fails silently.
 */
import { posix, win32 } from 'node:path'
import type { HostKind } from '../config/read/host-entry.ts'

/** What decides where files lie. */
export interface Around {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly home: string
  readonly cwd: string
  readonly platform?: NodeJS.Platform | undefined
}

/** `user`: all projects of this person. `local`: one project, kept in the person's own file. `project`: a file in the project. */
export type Scope = 'user' | 'local' | 'project'

/** A file that may hold servers of a host. Of several with one scope, the first that exists is written, else the first whose folder does. */
export interface HostPlace {
  readonly scope: Scope
  readonly path: string
  /** Steps to the servers in the file. */
  readonly at: readonly string[]
  /** The servers are a list of items with a `name`. */
  readonly isList?: true
  /** Read, never written: a place that the host itself has given up. */
  readonly isOld?: true
  /** What a new file begins with. */
  readonly start?: string
  /** A member that holds the servers in newer files of this host, where the file has it: the steps are then one longer. */
  readonly inner?: string
  /** Steps to a list of servers that the person switched off, in the same file. */
  readonly off?: readonly string[]
}

/** How Trunkline is reached. */
export type Target =
  | {
      readonly kind: 'http'
      readonly url: string
      /** Variable that holds a token. */ readonly tokenVariable?: string | undefined
    }
  | {
      readonly kind: 'stdio'
      readonly command: string
      readonly args: readonly string[]
      /** Variables that the host itself may not pass on. */
      readonly env?: Readonly<Record<string, string>> | undefined
    }

/** An entry in the words of a host: plain data. */
export type HostEntry = Readonly<Record<string, unknown>>

export interface HostRow {
  /** What people call it. */
  readonly label: string
  /** Whose form its entries have, for reading. */
  readonly kind: HostKind
  readonly places: (around: Around) => readonly HostPlace[]
  readonly stdio: (command: string, args: readonly string[]) => HostEntry
  /** The member for variables of a process, where it is not `env`. */
  readonly environment?: string
  /** `undefined`: the host takes no URL in its file. */
  readonly http: ((url: string, headers: Headers | undefined, tokenVariable: string | undefined) => HostEntry) | undefined
  /** How the host writes a variable in a header; `undefined`: it has none, so a token cannot be kept out of the file. */
  readonly variable: ((name: string) => string) | undefined
  /** What it calls itself when it connects (`clientInfo.name`), in small letters. */
  readonly client: RegExp
  /** When the host notices a change of its file. */
  readonly afterwards: string
  /** What a person should know before, where there is something. */
  readonly note?: string
  /** A link that makes the host add the entry by itself. */
  readonly link?: (name: string, entry: HostEntry) => string
}

type Headers = Readonly<Record<string, string>>

const paths = ({ platform = process.platform }: Around) => (platform === 'win32' ? win32 : posix)
const absolute = (around: Around, variable: string): string | undefined => {
  const value = around.env[variable]
  return value && paths(around).isAbsolute(value) ? value : undefined
}
const inHome = (around: Around, ...steps: readonly string[]): string => paths(around).join(around.home, ...steps)
const inProject = (around: Around, ...steps: readonly string[]): string => paths(around).join(around.cwd, ...steps)

/** Where programs with a window keep their settings: XDG on Linux, Application Support, Roaming. */
const inApplications = (around: Around, ...steps: readonly string[]): string => {
  const { platform = process.platform } = around
  if (platform === 'darwin') return inHome(around, 'Library', 'Application Support', ...steps)
  if (platform === 'win32') return paths(around).join(around.env['APPDATA'] || inHome(around, 'AppData', 'Roaming'), ...steps)
  return inConfig(around, ...steps)
}
/** `~/.config`, also on macOS: where programs of the command line keep theirs. */
const inConfig = (around: Around, ...steps: readonly string[]): string =>
  paths(around).join(absolute(around, 'XDG_CONFIG_HOME') ?? inHome(around, '.config'), ...steps)
const inCode = (around: Around, ...steps: readonly string[]): string => inApplications(around, 'Code', 'User', ...steps)

const MCP_SERVERS = ['mcpServers'] as const
const place = (scope: Scope, path: string, at: readonly string[] = MCP_SERVERS): HostPlace => ({ scope, path, at })

/** Version 2 has `mcp.servers`, and reads what version 1 wrote under `mcp` (opencode.ai/docs, migrate from V1). */
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

/** Gemini CLI and those that were made from it. */
const likeGemini = (label: string, folder: string, client: RegExp, homeVariable?: string): HostRow => ({
  label,
  client,
  kind: 'gemini',
  places: (around) => [
    place('user', paths(around).join((homeVariable && absolute(around, homeVariable)) || around.home, folder, 'settings.json')),
    place('project', inProject(around, folder, 'settings.json')),
  ],
  stdio: plainStdio,
  http: (url, headers) => ({ httpUrl: url, ...withHeaders(headers) }),
  variable: dollar,
  afterwards: 'starts with the next session',
  note: 'the folder it runs in must be one that it trusts',
})

/** The words that `connect` and `import` take. */
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

/** Where a row names no source, the vendor documents it. */
export const HOSTS: Readonly<Record<HostName, HostRow>> = {
  'claude-code': {
    label: 'Claude Code',
    client: /^claude-code/,
    kind: 'common',
    places: (around) => {
      const file = paths(around).join(absolute(around, 'CLAUDE_CONFIG_DIR') ?? around.home, '.claude.json')
      const off = ['projects', around.cwd, 'disabledMcpServers']
      return [
        { scope: 'local', path: file, at: ['projects', around.cwd, 'mcpServers'], off },
        place('project', inProject(around, '.mcp.json')),
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
    places: (around) => [place('user', inApplications(around, 'Claude', 'claude_desktop_config.json'))],
    stdio: plainStdio,
    http: undefined,
    variable: undefined,
    afterwards: 'quit it and start it again',
  },
  vscode: {
    label: 'VS Code',
    client: /^visual studio code/,
    kind: 'vscode',
    places: (around) => [
      place('user', inCode(around, 'mcp.json'), ['servers']),
      { scope: 'user', path: inCode(around, 'settings.json'), at: ['mcp', 'servers'], isOld: true },
      place('project', inProject(around, '.vscode', 'mcp.json'), ['servers']),
    ],
    stdio: typedStdio,
    http: typed('http'),
    variable: envBraces,
    afterwards: 'notices by itself; it asks once whether the server is trusted',
    // code.visualstudio.com, MCP developer guide: URL handler.
    link: (name, entry) => `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name, ...entry }))}`,
  },
  cursor: {
    label: 'Cursor',
    client: /^cursor/,
    kind: 'common',
    places: (around) => [
      place('user', inHome(around, '.cursor', 'mcp.json')),
      place('project', inProject(around, '.cursor', 'mcp.json')),
    ],
    stdio: plainStdio,
    http: byUrl,
    variable: envBraces,
    afterwards: 'notices by itself; it may have to be switched on under Settings, MCP',
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
    places: (around) => [
      place('user', inHome(around, '.codeium', 'windsurf', 'mcp_config.json')),
      // Its plugin for other editors.
      place('user', inHome(around, '.codeium', 'mcp_config.json')),
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
    places: (around) => [
      place(
        'user',
        around.platform === 'win32' ? inApplications(around, 'Zed', 'settings.json') : inConfig(around, 'zed', 'settings.json'),
        ['context_servers'],
      ),
      place('project', inProject(around, '.zed', 'settings.json'), ['context_servers']),
    ],
    stdio: plainStdio,
    http: byUrl,
    variable: undefined,
    afterwards: 'notices by itself',
  },
  codex: {
    label: 'Codex',
    client: /^codex/,
    kind: 'codex',
    places: (around) => [
      place('user', paths(around).join(absolute(around, 'CODEX_HOME') ?? inHome(around, '.codex'), 'config.toml'), [
        'mcp_servers',
      ]),
      place('project', inProject(around, '.codex', 'config.toml'), ['mcp_servers']),
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
    places: (around) => [
      place('user', paths(around).join(absolute(around, 'COPILOT_HOME') ?? inHome(around, '.copilot'), 'mcp-config.json')),
      place('project', inProject(around, '.github', 'mcp.json')),
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
    places: (around) => [
      place('user', inCode(around, 'globalStorage', 'saoudrizwan.claude-dev', 'settings', 'cline_mcp_settings.json')),
      place(
        'user',
        absolute(around, 'CLINE_MCP_SETTINGS_PATH') ?? inHome(around, '.cline', 'data', 'settings', 'cline_mcp_settings.json'),
      ),
    ],
    stdio: (command, args) => ({ command, args, disabled: false }),
    http: typed('streamableHttp', { disabled: false }),
    variable: undefined,
    afterwards: 'notices by itself',
  },
  roo: {
    label: 'Roo Code',
    client: /^roo/,
    kind: 'common',
    places: (around) => [
      place('user', inCode(around, 'globalStorage', 'rooveterinaryinc.roo-cline', 'settings', 'mcp_settings.json')),
      place('project', inProject(around, '.roo', 'mcp.json')),
    ],
    stdio: (command, args) => ({ command, args, disabled: false }),
    http: typed('streamable-http', { disabled: false }),
    variable: envBraces,
    afterwards: 'notices by itself',
  },
  continue: {
    label: 'Continue',
    client: /^continue/,
    kind: 'continue',
    places: (around) => [
      { scope: 'user', path: inHome(around, '.continue', 'config.yaml'), at: MCP_SERVERS, isList: true },
      {
        scope: 'project',
        path: inProject(around, '.continue', 'mcpServers', 'trunkline.yaml'),
        at: MCP_SERVERS,
        isList: true,
        start: 'name: trunkline\nversion: 0.0.1\nschema: v1\n',
      },
    ],
    stdio: (command, args) => ({ type: 'stdio', command, args }),
    http: (url, headers) => ({
      type: 'streamable-http',
      url,
      ...(headers === undefined ? {} : { requestOptions: { headers } }),
    }),
    variable: (name) => `\${{ secrets.${name} }}`,
    afterwards: 'notices by itself; servers are used in agent mode alone',
  },
  goose: {
    label: 'Goose',
    client: /^goose/,
    kind: 'goose',
    places: (around) => [
      place(
        'user',
        around.platform === 'win32'
          ? inApplications(around, 'Block', 'goose', 'config', 'config.yaml')
          : inConfig(around, 'goose', 'config.yaml'),
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
    places: (around) => [place('project', absolute(around, 'CONFIG_PATH') ?? inProject(around, 'librechat.yaml'))],
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
    places: (around) => [
      ...['opencode.json', 'opencode.jsonc'].map((name) => inOpencode('user', inConfig(around, 'opencode', name))),
      ...['opencode.json', 'opencode.jsonc'].map((name) => inOpencode('project', inProject(around, name))),
      ...['opencode.json', 'opencode.jsonc'].map((name) => inOpencode('project', inProject(around, '.opencode', name))),
    ],
    // Version 2 knows no `enabled`, and version 1 takes it for true.
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
    places: (around) => [
      place('user', inHome(around, '.junie', 'mcp', 'mcp.json')),
      place('project', inProject(around, '.junie', 'mcp', 'mcp.json')),
    ],
    stdio: plainStdio,
    http: undefined,
    variable: undefined,
    afterwards: 'notices by itself; AI Assistant imports the same text under Settings, Tools, MCP',
  },
  amp: {
    label: 'Amp',
    client: /^amp/,
    kind: 'common',
    places: (around) => [
      place('user', inConfig(around, 'amp', 'settings.json'), ['amp.mcpServers']),
      place('project', inProject(around, '.amp', 'settings.json'), ['amp.mcpServers']),
    ],
    stdio: plainStdio,
    http: byUrl,
    variable: braces,
    afterwards: 'starts with the next session',
  },
}

/** The name under which Trunkline stands in files of hosts. */
export const OUR_NAME = 'trunkline'

/** The entry that makes `host` reach `target`; `undefined`: it cannot, by its file. */
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
