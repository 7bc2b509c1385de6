/** Our own configuration file and its `.env`, as `add`, `import` and `remove` change them. */
import { existsSync } from 'node:fs'
import { lstat, mkdir, readFile, stat, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { HostConnection } from '../../../src/host-files/connection.ts'
import { entryFor, HOSTS } from '../../../src/host-files/hosts.ts'
import type { HostName } from '../../../src/host-files/hosts.ts'
import {
  isSeenByGit,
  readOurFile,
  updateOurFile,
  withoutServer,
  withServers,
  withValues,
} from '../../../src/host-files/our-file.ts'
import { hostsHome } from './hosts-home.ts'

const NO_VALUES = new Map<string, string>()
const modeOf = async (file: string): Promise<number> => (await stat(file)).mode & 0o777

describe('the file', () => {
  test.each<[text: string | undefined, envFile: string, names: boolean, servers: object]>([
    [undefined, '.env', false, {}],
    ['', '.env', false, {}],
    ['servers: { a: { command: x }, b: 5 }\n', '.env', false, { a: { command: 'x' }, b: {} }],
    ['servers: 5\nenv_file: own.env\n', 'own.env', true, {}],
    ['env_file: [5, one.env, two.env]\n', 'one.env', true, {}],
    ['env_file: []\n', '.env', false, {}],
  ])('%j has its variables in %s', async (text, envFile, namesEnvFile, servers) => {
    await using files = await hostsHome()
    const file = text === undefined ? join(files.project, 't.yaml') : await files.write('project/t.yaml', text)
    await files.write(`project/${envFile}`, 'A=1\n')
    expect(await readOurFile(file, files.around)).toEqual({
      file,
      text,
      servers,
      envFile: join(files.project, envFile),
      namesEnvFile,
      values: { A: '1' },
    })
  })

  test('names an env_file by ~/ and by variables', async () => {
    await using files = await hostsHome([], { FOLDER: '/elsewhere' })
    const envFileOf = async (named: string): Promise<string> =>
      (await readOurFile(await files.write('project/t.yaml', `env_file: ["${named}"]\n`), files.around)).envFile
    expect(await envFileOf('~/.secrets.env')).toBe(join(files.home, '.secrets.env'))
    expect(await envFileOf('${FOLDER}/x.env')).toBe('/elsewhere/x.env')
    expect(await envFileOf('${workspaceFolder}/x.env')).toBe(join(files.project, 'x.env'))
    await expect(envFileOf('${GONE}/x.env')).rejects.toThrow(/t\.yaml env_file: variable GONE is not set; set it/)
  })

  test('that cannot be read is told with its name', async () => {
    await using files = await hostsHome()
    await expect(readOurFile(await files.write('project/t.yaml', 'a: ['), files.around)).rejects.toThrow(
      /t\.yaml does not parse as YAML/,
    )
    await expect(readOurFile(await files.write('project/t.yaml', 'a: *x'), files.around)).rejects.toThrow(
      /t\.yaml does not parse as YAML.*left unchanged/,
    )
    await expect(readOurFile(await files.write('project/t.yaml', 'a: 1\n---\nb: 2\n'), files.around)).rejects.toThrow(
      /t\.yaml does not parse as YAML \(a second document begins here.* at line 2, column 1\)/,
    )
  })

  test.each<[text: string | undefined, values: ReadonlyMap<string, string>, expected: RegExp]>([
    [undefined, NO_VALUES, /^# .*\nversion: 1\nservers:\n  a:\n    command: x\n$/],
    [undefined, new Map([['A', '1']]), /\nenv_file:\n  - \.env\nservers:\n  a:/],
    ['env_file: own.env\n', new Map([['A', '1']]), /^env_file: own\.env\nservers:\n/],
    ['servers:\n  b: { command: y }\n', NO_VALUES, /^servers:\n  b: \{ command: y \}\n  a:\n    command: x\n$/],
  ])('%j has a server added', async (text, values, expected) => {
    await using files = await hostsHome()
    const file = text === undefined ? join(files.project, 't.yaml') : await files.write('project/t.yaml', text)
    const ours = await readOurFile(file, files.around)
    const after = withServers(ours, { servers: [{ key: 'a', draft: { command: 'x' } }], values })
    expect(after).toMatch(expected)
    expect(withoutServer({ ...ours, text: after }, 'a')).not.toContain('command: x')
    expect(withoutServer({ ...ours, text: undefined }, 'a')).toBe('')
  })
})

test.each<[before: string, value: string, after: string]>([
  ['', 'plain-1', 'A=plain-1\n'],
  ['B=1', '', 'B=1\nA=\n'],
  ['B=1\n', 'two words', "B=1\nA='two words'\n"],
  ['', `it's`, `A="it's"\n`],
  ['', `it's "x"`, `A=\`it's "x"\`\n`],
  ['', '$x', "A='$x'\n"],
])('to %j the value %s is added', (before, value, after) => {
  expect(withValues(before, new Map([['A', value]]))).toBe(after)
})

test('a value with every kind of quote is refused, and not told', () => {
  expect(() => withValues('', new Map([['A', '\'"`x']]))).toThrow(
    /^the value of A contains every kind of quote; set it in the environment$/,
  )
})

describe('a change', () => {
  test('writes the values first, for the owner alone, and both files only where they change', async () => {
    await using files = await hostsHome()
    const [file, env] = [join(files.project, 't.yaml'), join(files.project, '.env')]
    const update = (text: string, values?: ReadonlyMap<string, string>) =>
      updateOurFile(file, files.around, () => ({ text, ...(values !== undefined && { values }) }))
    expect(await update('a: 1\n', new Map([['A', '1']]))).toEqual({ file, envFile: env })
    expect([await readFile(file, 'utf8'), await readFile(env, 'utf8'), await modeOf(file), await modeOf(env)]).toEqual([
      'a: 1\n',
      'A=1\n',
      0o600,
      0o600,
    ])
    const { ino } = await stat(file)
    expect(await update('a: 1\n')).toEqual({ file, envFile: undefined })
    expect((await stat(file)).ino).toBe(ino)
    expect(await update('a: 2\n')).toEqual({ file, envFile: undefined })
    expect([await readFile(file, 'utf8'), await readFile(env, 'utf8')]).toEqual(['a: 2\n', 'A=1\n'])
  })

  test.each<[before: string | undefined, text: string, isMade: boolean]>([
    [undefined, 'env_file: [.env]\n', true],
    [undefined, 'a: 1\n', false],
    ['a: 1\n', 'env_file: [.env]\n', false],
  ])('of %j to %j makes an empty file of variables: %s', async (before, text, isMade) => {
    await using files = await hostsHome()
    const file = before === undefined ? join(files.project, 't.yaml') : await files.write('project/t.yaml', before)
    await updateOurFile(file, files.around, () => ({ text }))
    expect(existsSync(join(files.project, '.env'))).toBe(isMade)
    const kept = await files.write('project/.env', 'A=1\n')
    await updateOurFile(join(files.project, 'u.yaml'), files.around, () => ({ text: 'env_file: [.env]\n' }))
    expect(await readFile(kept, 'utf8')).toBe('A=1\n')
  })
})

test.each<[repository: string | undefined, rules: Readonly<Record<string, string>>, isSeen: boolean]>([
  [undefined, {}, false],
  ['project', {}, true],
  ['', {}, true],
  ['project', { 'project/.gitignore': 'x\r\n .env \r\n' }, false],
  ['project', { 'project/.gitignore': '/.env\n' }, false],
  ['project', { 'project/.gitignore': '.env*\n' }, false],
  ['project', { 'project/.gitignore': '*.env\n' }, false],
  ['project', { 'project/.gitignore': 'env\n#.env\n' }, true],
  ['', { '.gitignore': '.env\n' }, false],
  ['project', { '.gitignore': '.env\n' }, true],
])('in a repository at %s with %j git would add .env: %s', async (repository, rules, isSeen) => {
  await using files = await hostsHome()
  const root = join(files.project, '..')
  if (repository !== undefined) await mkdir(join(root, repository, '.git'))
  for (const [path, text] of Object.entries(rules)) await files.write(path, text)
  expect(await isSeenByGit(join(files.project, '.env'))).toBe(isSeen)
})

test('servers that move to us come back with the host’s own text, and into a file that was changed, too', async () => {
  await using files = await hostsHome()
  const servers = '{\n  "mcpServers": {\n    "a": { "command": "x" },\n    "b": { "command": "y" }\n  }\n}\n'
  const path = await files.write('home/.cursor/mcp.json', servers)
  const entry = entryFor(HOSTS['cursor'], { kind: 'stdio', command: 'c', args: [] })!
  const connection = new HostConnection({ scope: 'user', path, at: ['mcpServers'] }, files.state)
  const read = async () => JSON.parse(await readFile(path, 'utf8')) as { mcpServers: object }
  const moved = ['a', 'none']
  const connect = async (): Promise<void> =>
    void (await connection.connect(entry, moved, await connection.planConnect(entry, moved), true))
  const disconnect = async (): Promise<void> => void (await connection.disconnect((await connection.planDisconnect())!, true))
  await connect()
  expect(Object.keys((await read()).mcpServers)).toEqual(['b', 'trunkline'])
  await disconnect()
  expect(await readFile(path, 'utf8')).toBe(servers)
  await connect()
  await files.write('home/.cursor/mcp.json', JSON.stringify({ ...(await read()), other: 1 }))
  await disconnect()
  expect(await read()).toEqual({ other: 1, mcpServers: { b: { command: 'y' }, a: { command: 'x' } } })
  // The host has made a server of this name meanwhile: that one stays.
  await connect()
  const now = await read()
  await files.write('home/.cursor/mcp.json', JSON.stringify({ mcpServers: { ...now.mcpServers, a: { command: 'new' } } }))
  await disconnect()
  expect((await read()).mcpServers).toEqual({ b: { command: 'y' }, a: { command: 'new' } })
})

test('a file that changed since the difference was shown is left as it is, unless nothing was shown', async () => {
  await using files = await hostsHome()
  const path = await files.write('home/.cursor/mcp.json', '{}')
  const entry = entryFor(HOSTS['cursor'], { kind: 'stdio', command: 'c', args: [] })!
  const connection = new HostConnection({ scope: 'user', path, at: ['mcpServers'] }, files.state)
  const planned = await connection.planConnect(entry)
  await files.write('home/.cursor/mcp.json', '{"x":1}')
  await expect(connection.connect(entry, [], planned, true)).rejects.toThrow(/changed since the difference was shown/)
  expect(await readFile(path, 'utf8')).toBe('{"x":1}')
  expect((await connection.connect(entry, [], planned, false)).before).toBe('{"x":1}')
  expect(await readFile(path, 'utf8')).toContain('trunkline')
})

test.each(['the file', 'its folder', 'the file, through another link'])(
  'a link to what does not exist yet stays a link: %s; disconnecting leaves the link alone',
  async (which) => {
    await using files = await hostsHome()
    const target = join(files.project, 'dotfiles')
    const path = join(files.home, '.cursor', 'mcp.json')
    const link = which === 'its folder' ? dirname(path) : path
    await mkdir(dirname(link), { recursive: true })
    if (which === 'its folder') await mkdir(target)
    if (which === 'the file, through another link') {
      await symlink(join('..', '..', 'project', 'dotfiles'), join(files.home, '.cursor', 'second'))
      await symlink('second', link)
    } else await symlink(target, link)
    const entry = entryFor(HOSTS['cursor'], { kind: 'stdio', command: 'c', args: [] })!
    const connection = new HostConnection({ scope: 'user', path, at: ['mcpServers'] }, files.state)
    await connection.connect(entry, [], await connection.planConnect(entry), true)
    expect((await lstat(link)).isSymbolicLink()).toBe(true)
    expect(await readFile(path, 'utf8')).toContain('trunkline')
    await connection.disconnect((await connection.planDisconnect())!, true)
    expect((await lstat(link)).isSymbolicLink()).toBe(true)
    await expect(readFile(path)).rejects.toThrow('ENOENT')
  },
)

test.each<[host: HostName, path: string, before: string | undefined, added: string, after: string]>([
  ['goose', 'home/.config/goose/config.yaml', 'GOOSE_MODEL: m\n', '# later\n', 'GOOSE_MODEL: m\n# later\n'],
  ['goose', 'home/.config/goose/config.yaml', 'extensions: {}\n', '# later\n', 'extensions: {}\n# later\n'],
  ['continue', 'home/.continue/config.yaml', 'mcpServers: []  # none\n', 'name: a\n', 'mcpServers: []  # none\nname: a\n'],
  ['continue', 'home/.continue/config.yaml', 'name: a\n', '# later\n', 'name: a\n# later\n'],
  ['zed', 'home/.config/zed/settings.json', '{\n  "a": 1\n}\n', '// later\n', '{\n  "a": 1\n}\n// later\n'],
  ['opencode', 'home/.config/opencode/opencode.json', '{}', '\n', '{\n}\n'],
  ['claude-code', 'home/.claude.json', '{"projects":{"/x":{}}}', '\n', '{"projects":{"/x":{}}}\n'],
  ['gemini', 'home/.gemini/settings.json', undefined, '\n', '{\n}\n\n'],
])(
  '%s: the list that connecting made goes, too, also from a file that was changed since',
  async (host, name, before, added, after) => {
    await using files = await hostsHome()
    const place = HOSTS[host].places(files.around)[0]!
    const path = before === undefined ? place.path : await files.write(name, before)
    expect(path).toBe(place.path)
    const entry = entryFor(HOSTS[host], { kind: 'stdio', command: 'c', args: [] })!
    const connection = new HostConnection(place, files.state)
    await connection.connect(entry, [], await connection.planConnect(entry), true)
    await files.write(name, (await readFile(path, 'utf8')) + added)
    await connection.disconnect((await connection.planDisconnect())!, true)
    expect(await readFile(path, 'utf8')).toBe(after)
  },
)
