/** Servers of several hosts in one configuration: what is one server, its key, its secrets and what of it stays switched off. */
import { describe, expect, test } from 'vitest'
import { planImport } from '../../../src/host-files/import.ts'
import type { Existing, Importable } from '../../../src/host-files/import.ts'

const FOLDER = '/work/a'
const NOTHING: Existing = { servers: {}, env: {}, envFile: {}, folder: FOLDER }

const server = (name: string, draft: object, more: Partial<Importable> = {}): Importable => ({
  scope: 'user',
  file: `/home/me/${name}.json`,
  name,
  place: `hosts.json:${name}`,
  draft: { ...draft },
  variables: [],
  folder: undefined,
  isOff: false,
  ...more,
})
const plan = (found: readonly Importable[], existing: Partial<Existing> = {}) => planImport(found, { ...NOTHING, ...existing })
/** The drafts of a plan, by key. */
const drafts = (...args: Parameters<typeof plan>) =>
  Object.fromEntries(plan(...args).servers.map(({ key, draft }) => [key, draft]))

describe('two entries', () => {
  test.each<[one: object, other: object, isOne: boolean]>([
    [{ command: 'a', args: ['x'] }, { command: 'a', args: ['x'] }, true],
    [{ command: 'a', args: ['x'] }, { command: 'a', args: ['y'] }, false],
    [{ command: '/bin/a' }, { command: 'a' }, false],
    [{ command: 'npx', args: ['-y', 'x@latest'] }, { command: '/usr/bin/npx', args: ['--yes', 'x'] }, true],
    [{ command: 'npx', args: ['x'] }, { command: 'bunx', args: ['x'] }, false],
    [{ command: 'node', args: ['-y'] }, { command: 'node', args: [] }, false],
    [{ command: 'cmd', args: ['/c', 'npx', 'x'] }, { command: 'npx.cmd', args: ['x'] }, true],
    [{ command: 'cmd.exe', args: ['/C', 'a'] }, { command: 'a', args: [] }, true],
    [{ command: 'cmd', args: ['/k', 'a'] }, { command: '/k', args: ['a'] }, false],
    [{ command: 'sh', args: ['/c', 'a'] }, { command: 'a', args: [] }, false],
    [{ url: 'https://x.test' }, { url: 'https://X.test/' }, true],
    [{ url: 'https://x.test/a' }, { url: 'https://x.test/b' }, false],
    [{ url: '${HOST}/' }, { url: '${HOST}' }, true],
    [{ url: 'a' }, { command: 'a' }, false],
    [{ command: 'a', env: { A: '1' } }, { command: 'a', env: { A: '2' } }, false],
    [{ command: 'a', env: { A: '1' } }, { command: 'a', env: { A: '${B}' } }, true],
    [{ command: 'a', env: { A: '${B}' } }, { command: 'a', env: { A: '2' } }, true],
    [{ command: 'a', env: { A: '1' } }, { command: 'a', env: { B: '2' } }, true],
    [{ url: 'https://x.test', headers: { A: '1' } }, { url: 'https://x.test', headers: { A: '2' } }, false],
  ])('%j and %j are one server: %s', (one, other, isOne) => {
    expect(plan([server('a', one), server('b', other)]).servers).toHaveLength(isOne ? 1 : 2)
    expect(plan([server('b', other)], { servers: { a: { ...one } } }).known.map(({ key }) => key)).toEqual(isOne ? ['a'] : [])
  })

  test('that are one have the variables and headers of both, and a value rather than a reference', () => {
    const one = server('a', { command: 'x', env: { A: '${A}', B: 'one' }, cwd: '/c' })
    const other = server('b', { command: 'x', env: { A: 'plain', C: 'two' } })
    const merged = { a: { command: 'x', env: { A: 'plain', B: 'one', C: 'two' }, cwd: '/c' } }
    expect(drafts([one, other])).toEqual(merged)
    expect(drafts([{ ...other, name: 'a' }, one])).toEqual({ a: { ...merged.a, cwd: undefined } })
    expect(drafts([server('a', { command: 'x' }), server('b', { command: 'x', env: { C: 'two' } })])).toEqual({
      a: { command: 'x', env: { C: 'two' } },
    })
    const url = 'https://x.test/'
    expect(drafts([server('a', { url }), server('b', { url, headers: { Accept: 'x' } })])).toEqual({
      a: { url, headers: { Accept: 'x' } },
    })
  })
})

describe('two accounts at one server', () => {
  const account = (name: string, token: string, file = '/work/a/.mcp.json') =>
    server(name, { command: 'x', env: { TOKEN: token } }, { file })
  const tokens = (...found: readonly Importable[]) =>
    Object.fromEntries(plan(found).servers.map(({ key, draft }) => [key, (draft['env'] as { TOKEN?: string }).TOKEN]))
  const both = { work: '${WORK}', home: '${HOME_TOKEN}' }

  test('are two entries of one file, also where a variable holds the token of one or both', () => {
    expect(tokens(account('work', both.work), account('home', both.home))).toEqual(both)
    expect(Object.keys(tokens(account('work', both.work), account('home', 'one')))).toEqual(['work', 'home'])
    expect(plan([account('work', 'one'), server('home', { command: 'x' }, { file: '/work/a/.mcp.json' })]).servers).toHaveLength(
      2,
    )
    expect(Object.keys(tokens(account('one', both.work), account('other', both.work)))).toEqual(['one'])
  })

  test('of two hosts are the same two, and are known once they are imported', () => {
    const there = '/home/me/.cursor/mcp.json'
    expect(
      tokens(
        account('work', both.work),
        account('home', both.home),
        account('home', both.home, there),
        account('work', both.work, there),
      ),
    ).toEqual(both)
    const known = (found: Importable) =>
      plan([found], { servers: { work: { command: 'x', env: { TOKEN: both.work } } } }).known.map(({ key }) => key)
    expect(known(account('home', both.home))).toEqual([])
    expect(known(account('work', '${input:token}'))).toEqual(['work'])
  })

  test('are two where .env has another token than the file of the host; a renewed one under the same name is no new server', () => {
    const existing = { servers: { work: { command: 'x', env: { TOKEN: '${WORK}' } } }, envFile: { WORK: 'one' } }
    const known = (found: Importable) => plan([found], existing).known.map(({ key }) => key)
    expect(known(account('home', 'two'))).toEqual([])
    expect(known(account('home', 'one'))).toEqual(['work'])
    expect(known(account('work', 'two'))).toEqual(['work'])
  })
})

describe('what is switched off', () => {
  test('is off unless another host has it on, whose entry then counts', () => {
    const off = server('a', { command: 'x', enabled: false, env: { A: '1' } }, { isOff: true })
    const on = server('b', { command: 'x', env: { B: '1' } })
    expect(drafts([off])).toEqual({ a: { command: 'x', enabled: false, env: { A: '1' } } })
    expect(drafts([off, on])).toEqual({ a: { command: 'x', env: { B: '1' }, display_name: 'b' } })
  })

  test.each<[filters: readonly (object | undefined)[], merged: object | undefined, warns: boolean]>([
    [[{ allow: ['a', 'b'], deny: ['x'] }], { allow: ['a', 'b'], deny: ['x'] }, false],
    [[{ allow: ['a', 'b'] }, { allow: ['b', 'c'] }], { allow: ['b'] }, true],
    [[{ allow: ['a'] }, undefined], { allow: ['a'] }, true],
    [[{ deny: ['x'] }, { deny: ['x', 'y'] }], { deny: ['x', 'y'] }, true],
    [[{ deny: [] }, { deny: [] }], undefined, false],
    [[undefined, undefined], undefined, false],
  ])('of tools %j, %j is left', (filters, merged, warns) => {
    const { servers, warnings } = plan(filters.map((filter, at) => server('a', { command: 'x', filter }, { place: `p${at}` })))
    expect(servers[0]?.draft['filter']).toEqual(merged)
    expect(Object.keys(servers[0]?.draft ?? {})).toEqual(merged === undefined ? ['command'] : ['command', 'filter'])
    expect(warnings).toEqual(warns ? [expect.stringMatching(/^a: its tools differ between p0, p1;/)] : [])
  })
})

test.each<[names: readonly string[], existing: readonly string[], keys: readonly string[]]>([
  [['git'], [], ['git']],
  [['My Git', 'mcp'], [], ['my-git', 'mcp-2']],
  [['git'], ['git'], ['git-2']],
  [['git', 'git'], [], ['git', 'git-2']],
])('servers named %j beside %j have the keys %j, and their names are kept', (names, existing, keys) => {
  const { servers } = plan(
    names.map((name, at) => server(name, { command: `c${at}` })),
    { servers: Object.fromEntries(existing.map((key) => [key, { command: 'other' }])) },
  )
  expect(servers.map(({ key }) => key)).toEqual(keys)
  expect(servers.map(({ draft }) => draft['display_name'])).toEqual(
    names.map((name, at) => (name === keys[at] ? undefined : name)),
  )
})

test.each<[draft: object, folder: string | undefined, cwd: string | undefined]>([
  [{ command: 'a' }, '/work/b', '/work/b'],
  [{ command: 'a' }, FOLDER, undefined],
  [{ command: 'a' }, undefined, undefined],
  [{ command: 'a', cwd: '/c' }, '/work/b', '/c'],
  [{ url: 'https://x.test' }, '/work/b', undefined],
])('%j of a project in %s runs in %s', (draft, folder, cwd) => {
  expect(plan([server('a', draft, { folder })]).servers[0]?.draft['cwd']).toBe(cwd)
})

describe('a secret', () => {
  const a = server('a', { command: 'x', env: { API_KEY: 'one' } })

  test.each<[what: string, existing: Partial<Existing>, name: string, written: object]>([
    ['is written under its name', {}, 'API_KEY', { API_KEY: 'one' }],
    ['that the file has is not written again', { envFile: { API_KEY: 'one' } }, 'API_KEY', {}],
    ['has another name where the file has another value', { envFile: { API_KEY: 'two' } }, 'A_API_KEY', { A_API_KEY: 'one' }],
    ['has another name where the environment has another value', { env: { API_KEY: 'two' } }, 'A_API_KEY', { A_API_KEY: 'one' }],
    ['that the environment has is written, too', { env: { API_KEY: 'one' } }, 'API_KEY', { API_KEY: 'one' }],
    [
      'has a number where both names have other values',
      { env: { API_KEY: 'two', A_API_KEY: 'two' } },
      'API_KEY_2',
      { API_KEY_2: 'one' },
    ],
  ])('%s', (_what, existing, name, written) => {
    const { servers, secrets } = plan([a], existing)
    expect(servers[0]?.draft['env']).toEqual({ API_KEY: `\${${name}}` })
    expect(Object.fromEntries(secrets)).toEqual(written)
  })

  test('of two servers has one name for one value, and two for two', () => {
    const other = (value: string) => server('b', { command: 'y', env: { API_KEY: value } })
    expect(Object.fromEntries(plan([a, other('one')]).secrets)).toEqual({ API_KEY: 'one' })
    expect(Object.fromEntries(plan([a, other('two')]).secrets)).toEqual({ API_KEY: 'one', B_API_KEY: 'two' })
  })
})

test('variables that have no value are told with the servers that use them', () => {
  const uses = (name: string, draft: object, fallback?: string) =>
    server(name, draft, { variables: ['URL', 'SET', 'KEPT', 'OWN'].map((variable) => ({ name: variable, fallback })) })
  const all = { args: ['${URL}', '${SET}', '${KEPT}'] }
  const { unset } = plan(
    [
      uses('a', { command: 'a', ...all }),
      uses('b', { command: 'b', ...all }),
      uses('b', { command: 'b', ...all }),
      uses('c', { command: 'c', ...all }, 'x'),
      uses('d', { command: 'd' }),
    ],
    { env: { SET: '' }, envFile: { KEPT: 'x' } },
  )
  expect([...unset]).toEqual([['URL', ['a', 'b']]])
})
