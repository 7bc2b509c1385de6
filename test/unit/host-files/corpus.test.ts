import { existsSync, readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { HostConnection } from '../../../src/host-files/connection.ts'
import { lookIn, readText } from '../../../src/host-files/edit/editor.ts'
import { findServers, readPlace } from '../../../src/host-files/found.ts'
import { entryFor, HOSTS } from '../../../src/host-files/hosts.ts'
import type { Scope } from '../../../src/host-files/hosts.ts'
import { keysOf } from '../../../src/values/typed-keys.ts'
import { CORPUS, hostsHome } from './hosts-home.ts'

const STDIO = {
  kind: 'stdio',
  command: '/usr/bin/node',
  args: ['/opt/trunkline/main.js', 'stdio'],
  env: { XDG_STATE_HOME: '/var/state of mine' },
} as const
const HTTP = { kind: 'http', url: 'http://127.0.0.1:7420/mcp' } as const

/** What each host's files say, in our words: name → the part of the entry that matters. */
const EXPECTED: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'claude-code': {
    notes: { command: 'uvx', args: ['mcp-notes', '--dir', './notes'] },
    old: { url: 'https://old.example.com/sse', transport: 'sse', enabled: false },
    files: { args: ['-y', '@modelcontextprotocol/server-filesystem', '${PROJECT_DIR:-.}'], env: { LOG_LEVEL: 'debug' } },
    api: { url: '${API_BASE_URL:-https://api.example.com}/mcp', headers: { 'X-Api-Key': '${API_KEY}' } },
    github: { url: 'https://api.githubcopilot.com/mcp/', transport: 'http' },
  },
  'claude-desktop': {
    filesystem: { args: ['-y', '@modelcontextprotocol/server-filesystem', '/Users/me/Desktop'] },
    'brave-search': { env: { BRAVE_API_KEY: 'BSAabcdefghijklmnopqrstuvwx' } },
  },
  vscode: {
    github: { headers: { Authorization: 'Bearer ${INPUT_GH_TOKEN}' } },
    weather: {
      args: [expect.stringMatching(/weather\.js$/), '--region=${INPUT_REGION:-eu}'],
      env: { HOME_DIR: expect.stringMatching(/\/home$/), KEY: '${WEATHER_KEY}' },
    },
    legacy: { command: 'legacy-server' },
    local: { command: expect.stringMatching(/\/project\/run\.sh$/), env: { TOKEN: 'from-a-file', PLAIN: '1' } },
  },
  cursor: {
    'GitHub MCP': { headers: { Authorization: 'Bearer ${GITHUB_TOKEN}' } },
    postgres: { command: 'docker' },
    figma: { command: 'cmd' },
  },
  windsurf: {
    remote: { url: 'https://remote.example.com/mcp', filter: { deny: ['drop_table'] } },
    slack: { enabled: false },
  },
  zed: {
    linear: { url: 'https://mcp.linear.app/mcp' },
    tools: { command: '/opt/tools/bin/server', args: ['--stdio'] },
  },
  codex: {
    context7: { env: { CONTEXT7_KEY: '${CONTEXT7_KEY:-}', LEVEL: '1' } },
    figma: {
      headers: { 'X-Figma-Region': 'us-east-1', Authorization: 'Bearer ${FIGMA_OAUTH_TOKEN}' },
      filter: { allow: ['get_code', 'get_image'], deny: ['get_image'] },
    },
    off: { command: 'literal-$${NOT_A_VARIABLE}', enabled: false },
  },
  gemini: {
    pythonTools: {
      cwd: expect.stringMatching(/\/home\/mcp_tools\/python$/),
      env: { DATABASE_URL: '${DB_CONNECTION_STRING}', API_KEY: '${EXTERNAL_API_KEY}' },
    },
    httpServer: { url: 'http://localhost:3000/mcp', filter: { allow: ['safe_tool', 'file_reader'], deny: ['file_reader'] } },
    sse: { url: 'http://localhost:8081/sse' },
    unwanted: { enabled: false },
  },
  qwen: { weather: { url: 'https://weather.example.com/mcp' } },
  'copilot-cli': {
    playwright: { command: 'npx' },
    cloudflare: { transport: 'sse', filter: { allow: ['search'] } },
    sentry: { headers: { Authorization: 'Bearer ${SENTRY_TOKEN}' }, filter: { allow: [] } },
  },
  cline: {
    'local-server': { env: { API_KEY: 'your_api_key' } },
    'remote-server': { transport: 'http', enabled: false },
  },
  roo: {
    search: { headers: { 'X-Token': '${SEARCH_TOKEN}' }, filter: { deny: ['delete_index'] } },
    db: {
      args: ['db-server', expect.stringMatching(/\/project\/app\.db$/)],
      cwd: expect.stringMatching(/\/project\/tools$/),
    },
  },
  continue: {
    'SQLite MCP': { args: ['-y', 'mcp-sqlite', '/path/to/your/database.db'] },
    Supabase: { transport: 'http', headers: { Authorization: 'Bearer ${SUPABASE_ACCESS_TOKEN}' } },
  },
  goose: {
    fetch: { command: 'uvx', args: ['mcp-server-fetch'] },
    sheets: { url: 'https://sheets.example.com/mcp', enabled: false },
  },
  librechat: {
    everything: { transport: 'sse' },
    puppeteer: { command: 'npx' },
    keyed: { headers: { 'X-API-Key': '${SOME_API_KEY}' } },
  },
  opencode: {
    'my-local-mcp-server': {
      command: 'bun',
      args: ['x', 'my-mcp-command'],
      env: { MY_ENV_VAR: 'my_env_var_value', TOKEN: '${LOCAL_TOKEN}' },
    },
    jira: { enabled: false },
    sentry: { url: 'https://mcp.sentry.dev/mcp', filter: { deny: ['delete*'] } },
    second: { command: 'npx', args: ['-y', 'example-mcp-server'], env: { LOG_LEVEL: 'debug' } },
    paused: { url: 'https://paused.example.com/mcp', enabled: false },
  },
  jetbrains: { context7: { env: { DEFAULT_MINIMUM_TOKENS: '10000' } } },
  amp: {
    semgrep: { headers: { Authorization: 'Bearer ${SEMGREP_TOKEN}' } },
    playwright: { filter: { allow: ['browser_*'] } },
  },
}

test('the corpus has files of every host of the table, and nothing else', () => {
  const folders = readdirSync(CORPUS, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  expect(folders.map(({ name }) => name).sort()).toEqual(Object.keys(HOSTS).sort())
  expect(Object.keys(EXPECTED).sort()).toEqual(Object.keys(HOSTS).sort())
})

test('parts of a host are neither servers nor mistakes, and an entry without a command and a URL is told', async () => {
  await using files = await hostsHome()
  await files.write('home/.config/goose/config.yaml', 'extensions:\n  todo: { type: platform, enabled: true }\n')
  await files.write(
    'home/.config/zed/settings.json',
    '{ "context_servers": { "mcp-server-github": { "settings": { "token": "x" } } } }',
  )
  await files.write('home/.cursor/mcp.json', '{ "mcpServers": { "half": { "type": "http" }, "off": { "disabled": true } } }')
  const found = await findServers(files.around)
  expect(found.flatMap(({ servers }) => servers)).toEqual([])
  expect(found.flatMap(({ problems }) => problems)).toEqual([
    '~/.cursor/mcp.json:1:19 mcpServers.half: has neither a command nor a URL; add one, or remove the entry',
  ])
})

test('the workspace of a file for all projects is the open project, and that of a file of a project is this one', async () => {
  await using files = await hostsHome()
  const servers = '{"mcpServers":{"a":{"command":"x","args":["${workspaceFolder}","${workspaceFolderBasename}"]}}}'
  const at = ['mcpServers']
  const argsIn = async (scope: Scope, path: string): Promise<unknown> => {
    const found = await readPlace('cursor', { scope, path: await files.write(path, servers), at }, files.around)
    return found?.servers.map(({ draft }) => draft['args'])
  }
  expect(await argsIn('user', 'home/.cursor/mcp.json')).toEqual([[files.project, 'project']])
  expect(await argsIn('local', 'home/local.json')).toEqual([[files.project, 'project']])
  expect(await argsIn('project', 'other/.cursor/mcp.json')).toEqual([[join(dirname(files.project), 'other'), 'other']])
})

describe.each(keysOf(HOSTS))('%s', (host) => {
  test('its servers are found, with what is switched off', async () => {
    await using files = await hostsHome([host])
    const found = await findServers(files.around, [host])
    const servers = found.flatMap((file) => file.servers)
    expect(Object.fromEntries(servers.map(({ name, draft }) => [name, draft]))).toMatchObject(EXPECTED[host]!)
    expect(servers.map(({ name }) => name).sort()).toEqual(Object.keys(EXPECTED[host]!).sort())
    expect(servers.filter(({ draft }) => draft['enabled'] === false).map(({ isOff }) => isOff)).not.toContain(false)
  })

  const places = HOSTS[host].places({ env: {}, home: '/H', cwd: '/P', platform: 'linux' }).filter(({ isOld }) => isOld !== true)
  const targets = [STDIO, ...(HOSTS[host].http === undefined ? [] : [HTTP])]
  const cases = places.flatMap((place, at) => targets.map((target) => [place.scope, target.kind, at, target] as const))

  test.each(cases)(
    'connected in its %s file over %s, and disconnected: the bytes are equal',
    async (_scope, _kind, at, target) => {
      await using files = await hostsHome([host])
      const place = HOSTS[host].places(files.around).filter(({ isOld }) => isOld !== true)[at]!
      const before = await files.files()
      const text = existsSync(place.path) ? await readFile(place.path, 'utf8') : ''
      const connection = new HostConnection(place, files.state)
      const entry = entryFor(HOSTS[host], target)!
      const planned = await connection.planConnect(entry)
      expect(await files.files()).toEqual(before)
      await connection.connect(entry, [], planned, true)

      const after = await readFile(place.path, 'utf8')
      expect(after).toBe(planned.after)
      const data = readText(place.path, after)
      const inner = place.inner === undefined ? undefined : lookIn(data, [...place.at, place.inner])
      const servers = inner ?? lookIn(data, place.at)
      const ours = place.isList === true ? (servers as unknown[]).at(-1) : lookIn(servers, ['trunkline'])
      expect(ours).toMatchObject(entry)
      expect(linesMissing(text, after)).toEqual([])
      const [found] = (await findServers(files.around, [host])).filter(
        ({ file, isConnected }) => file === place.path && isConnected,
      )
      expect(found).toMatchObject({ isConnected: true })

      await connection.disconnect((await connection.planDisconnect())!, true)
      expect(await files.files()).toEqual(before)
      expect(await connection.planDisconnect()).toBeUndefined()
    },
  )

  test('what changed after it was connected stays when it is disconnected, and only our entry goes', async () => {
    await using files = await hostsHome([host])
    const place = HOSTS[host].places(files.around).find(({ path }) => existsSync(path))!
    const connection = new HostConnection(place, files.state)
    const text = await readFile(place.path, 'utf8')
    const before = readText(place.path, text)
    const entry = entryFor(HOSTS[host], STDIO)!
    await connection.connect(entry, [], await connection.planConnect(entry), true)
    const comment = /\.(toml|ya?ml)$/.test(place.path) ? '# added later\n' : '// added later\n'
    await files.write(place.path.slice(files.home.length - 4), comment + (await readFile(place.path, 'utf8')))
    await connection.disconnect((await connection.planDisconnect())!, true)
    const after = await readFile(place.path, 'utf8')
    expect(after.startsWith(comment)).toBe(true)
    expect(readText(place.path, after)).toEqual(before)
    expect(linesMissing(text, after)).toEqual([])
  })
})

/** Lines of `before` that are not in `after` in the same order, but for a comma or bracket that the change needs. */
const linesMissing = (before: string, after: string): string[] => {
  const bare = (line: string): string => line.replace(/[,{}\s]+$/, '')
  const rest = after.split('\n').map(bare)
  if (before.split('\n').length < 3) return []
  return before.split('\n').filter((line) => {
    const at = rest.indexOf(bare(line))
    if (at >= 0) rest.splice(0, at + 1)
    return at < 0
  })
}
