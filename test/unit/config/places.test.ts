import { spawnSync } from 'node:child_process'
import { chown } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { homeFolder } from '../../../src/config/home-folder.ts'
import { findConfiguration, userConfiguration } from '../../../src/config/read/find.ts'
import { configRoot, runtimeRoot, stateRoot } from '../../../src/config/read/folders.ts'
import { workspace } from './workspace.ts'

describe('folders of the system', () => {
  test.each([
    ['linux', {}, '/h/.local/state/trunkline', '/h/.config/trunkline', '/tmp/trunkline-7'],
    [
      'linux',
      { XDG_STATE_HOME: '/s', XDG_CONFIG_HOME: '/c', XDG_RUNTIME_DIR: '/run/user/7' },
      '/s/trunkline',
      '/c/trunkline',
      '/run/user/7/trunkline',
    ],
    [
      'linux',
      { XDG_STATE_HOME: 'relative', TMPDIR: '/var/tmp' },
      '/h/.local/state/trunkline',
      '/h/.config/trunkline',
      '/var/tmp/trunkline-7',
    ],
    ['darwin', {}, '/h/Library/Application Support/trunkline', '/h/.config/trunkline', '/tmp/trunkline-7'],
    [
      'win32',
      { LOCALAPPDATA: 'C:\\L', APPDATA: 'C:\\R', TEMP: 'C:\\T' },
      'C:\\L\\trunkline',
      'C:\\R\\trunkline',
      'C:\\T\\trunkline-7',
    ],
  ] as const)('%s %j', (platform, env, state, config, runtime) => {
    const around = { platform, env, home: '/h', uid: 7 }
    expect([stateRoot(around), configRoot(around), runtimeRoot(around)]).toEqual([state, config, runtime])
  })

  test('each configuration has its own folder below', async () => {
    await using files = await workspace({ 'a.yaml': '', 'b.yaml': '' })
    const around = { platform: 'linux', home: '/h' } as const
    const [a, b] = [await files.load('a.yaml', around), await files.load('b.yaml', around)]
    expect(a.stateDir).toBe(`/h/.local/state/trunkline/${a.id}`)
    expect(b.stateDir).toBe(`/h/.local/state/trunkline/${b.id}`)
    expect(a.id).not.toBe(b.id)
  })
})

describe('which configuration is meant', () => {
  test('typed commands look upwards, then in the folder of the user; stdio looks only there', async () => {
    await using files = await workspace({
      'project/trunkline.yaml': '',
      'project/a/b/x': '',
      'elsewhere/x': '',
      'config/trunkline/trunkline.yaml': '',
    })
    const env = { XDG_CONFIG_HOME: files.path('config') }
    const ours = files.path('config/trunkline/trunkline.yaml')
    expect(await findConfiguration(files.path('project/a/b'), files.path('home'), env)).toBe(files.path('project/trunkline.yaml'))
    expect(await findConfiguration(files.path('elsewhere'), files.path('home'), env)).toBe(ours)
    expect(await findConfiguration(files.path('elsewhere'), files.path('home'), {})).toBeUndefined()
    expect(await userConfiguration(files.path('home'), env)).toBe(ours)
    expect(await userConfiguration(files.path('home'), {})).toBeUndefined()
  })

  test('T-12 a file of somebody else on the way up is passed over', async () => {
    await using files = await workspace({ 'trunkline.yaml': '' })
    // Files of root are trusted, so root gives this one away first.
    const owner = process.getuid?.() || 4_000
    if (owner === 4_000) await chown(files.path('trunkline.yaml'), owner, owner)
    expect(await findConfiguration(files.folder, files.path('home'), {}, owner + 1)).toBeUndefined()
    expect(await findConfiguration(files.folder, files.path('home'), {}, owner)).toBe(files.path('trunkline.yaml'))
  })
})

test('T-12 an empty or relative HOME does not make the working folder the home folder', () => {
  const known = userInfo().homedir
  expect(['', '.', 'relative/home', '/home/ada'].map((home) => homeFolder(home))).toEqual([known, known, known, '/home/ada'])
})

// As in a container whose user the image does not know.
test.runIf(process.getuid?.() === 0)('a user without HOME who is in no list of users is at home at the root', () => {
  const module = fileURLToPath(new URL('../../../src/config/home-folder.ts', import.meta.url))
  const code = `import { homeFolder } from ${JSON.stringify(module)}; process.stdout.write(homeFolder())`
  const args = ['--no-warnings', '--input-type=module', '--eval', code]
  const { status, stdout } = spawnSync(process.execPath, args, { uid: 64_999, gid: 64_999, env: {}, encoding: 'utf8' })
  expect([status, stdout]).toEqual([0, '/'])
})
