/** Digests that tell whether two configurations say the same. */
import { randomBytes } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { diffConfigurations, diffFingerprints } from '../../../src/config/change/difference.ts'
import { fingerprint } from '../../../src/config/change/fingerprints.ts'
import { yaml } from './workspace.ts'

const BASE = 'servers:\n  a: { command: x, env: { TOKEN: secret-1 } }\n'

describe('fingerprints of a configuration', () => {
  test('of two salts have nothing in common, and hold no value', async () => {
    await using files = await yaml(BASE)
    const configuration = await files.load()
    const [one, two] = [0, 1].map(() => JSON.stringify(fingerprint(configuration, { salt: randomBytes(32) })))
    expect(one).not.toContain('secret-1')
    const digests = (text = ''): string[] => text.match(/[\w-]{43}/g) ?? []
    expect(digests(one).length).toBeGreaterThan(40)
    expect(digests(one).filter((digest) => two?.includes(digest))).toEqual([])
  })

  test.each([
    `auth: { mode: tokens, tokens: [{ id: a, hash: "sha256:${'0'.repeat(64)}" }] }\n`,
    'listen: { http: { allowed_hosts: [example.com] } }\n',
    'listen: { limits: { sessions: 7 } }\n',
    'limits: { starts: 3 }\n',
    'telemetry: { log: { level: warn } }\n',
    'reload: { drain: 3s }\n',
    'toolsets: { x: { servers: [a] } }\n',
  ])('%j is a change, though of no server', async (more) => {
    await using files = await yaml(BASE)
    const before = await files.load()
    await files.write('trunkline.yaml', more + BASE)
    expect(diffConfigurations(before, await files.load())).toMatchObject({ others: true, changed: [], added: [], removed: [] })
  })

  test('what the environment has does not count, where it is marked as its own', async () => {
    await using files = await yaml('servers:\n  a: { command: x, env: { TOKEN: "${TOKEN}", WORD: fixed } }\n')
    const salt = randomBytes(32)
    const under = async (env: Record<string, string>) => fingerprint(await files.load('trunkline.yaml', { env }), { salt, env })
    const here = await under({ TOKEN: 'one', PATH: '/bin' })
    const there = await under({ TOKEN: 'two', PATH: '/usr/bin' })
    expect(diffFingerprints(here, there)).toMatchObject({ added: [], removed: [], changed: [] })
    const given = await under({ TOKEN: 'one', PATH: '/bin', WORD: 'fixed' })
    expect(diffFingerprints(here, given)).toMatchObject({ changed: ['a'] })
  })

  test('paths in the folder of the file are the same in another folder, and as they are written', async () => {
    await using files = await yaml('servers:\n  a: { command: x, cwd: ./data }\n')
    await mkdir(`${files.folder}/other`)
    await files.write('other/new.yaml', 'servers:\n  a: { command: x, cwd: ./data }\n')
    await files.write('other/same.yaml', `servers:\n  a: { command: x, cwd: "${files.folder}/data" }\n`)
    await files.write('other/moved.yaml', 'servers:\n  a: { command: x, cwd: ./elsewhere }\n')
    const before = await files.load()
    const against = async (name: string) => diffConfigurations(before, await files.load(`other/${name}.yaml`))
    expect(await against('new')).toMatchObject({ added: [], removed: [], changed: [] })
    expect(await against('same')).toMatchObject({ added: [], removed: [], changed: [] })
    expect(await against('moved')).toMatchObject({ changed: ['a'] })
  })
})
