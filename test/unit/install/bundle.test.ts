import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { bundleDraft, readBundle, unpackBundle } from '../../../src/install/bundle.ts'
import type { Bundle } from '../../../src/install/bundle.ts'
import { InstallError } from '../../../src/install/inputs.ts'
import type { InputRequest } from '../../../src/install/inputs.ts'
import { zipOf } from './archive.ts'
import type { Member } from './archive.ts'

type Server = Bundle['manifest']['server']
const draftOf = (server: Server, user_config: Bundle['manifest']['user_config'] = {}, platform: NodeJS.Platform = 'linux') =>
  bundleDraft(
    { name: 'clock', manifest: { name: 'clock', server, user_config }, members: [], digest: '' },
    '/state/clock',
    { home: '/home/ada', platform },
    ({ standard }) => Promise.resolve(standard),
  )

test.each<[what: string, Server, command: string, args: readonly string[]]>([
  ['a script', { type: 'node', entry_point: 'server/index.js' }, 'node', ['/state/clock/server/index.js']],
  ['a script of Python', { type: 'python', entry_point: 'main.py' }, 'python3', ['/state/clock/main.py']],
  ['a program', { type: 'binary', entry_point: 'bin/clock' }, '/state/clock/bin/clock', []],
  [
    'a script of uv',
    { type: 'uv', entry_point: 'src/a.py' },
    'uv',
    ['run', '--directory', '/state/clock', '/state/clock/src/a.py'],
  ],
  ['a program by its path', { type: 'binary', mcp_config: { command: 'server/clock' } }, '/state/clock/server/clock', []],
  ['an interpreter that reads what it is given', { type: 'node' }, 'node', []],
  ['a command of its own', { type: 'node', entry_point: 'a.js', mcp_config: { command: 'deno' } }, 'deno', []],
  [
    'a command and its arguments',
    { type: 'uv', entry_point: 'a.py', mcp_config: { command: 'uv', args: ['run', '${__dirname}/a.py', '${HOME}'] } },
    'uv',
    ['run', '/state/clock/a.py', '/home/ada'],
  ],
])('%s is started as its manifest says', async (_, server, command, args) => {
  expect(await draftOf(server)).toEqual({ command, args, cwd: '/state/clock' })
})

test('what is said for one platform is for that one alone', async () => {
  const server: Server = {
    type: 'binary',
    entry_point: 'clock',
    mcp_config: { args: ['-v'], platform_overrides: { win32: { command: 'clock.exe' } } },
  }
  expect(await draftOf(server)).toMatchObject({ command: '/state/clock/clock', args: ['-v'] })
  expect(await draftOf(server, {}, 'win32')).toMatchObject({ command: 'clock.exe', args: ['-v'] })
})

test('a bundle that says nothing of its start is refused', async () => {
  await expect(draftOf({ type: 'binary' })).rejects.toThrow('the bundle clock names no command and no entry point')
})

test('settings fill arguments and the environment; a list alone becomes as many arguments, nothing becomes none', async () => {
  const server: Server = {
    type: 'node',
    entry_point: 'a.js',
    mcp_config: {
      command: 'node',
      args: ['a.js', '${user_config.dirs}', '--zone=${user_config.zone}', '${user_config.none}'],
      env: { ZONE: '${user_config.zone}', NONE: '${user_config.none}' },
    },
  }
  const settings = { dirs: { default: ['${HOME}/a', '/b'] }, zone: { default: 'UTC' }, none: {} }
  expect(await draftOf(server, settings)).toEqual({
    command: 'node',
    args: ['a.js', '/home/ada/a', '/b', '--zone=UTC'],
    env: { ZONE: 'UTC' },
    cwd: '/state/clock',
  })
})

test('variables of folders and separators are filled in', async () => {
  const args = ['${HOME}${/}a', '${DESKTOP}', '${DOCUMENTS}', '${DOWNLOADS}', 'a${pathSeparator}b', '${OTHER}']
  const server: Server = { type: 'binary', mcp_config: { command: '${__dirname}/clock', args } }
  expect(await draftOf(server)).toEqual({
    command: '/state/clock/clock',
    args: ['/home/ada/a', '/home/ada/Desktop', '/home/ada/Documents', '/home/ada/Downloads', 'a/b', '${OTHER}'],
    cwd: '/state/clock',
  })
})

test('each setting is asked for as the manifest describes it; what is given is one value, even with blanks', async () => {
  const requests: InputRequest[] = []
  const user_config: Bundle['manifest']['user_config'] = {
    key: { title: 'Key', description: 'The key', required: true, sensitive: true },
    dirs: { title: 'Folders', default: ['${HOME}', '/b'] },
    count: { default: 3 },
  }
  const args = ['${user_config.key}', '${user_config.dirs}', '${user_config.count}', 'all of ${user_config.dirs}']
  const server: Server = { type: 'node', mcp_config: { command: 'node', args } }
  const ask = (given: Readonly<Record<string, string>>): ReturnType<typeof draftOf> => {
    requests.length = 0
    const bundle = { name: 'clock', manifest: { name: 'clock', server, user_config }, members: [], digest: '' }
    return bundleDraft(bundle, '/state/clock', { home: '/home/ada' }, (request) => {
      requests.push(request)
      return Promise.resolve(given[request.name])
    })
  }
  expect(await ask({ key: 'k y', dirs: '/c d', count: '4' })).toMatchObject({ args: ['k y', '/c d', '4', 'all of /c d'] })
  expect(requests).toEqual([
    { name: 'key', description: 'The key', isRequired: true, isSecret: true, standard: undefined, choices: undefined },
    { name: 'dirs', description: 'Folders', isRequired: false, isSecret: false, standard: '/home/ada /b', choices: undefined },
    { name: 'count', description: undefined, isRequired: false, isSecret: false, standard: '3', choices: undefined },
  ])
  expect(await ask({ dirs: '/home/ada /b' })).toMatchObject({ args: ['/home/ada', '/b', 'all of /home/ada /b'] })
})

const folderOf = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-bundle-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}
const MANIFEST = { name: 'clock', server: { type: 'node', entry_point: 'server/index.js' } }
const MANIFEST_FILE: Member = { path: 'manifest.json', text: JSON.stringify(MANIFEST) }

const written = (...members: readonly Member[]): string => {
  const file = join(folderOf(), 'clock.mcpb')
  writeFileSync(file, zipOf(members))
  return file
}

describe('a bundle', () => {
  test('is read with its manifest; its digest is of the whole archive', async () => {
    const file = written(MANIFEST_FILE, { path: 'a', text: 'x' })
    const { members, ...bundle } = await readBundle(file)
    const digest = createHash('sha256').update(readFileSync(file)).digest('hex').slice(0, 12)
    expect(bundle).toEqual({ name: 'clock', manifest: MANIFEST, digest })
    expect(members.map(({ path }) => path)).toEqual(['manifest.json', 'a'])
  })

  test('whose manifest begins with a byte order mark is read', async () => {
    const { manifest } = await readBundle(written({ path: 'manifest.json', text: `\uFEFF${JSON.stringify(MANIFEST)}` }))
    expect(manifest).toEqual(MANIFEST)
  })

  test.each<[what: string, member: Member, reason: string | RegExp]>([
    ['without a manifest', { path: 'other.json', text: '{}' }, 'it contains no manifest.json'],
    ['whose manifest is not JSON', { path: 'manifest.json', text: '{' }, 'its manifest.json is not JSON'],
    [
      'whose manifest has no server',
      { path: 'manifest.json', text: '{"name":"a"}' },
      /its manifest\.json is not valid \(server: .+\)/,
    ],
  ])('%s is refused', async (_, member, reason) => {
    const file = written(member)
    await expect(readBundle(file)).rejects.toThrow(reason)
    await expect(readBundle(file)).rejects.toThrow(`${file} cannot be installed: `)
  })

  test('may have a manifest of 1 MiB and no more', async () => {
    const sized = (bytes: number): string => written({ path: 'manifest.json', text: JSON.stringify(MANIFEST).padEnd(bytes) })
    expect(await readBundle(sized(1024 ** 2))).toMatchObject({ name: 'clock' })
    await expect(readBundle(sized(1024 ** 2 + 1))).rejects.toThrow('its manifest.json is larger than 1 MiB')
  })

  test('that is too large is not read at all', async () => {
    const file = written(MANIFEST_FILE)
    truncateSync(file, 512 * 1024 ** 2 + 1)
    await expect(readBundle(file)).rejects.toThrow('it is larger than 512 MiB')
  })

  test('that is not there is refused with the reason of the system', async () => {
    const file = join(folderOf(), 'none.mcpb')
    await expect(readBundle(file)).rejects.toThrow(`${file} cannot be installed: ENOENT`)
  })

  test('with a damaged member, or for a folder that is a file, is refused and leaves nothing', async () => {
    const root = folderOf()
    const damaged = await readBundle(written(MANIFEST_FILE, { path: 'bin/clock', text: 'not deflated', method: 8 }))
    await expect(unpackBundle(damaged, root)).rejects.toThrow(
      /^the bundle clock cannot be unpacked to .*: it is not a ZIP archive that can be read$/,
    )
    expect(readdirSync(join(root, 'bundles'))).toEqual([])
    const file = join(root, 'file')
    writeFileSync(file, '')
    const unpacked = unpackBundle(await readBundle(written(MANIFEST_FILE)), file)
    await expect(unpacked).rejects.toThrow(InstallError)
    await expect(unpacked).rejects.toThrow(/^the bundle clock cannot be unpacked to .*ENOTDIR/)
  })

  test('is unpacked below a folder of its own, for its owner alone, once', async () => {
    const root = folderOf()
    const program: Member = { path: 'bin/clock', text: 'run', mode: 0o100755, isDeflated: true }
    const bundle = { ...(await readBundle(written(MANIFEST_FILE, program))), name: '..a b/c' }
    const folder = join(root, 'bundles', `a-b-c-${bundle.digest}`)
    // What was left of an attempt that broke off.
    mkdirSync(`${folder}.new/old`, { recursive: true })
    expect(await unpackBundle(bundle, root)).toBe(folder)
    expect([readdirSync(join(root, 'bundles')), readdirSync(folder).sort()]).toEqual([
      [`a-b-c-${bundle.digest}`],
      ['bin', 'manifest.json'],
    ])
    expect(readFileSync(join(folder, 'bin/clock'), 'utf8')).toBe('run')
    expect(['bin/clock', 'manifest.json'].map((path) => statSync(join(folder, path)).mode & 0o777)).toEqual([0o700, 0o600])
    const other = folderOf()
    expect(readdirSync(await unpackBundle(bundle, other)).sort()).toEqual(['bin', 'manifest.json'])
    writeFileSync(join(folder, 'state'), 'of the server')
    expect(await unpackBundle(bundle, root)).toBe(folder)
    expect(readFileSync(join(folder, 'state'), 'utf8')).toBe('of the server')
  })
})
