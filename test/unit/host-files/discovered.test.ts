/** A configuration out of the files of hosts: what is served, what is left out, and what is said of a wrong name. */
import { chown, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { discover, refuseBroken } from '../../../src/host-files/discovered.ts'
import type { Discovered, Discovery } from '../../../src/host-files/discovered.ts'
import { findInFile } from '../../../src/host-files/found-in-file.ts'
import { findServers, nameOf, readPlace } from '../../../src/host-files/found.ts'
import { connectGuides } from '../../../src/host-files/guides.ts'
import { entryFor, HOSTS } from '../../../src/host-files/hosts.ts'
import type { HostName, UserEnvironment } from '../../../src/host-files/hosts.ts'
import { editedText } from '../../../src/host-files/sample.ts'
import { hostsHome } from './hosts-home.ts'
import type { HostsHome } from './hosts-home.ts'

const servers = (members: object): string => JSON.stringify({ mcpServers: members })
const discovering = (files: HostsHome, more: Partial<Discovery> = {}, overrides?: object): Promise<Discovered> =>
  discover(
    { ...files.around, ...(overrides !== undefined && { overrides }) },
    { standsFor: join(files.home, 'trunkline.yaml'), scopes: ['user', 'local', 'project'], from: [], ...more },
  )
const keysOf = ({ configuration }: Discovered): readonly string[] => configuration.servers.map(({ key }) => key)

describe('what is served', () => {
  test('is every server of every host that is valid, each invalid one being told with its place', async () => {
    await using files = await hostsHome()
    await files.write('home/.cursor/mcp.json', servers({ a: { command: 'x' }, bad: { url: 'nope' } }))
    await files.write(
      'project/.mcp.json',
      servers({
        b: { url: 'https://x.test', headers: { 'bad name': 'x' } },
        c: { command: 'y', env: { K: '${UNSET}', API_KEY: 'secret' } },
      }),
    )
    const found = await discovering(files)
    expect([keysOf(found), [...found.leftOut.keys()].toSorted()]).toEqual([
      ['c', 'a'],
      ['b', 'bad'],
    ])
    expect(found.leftOut.get('b')).toMatch(/^\.mcp\.json:1:\d+ /)
    expect(found.configuration.servers[0]?.launch?.env).toMatchObject({ K: '', API_KEY: 'secret' })
    expect(keysOf(await discovering(files, { scopes: ['user'] }))).toEqual(['a'])
  })

  test('may be of named hosts and files alone, whose files are watched on request', async () => {
    await using files = await hostsHome()
    const cursor = await files.write('home/.cursor/mcp.json', servers({ a: { command: 'x' } }))
    await files.write('project/.mcp.json', servers({ b: { command: 'y' } }))
    await files.write('project/other.json', servers({ c: { command: 'z' } }))
    expect(keysOf(await discovering(files, { from: ['cursor', 'other.json'] }))).toEqual(['a', 'c'])
    expect((await discovering(files, { from: ['cursor'] })).configuration.files).toEqual([cursor])
    const watched = async (overrides?: object) => (await discovering(files, { from: ['cursor'] }, overrides)).configuration.watch
    expect([await watched(), await watched({ watch: false }), await watched({ watch: true })]).toEqual([false, false, true])
  })

  test.each([
    ['cursr', /^cursr is neither a file nor a known host; did you mean "cursor"\?$/],
    ['qqqqqqqq', /is neither a file nor a known host; known: claude-code, /],
    ['none.json', /none\.json cannot be read \(ENOENT\)/],
  ])('is nothing where %s is named', async (word, message) => {
    await using files = await hostsHome()
    await expect(discovering(files, { from: [word] })).rejects.toThrow(message)
  })

  test('a problem that is of no server is an error', async () => {
    await using files = await hostsHome()
    await files.write('home/.cursor/mcp.json', servers({ a: { command: 'x' } }))
    await expect(discovering(files, {}, { listen: 'nowhere' })).rejects.toThrow(/nowhere/)
  })

  test('stays in use where a file that had servers cannot be read any more', async () => {
    await using files = await hostsHome()
    const write = (text: string) => files.write('home/.cursor/mcp.json', text)
    await files.write('project/.mcp.json', servers({}))
    await write(servers({ a: { command: 'x' } }))
    const before = await discovering(files)
    await write('{ "mcpServers": ')
    const broken = await discovering(files)
    expect(() => refuseBroken(before, broken)).toThrow(/~\/\.cursor\/mcp\.json:/)
    expect(() => refuseBroken(broken, broken)).not.toThrow()
    await write(servers({}))
    const empty = await discovering(files)
    expect(() => refuseBroken(before, empty)).not.toThrow()
    await write(servers({ a: { command: 'x' }, b: {} }))
    expect(() => refuseBroken(before, before)).not.toThrow()
    expect((await discovering(files)).found.flatMap(({ problems }) => problems)).toHaveLength(1)
  })
})

describe('a file in any folder', () => {
  test.each<[name: string, text: string, host: HostName, names: readonly string[]]>([
    ['a.json', servers({ a: { command: 'x' } }), 'claude-code', ['a']],
    ['claude_desktop_config.json', servers({ a: { command: 'x' } }), 'claude-desktop', ['a']],
    ['opencode.json', '{"mcp":{"a":{"type":"local","command":["x"]}}}', 'opencode', ['a']],
    ['mcp.json', '{"servers":{"a":{"command":"x"}}}', 'vscode', ['a']],
    ['a.toml', '[mcp_servers.a]\ncommand = "x"\n', 'codex', ['a']],
    ['a.yml', 'extensions:\n  a: { type: stdio, cmd: x }\n', 'goose', ['a']],
    ['a', servers({ a: { command: 'x' } }), 'claude-code', ['a']],
  ])('%s with %s is of %s', async (name, text, host, names) => {
    await using files = await hostsHome()
    const found = await findInFile(await files.write(`project/${name}`, text), files.around)
    expect([found.host, found.servers.map((server) => server.name)]).toEqual([host, names])
  })

  test.each([
    ['a.json', '{"other":{}}', /^a\.json contains no servers in the form of a known host: claude-code, /],
    ['a.yaml', servers({}).replace('mcpServers', 'servers'), /contains no servers/],
    ['a.json', '{', /^a\.json does not parse as JSON/],
  ])('%s with %s is refused', async (name, text, message) => {
    await using files = await hostsHome()
    await expect(findInFile(await files.write(`project/${name}`, text), files.around)).rejects.toThrow(message)
  })

  test('whose list of servers is empty has none, and is not connected', async () => {
    await using files = await hostsHome()
    const file = await files.write('project/.mcp.json', '{"mcpServers":null}')
    expect(await findInFile(file, files.around)).toMatchObject({ servers: [], problems: [], isConnected: false })
  })
})

describe('a file of a host', () => {
  test('T-12 of another user is not read, unless that is root or we are', async () => {
    await using files = await hostsHome()
    const path = await files.write('home/.cursor/mcp.json', servers({ a: { command: 'x' } }))
    const own = process.getuid?.() ?? 0
    const read = async (uid: number | undefined) => {
      const found = await readPlace('cursor', { scope: 'user', path, at: ['mcpServers'] }, { ...files.around, uid })
      return [found?.servers.length, found?.problems.length, found?.isConnected]
    }
    for (const uid of [undefined, 0, own]) expect(await read(uid)).toEqual([1, 0, false])
    // Files of root are everybody's.
    if (own === 0) {
      expect(await read(1)).toEqual([1, 0, false])
      await chown(path, 2, 2)
    }
    expect(await read(own + 1)).toEqual([0, 1, false])
    expect(await read(0)).toEqual([1, 0, false])
  })

  test.each<[entry: object, isOurs: boolean]>([
    [{ command: 'trunkline', args: ['stdio'] }, true],
    [{ command: '/opt/bin/trunkline', args: ['-c', 'x', 'stdio'] }, true],
    [{ command: 'npx', args: ['-y', 'trunkline@latest', 'stdio'] }, true],
    [{ command: 'npx', args: ['trunkline-other', 'stdio'] }, false],
    [{ command: 'trunkline', args: ['up'] }, false],
    [{ command: 'stdio', args: ['trunkline'] }, false],
    [{ command: 'x', args: ['stdio', 'trunkline'] }, false],
    [{ url: 'https://x.test' }, false],
  ])('with %j holds us: %s', async (entry, isOurs) => {
    await using files = await hostsHome()
    await files.write('home/.cursor/mcp.json', servers({ mine: entry }))
    const [found] = await findServers(files.around, ['cursor'])
    expect([found?.isConnected, found?.servers.length]).toEqual([isOurs, isOurs ? 0 : 1])
  })

  test.each<[host: HostName, path: string, text: string, problems: readonly RegExp[] | undefined]>([
    ['cursor', 'home/.cursor/mcp.json', '{}', []],
    ['cursor', 'home/.cursor/mcp.json', '{"mcpServers":null}', []],
    ['cursor', 'home/.cursor/mcp.json', '{"mcpServers":5}', [/expected a mapping/]],
    ['cursor', 'home/.cursor/mcp.json', '{', [/^~\/\.cursor\/mcp\.json:/]],
    ['cursor', 'project/.cursor/mcp.json', '{}', undefined],
    ['cursor', 'project/.cursor/mcp.json', '{', [/^\.cursor\/mcp\.json:/]],
    ['opencode', 'project/opencode.json', '{"mcp":{"servers":{"type":"remote","url":"https://x.test"}}}', []],
  ])('of %s at %s that holds %s has the problems %j', async (host, path, text, problems) => {
    await using files = await hostsHome()
    await files.write(path, text)
    const [found] = await findServers(files.around, [host])
    expect(found?.problems).toEqual(problems?.map((problem) => expect.stringMatching(problem) as unknown))
    if (host === 'opencode') expect(found?.servers.map(({ name }) => name)).toEqual(['servers'])
  })

  test.each([
    ['/home/me/work/a/x.json', 'a/x.json'],
    ['/home/me/x.json', '~/x.json'],
    ['/home/me/other/x.json', '~/other/x.json'],
    ['/home/meadow/x.json', '/home/meadow/x.json'],
    ['/etc/x.json', '/etc/x.json'],
  ])('%s is called %s', (file, name) => {
    expect(nameOf(file, { cwd: '/home/me/work', home: '/home/me' })).toBe(name)
  })

  test('in the home folder, which is the working folder, is called by that one', () => {
    expect(nameOf('/home/me/x.json', { cwd: '/home/me', home: '/home/me' })).toBe('~/x.json')
    expect(nameOf('/home/me/.cursor/x.json', { cwd: '/home/me', home: '/home/me' })).toBe('.cursor/x.json')
  })
})

describe('where hosts have their files', () => {
  const pathsOf = (host: HostName, user: Partial<UserEnvironment>): readonly string[] =>
    HOSTS[host].places({ env: {}, home: '/H', cwd: '/P', platform: 'linux', ...user }).map(({ path }) => path)

  test.each<[host: HostName, user: Partial<UserEnvironment>, path: string]>([
    ['claude-desktop', {}, '/H/.config/Claude/claude_desktop_config.json'],
    ['claude-desktop', { env: { XDG_CONFIG_HOME: '/X' } }, '/X/Claude/claude_desktop_config.json'],
    ['claude-desktop', { env: { XDG_CONFIG_HOME: 'X' } }, '/H/.config/Claude/claude_desktop_config.json'],
    ['claude-desktop', { env: { XDG_CONFIG_HOME: '' } }, '/H/.config/Claude/claude_desktop_config.json'],
    ['claude-desktop', { platform: 'darwin' }, '/H/Library/Application Support/Claude/claude_desktop_config.json'],
    [
      'claude-desktop',
      { platform: 'win32', home: 'C:\\H', env: { APPDATA: 'D:\\R' } },
      'D:\\R\\Claude\\claude_desktop_config.json',
    ],
    ['claude-desktop', { platform: 'win32', home: 'C:\\H' }, 'C:\\H\\AppData\\Roaming\\Claude\\claude_desktop_config.json'],
    ['zed', { platform: 'win32', home: 'C:\\H' }, 'C:\\H\\AppData\\Roaming\\Zed\\settings.json'],
    ['zed', { platform: 'darwin' }, '/H/.config/zed/settings.json'],
    ['goose', { platform: 'win32', home: 'C:\\H' }, 'C:\\H\\AppData\\Roaming\\Block\\goose\\config\\config.yaml'],
    ['goose', {}, '/H/.config/goose/config.yaml'],
    ['claude-code', { env: { CLAUDE_CONFIG_DIR: '/C' } }, '/C/.claude.json'],
    ['codex', { env: { CODEX_HOME: '/C' } }, '/C/config.toml'],
    ['codex', {}, '/H/.codex/config.toml'],
    ['copilot-cli', { env: { COPILOT_HOME: '/C' } }, '/C/mcp-config.json'],
    ['gemini', { env: { GEMINI_CLI_HOME: '/G' } }, '/G/.gemini/settings.json'],
    ['qwen', { env: { GEMINI_CLI_HOME: '/G' } }, '/H/.qwen/settings.json'],
    ['cline', { env: { CLINE_MCP_SETTINGS_PATH: '/C/x.json' } }, '/C/x.json'],
    ['librechat', { env: { CONFIG_PATH: '/L.yaml' } }, '/L.yaml'],
    ['librechat', {}, '/P/librechat.yaml'],
  ])('%s of %j: %s', (host, user, path) => {
    expect(pathsOf(host, user)).toContain(path)
  })

  test.each<[host: HostName, entry: object]>([
    ['cline', { command: 'c', args: ['a'], disabled: false, env: { E: '1' } }],
    ['goose', { type: 'stdio', name: 'trunkline', enabled: true, cmd: 'c', args: ['a'], timeout: 300, envs: { E: '1' } }],
    ['opencode', { type: 'local', command: ['c', 'a'], environment: { E: '1' } }],
  ])('%s starts us by %j', (host, entry) => {
    expect(entryFor(HOSTS[host], { kind: 'stdio', command: 'c', args: ['a'], env: { E: '1' } })).toEqual(entry)
  })

  test.each<[host: HostName, tokenVariable: string | undefined, entry: object | undefined]>([
    ['roo', undefined, { type: 'streamable-http', url: 'u', disabled: false }],
    ['cline', undefined, { type: 'streamableHttp', url: 'u', disabled: false }],
    ['cline', 'T', undefined],
    ['claude-desktop', undefined, undefined],
    ['cursor', 'T', { url: 'u', headers: { Authorization: 'Bearer ${env:T}' } }],
    ['cursor', undefined, { url: 'u' }],
    ['codex', 'T', { url: 'u', bearer_token_env_var: 'T' }],
    ['codex', undefined, { url: 'u' }],
    [
      'continue',
      'T',
      { type: 'streamable-http', url: 'u', requestOptions: { headers: { Authorization: 'Bearer ${{ secrets.T }}' } } },
    ],
    ['continue', undefined, { type: 'streamable-http', url: 'u' }],
    [
      'goose',
      'T',
      {
        type: 'streamable_http',
        name: 'trunkline',
        enabled: true,
        uri: 'u',
        headers: { Authorization: 'Bearer $T' },
        timeout: 300,
      },
    ],
    ['opencode', 'T', { type: 'remote', url: 'u', headers: { Authorization: 'Bearer {env:T}' } }],
  ])('%s connects with the token in %s by %j', (host, tokenVariable, entry) => {
    expect(entryFor(HOSTS[host], { kind: 'http', url: 'u', tokenVariable })).toEqual(entry)
  })
})

test('guides name the file of the user, its content and a link where the host has one', () => {
  const guides = connectGuides('https://x.test/mcp', 'T')
  const labelled = new Map(guides.map((guide) => [guide.label, guide]))
  expect(labelled.get('Cursor')).toMatchObject({ file: '~/.cursor/mcp.json', link: expect.stringMatching(/^cursor:/) as unknown })
  expect(labelled.get('VS Code')).toMatchObject({ file: 'mcp.json', link: expect.stringMatching(/^vscode:/) as unknown })
  expect(JSON.parse(labelled.get('VS Code')?.text ?? '')).toMatchObject({ servers: { trunkline: { url: 'https://x.test/mcp' } } })
  expect(labelled.get('Continue')?.text).toContain('- name: trunkline')
  expect(labelled.get('Gemini CLI')).not.toHaveProperty('link')
  for (const label of ['Claude Desktop', 'LibreChat', 'Zed', 'Cline']) expect([...labelled.keys()], label).not.toContain(label)
  expect(connectGuides('u', undefined).map(({ label }) => label)).toContain('Zed')
  expect(editedText({ scope: 'user', path: 'a.json', at: ['x'] }, { url: 'u' })).toBe(
    '{\n  "x": {\n    "trunkline": {\n      "url": "u"\n    }\n  }\n}\n',
  )
})

test('a folder in place of a file is told', async () => {
  await using files = await hostsHome()
  await mkdir(join(files.home, '.cursor', 'mcp.json'), { recursive: true })
  expect((await findServers(files.around, ['cursor'])).flatMap(({ problems }) => problems)).toHaveLength(1)
})

test('where the project is the home folder, a file of both is read once, as the user’s', async () => {
  await using files = await hostsHome()
  await files.write('home/.cursor/mcp.json', JSON.stringify({ mcpServers: { a: { command: 'a' } } }))
  await files.write('home/.vscode/mcp.json', JSON.stringify({ servers: { b: { command: 'b' } } }))
  const around = { ...files.around, cwd: files.home }
  const found = await findServers(around)
  expect(found.map(({ host, scope, servers }) => [host, scope, servers.map(({ name }) => name)])).toEqual([
    ['vscode', 'project', ['b']],
    ['cursor', 'user', ['a']],
  ])
  expect(await findServers(around, ['cursor'], ['project'])).toHaveLength(1)
})

test('a duplicate key costs no server', async () => {
  await using files = await hostsHome()
  await files.write(
    'home/.cursor/mcp.json',
    '{ "mcpServers": { "a": { "command": "x" }, "a": { "command": "y" } }, "n": 1, "n": 2 }',
  )
  const [found] = await findServers(files.around, ['cursor'])
  expect(found).toMatchObject({ servers: [{ name: 'a', draft: { command: 'y' } }], problems: [] })
  expect(found?.warnings).toEqual([
    expect.stringMatching(/^~\/\.cursor\/mcp\.json:1:\d+ mcpServers\.a: duplicate key "a".*the last one counts, as in the host$/),
    expect.stringMatching(/ n: duplicate key "n"/),
  ])
})
