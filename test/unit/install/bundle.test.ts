import { expect, test } from 'vitest'
import { bundleDraft } from '../../../src/install/bundle.ts'
import type { Bundle } from '../../../src/install/bundle.ts'

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
