/** What an operator is shown of a configuration and of a start, whose socket is ours, and what of an edit or a plan is refused (T-14, T-37). */
import { chmodSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readEdit } from '../../../src/admin/change/edit-request.ts'
import { isEmpty, refuseCollisions, refuseTruncated, refuseUnguarded } from '../../../src/admin/change/plan.ts'
import type { Plan } from '../../../src/admin/change/plan.ts'
import { isOurs, locateSocket, prepareFolder, removeStale } from '../../../src/admin/socket/socket-location.ts'
import { readSettings } from '../../../src/admin/state/settings.ts'
import { startupOf } from '../../../src/admin/state/startup.ts'
import { DEFAULT_OBSERVE } from '../../../src/observe/options.ts'

const scratch = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'tl-state-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

describe('settings', () => {
  const shownOf = async (text: string, more: object = {}, name = 't.yaml') => {
    const file = join(scratch(), name)
    writeFileSync(file, text)
    // Cast: only these are read.
    return readSettings({ files: [file], observe: DEFAULT_OBSERVE, tracing: undefined, ...more } as unknown as Parameters<
      typeof readSettings
    >[0])
  }

  test.each<[text: string, values: Readonly<Record<string, string>>]>([
    ['version: 1', { version: '1' }],
    ['servers: { a: { env: { LEVEL: debug } } }', { 'servers.a.env.LEVEL': '***' }],
    [
      'servers: { a: { env: { LEVEL: "${LEVEL}", X: "a${B}" } } }',
      { 'servers.a.env.LEVEL': '${LEVEL}', 'servers.a.env.X': '***' },
    ],
    ['servers: { a: { url: "https://me:pw@x.test/a?q=1" } }', { 'servers.a.url': 'https://***@x.test/a?q=1' }],
    ['servers: { a: { url: "https://x.test/a?api_key=abc&q=1" } }', { 'servers.a.url': 'https://x.test/a?api_key=***&q=1' }],
    [
      'servers: { a: { args: [--token, abc, --dir, d] } }',
      { 'servers.a.args[0]': '--token', 'servers.a.args[1]': '***', 'servers.a.args[2]': '--dir', 'servers.a.args[3]': 'd' },
    ],
    ['servers: { a: { args: [--api-key=abc, x] } }', { 'servers.a.args[0]': '--api-key=***', 'servers.a.args[1]': 'x' }],
    ['servers: { a: { args: [-e, API_KEY=abc] } }', { 'servers.a.args[0]': '-e', 'servers.a.args[1]': 'API_KEY=***' }],
    [
      'servers: { a: { args: ["Authorization: Bearer abc", "Accept: x"] } }',
      { 'servers.a.args[0]': 'Authorization: ***', 'servers.a.args[1]': 'Accept: x' },
    ],
    ['servers: { a: { command: --token }, b: { args: [abc] } }', { 'servers.a.command': '--token', 'servers.b.args[0]': 'abc' }],
    [
      '{"mcpServers":{"a":{"command":"x","headers":{"X":"abc"}}}}',
      { 'mcpServers.a.command': 'x', 'mcpServers.a.headers.X': '***' },
    ],
    [
      '{ toolsets: { a: { budget: { tokens: 12k } } }, listen: { limits: { max_keys: 9 } } }',
      { 'toolsets.a.budget.tokens': '12k', 'listen.limits.max_keys': '9' },
    ],
    ['servers: { a: { tools: { t: { result: { max_tokens: 40 } } } } }', { 'servers.a.tools.t.result.max_tokens': '40' }],
    [
      'servers: { a: { env: { max_tokens: 40, budget.tokens: 1 } } }',
      { 'servers.a.env.max_tokens': '***', 'servers.a.env."budget.tokens"': '***' },
    ],
    ['other: 1', {}],
    ['- 1', {}],
    ['a: [', {}],
  ])('T-14 %s', async (text, values) => {
    const { settings, more } = await shownOf(text)
    expect(Object.fromEntries(settings.map(({ path, value }) => [path, value]))).toEqual(values)
    expect(more).toBe(0)
    for (const { place } of settings) expect(place).toMatch(/t\.yaml:1:\d+$/)
  })

  test('are those of YAML and JSON files that exist, and at most 2,000', async () => {
    expect((await shownOf('version: 1', {}, 't.txt')).settings).toEqual([])
    expect((await shownOf('', { files: ['/none.yaml'] })).settings).toEqual([])
    const { settings, more } = await shownOf(`servers: { a: { args: [${'x,'.repeat(2_001)}] } }`)
    expect([settings.length, more]).toEqual([2_000, 1])
  })

  test('say where metrics and traces go', async () => {
    const addresses = [{ host: '127.0.0.1', port: 1 }]
    const of = async (more: object) => (await shownOf('version: 1', more)).telemetry
    expect(await of({})).toEqual({})
    expect(await of({ observe: { ...DEFAULT_OBSERVE, admin: { ...DEFAULT_OBSERVE.admin, addresses } } })).toEqual({
      prometheus: '/metrics',
    })
    const off = {
      ...DEFAULT_OBSERVE,
      admin: { ...DEFAULT_OBSERVE.admin, addresses },
      metrics: { ...DEFAULT_OBSERVE.metrics, isOn: false },
    }
    expect(
      await of({ observe: off, tracing: { endpoint: new URL('https://me:pw@o.test/v1?key=abc'), protocol: 'http' } }),
    ).toEqual({ otlp: 'https://o.test/v1 (http)' })
  })
})

test.each<[state: string, command: string | undefined, startedAt: readonly number[], startup: object | undefined]>([
  ['healthy', 'npx', [0], undefined],
  ['starting', 'npx', [], undefined],
  [
    'starting',
    'npx',
    [6_000, 5_000],
    { forMs: 5_000, fetching: expect.stringMatching(/^npx downloads/) as unknown, printed: 'last' },
  ],
  ['starting', 'C:/bin/npx.cmd', [7_000], { forMs: 3_000, fetching: expect.stringMatching(/^npx downloads/) as unknown }],
  ['starting', 'npx', [7_001], { forMs: 2_999, fetching: undefined }],
  ['starting', 'toString', [0], { fetching: undefined }],
  ['starting', undefined, [11_000], { forMs: 0, fetching: undefined }],
])('a server that is %s with %s since %j', (state, command, startedAt, startup) => {
  const dialer = { processes: startedAt.map((at) => ({ startedAt: at })), stderrTail: () => ['first', 'last'] }
  // Cast: only these are read.
  const downstream = { options: { launch: command && { command } }, health$: { value: { state } }, dialer } as never
  if (startup === undefined) expect(startupOf(downstream, 10_000)).toBeUndefined()
  else expect(startupOf(downstream, 10_000)).toMatchObject(startup)
})

describe('T-37 the admin socket', () => {
  const uid = process.getuid?.() ?? 0

  test('is in the folder of the configuration, on Windows a pipe, which needs none', async () => {
    expect(locateSocket({ id: 'x', runtimeDir: '/r' }, 1, 'linux')).toEqual({ path: '/r/x.sock', folder: '/r', uid: 1 })
    const pipe = locateSocket({ id: 'x', runtimeDir: '/r' }, 1, 'win32')
    expect(pipe).toEqual({ path: '\\\\.\\pipe\\trunkline-x', folder: undefined, uid: 1 })
    await prepareFolder(pipe)
    expect(await isOurs(pipe)).toBe(true)
    await removeStale(pipe)
  })

  test('has a folder that is made private, and none of another user, or behind a link', async () => {
    const around = scratch()
    const folder = join(around, 'a', 'b')
    const at = (path: string, owner: number | undefined = uid) => ({ path: join(path, 'x.sock'), folder: path, uid: owner })
    await prepareFolder(at(folder))
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    chmodSync(folder, 0o755)
    await prepareFolder(at(folder))
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    await expect(prepareFolder(at(folder, uid + 1))).rejects.toThrow(/belongs to another user/)
    await prepareFolder({ ...at(folder), uid: undefined })
    symlinkSync(folder, join(around, 'link'))
    await expect(prepareFolder(at(join(around, 'link')))).rejects.toThrow(/is a link/)
  })

  test('is ours only as a socket of this user in a folder that no other can write', async () => {
    const folder = scratch()
    const path = join(folder, 'x.sock')
    const at = (more: object = {}) => isOurs({ path, folder, uid, ...more })
    expect(await at()).toBe(false)
    const server = createServer().listen(path)
    await new Promise((resolve) => server.once('listening', resolve))
    expect([await at(), await at({ uid: undefined }), await at({ uid: uid + 1 })]).toEqual([true, true, false])
    chmodSync(folder, 0o770)
    expect(await at()).toBe(false)
    chmodSync(folder, 0o700)
    const file = join(folder, 'file')
    writeFileSync(file, '')
    symlinkSync(path, join(folder, 'link'))
    expect([
      await at({ path: file }),
      await at({ path: join(folder, 'link') }),
      await at({ folder: join(folder, 'none') }),
    ]).toEqual([false, false, false])
    await removeStale({ path, folder, uid })
    await removeStale({ path: file, folder, uid })
    expect([statSync(path).isSocket(), statSync(file).isFile()]).toEqual([true, true])
    await new Promise((resolve) => server.close(resolve))
  })
})

describe('an edit', () => {
  const one = { kind: 'tag', server: 'a', tag: 't', tagged: true }
  test.each<[change: object, read: object]>([
    [one, one],
    [
      { kind: 'toolset', toolset: 'r', tool: 't', member: false },
      { kind: 'toolset', toolset: 'r', tool: 't', member: false },
    ],
    [
      { kind: 'tool', server: 'a', tool: 't' },
      { kind: 'tool', server: 'a', tool: 't' },
    ],
    [
      { kind: 'tool', server: 'a', tool: 't', hidden: true, name: 'n', title: null, more: 1 },
      { kind: 'tool', server: 'a', tool: 't', hidden: true, name: 'n', title: null },
    ],
    [
      { kind: 'new toolset', toolset: 'r', tools: ['a', 'b'] },
      { kind: 'new toolset', toolset: 'r', tools: ['a', 'b'] },
    ],
    [
      { kind: 'new toolset', toolset: 'r', tools: [], description: 'd', budget: {} },
      { kind: 'new toolset', toolset: 'r', tools: [], description: 'd', budget: {} },
    ],
    [
      { kind: 'new toolset', toolset: 'r', tools: [], budget: { tools: 1, tokens: 2 } },
      { kind: 'new toolset', toolset: 'r', tools: [], budget: { tools: 1, tokens: 2 } },
    ],
  ])('%j is read', (change, read) => {
    expect(readEdit(JSON.stringify({ changes: [change] }))).toStrictEqual({ changes: [read], revision: undefined })
    expect(readEdit(JSON.stringify({ changes: [change, change], revision: 'R' }))).toStrictEqual({
      changes: [read, read],
      revision: 'R',
    })
  })

  test.each<[body: unknown, message: RegExp]>([
    [[], /expected a JSON object/],
    [{}, /expected a JSON object/],
    [{ changes: [] }, /expected a JSON object/],
    [{ changes: {} }, /expected a JSON object/],
    [{ changes: [one], revision: 5 }, /^revision must be/],
    [{ changes: Array.from({ length: 1_001 }, () => one) }, /at most 1000 changes at once, got 1001/],
    [{ changes: [one, 5] }, /^changes\[1\] must be an object/],
    [{ changes: [{ kind: 'x' }] }, /^changes\[0\]\.kind must be "tool"/],
    [{ changes: [{ ...one, tag: '' }] }, /^changes\[0\]\.tag must be a text/],
    [{ changes: [{ ...one, tag: 5 }] }, /tag must be a text/],
    [{ changes: [{ ...one, tagged: 'true' }] }, /tagged must be true or false/],
    [{ changes: [{ kind: 'tool', server: 'a', tool: 't', hidden: null }] }, /hidden must be true or false/],
    [{ changes: [{ kind: 'tool', server: 'a', tool: 't', title: '' }] }, /title must be a text/],
    [{ changes: [{ kind: 'new toolset', toolset: 'r', tools: [''] }] }, /tools must be a list of texts/],
    [{ changes: [{ kind: 'new toolset', toolset: 'r', tools: [1] }] }, /tools must be a list of texts/],
    [{ changes: [{ kind: 'new toolset', toolset: 'r', tools: 'a' }] }, /tools must be a list of texts/],
    [{ changes: [{ kind: 'new toolset', toolset: 'r', tools: [], budget: 5 }] }, /^changes\[0\]\.budget must be an object/],
    ...[0, -1, 1.5, '1'].map((tools): [unknown, RegExp] => [
      { changes: [{ kind: 'new toolset', toolset: 'r', tools: [], budget: { tools } }] },
      /^changes\[0\]\.budget\.tools must be a whole number above 0/,
    ]),
  ])('%j is refused', (body, message) => {
    expect(() => readEdit(JSON.stringify(body))).toThrow(message)
  })

  test('may have a thousand changes', () => {
    expect(readEdit(JSON.stringify({ changes: Array.from({ length: 1_000 }, () => one) })).changes).toHaveLength(1_000)
  })
})

describe('a plan', () => {
  test.each<
    [before: readonly string[], emptyBefore: readonly string[], main: string, emptyAfter: readonly string[], isRefused: boolean]
  >([
    [['a', 'b'], [], 'a', [], false],
    [['a', 'b'], [], 'a', ['b'], true],
    [['a', 'b'], ['b'], 'a', ['b'], false],
    [['a'], [], 'a', ['c'], false],
    [['a'], [], 'c', ['c'], true],
    [['a'], ['a'], 'c', ['c'], false],
  ])(
    'F-25 of files %j, of them empty %j, to %s with %j empty is refused: %s',
    (files, emptyFiles, main, emptyAfter, isRefused) => {
      // Cast: only these are read.
      const check = (): void =>
        refuseTruncated({ files, emptyFiles } as never, { emptyFiles: emptyAfter, files: [main] } as never)
      if (isRefused) expect(check).toThrow(/the file is empty; restore its content/)
      else expect(check).not.toThrow()
    },
  )

  test.each<[what: string, files: readonly string[], globs: readonly string[], sections: readonly string[], isRefused: boolean]>([
    ['nothing changed', ['m', 'd/p'], ['d/*'], ['policy'], false],
    ['its file is gone', ['m'], ['d/*'], [], true],
    ['its file is gone, and another section stays', ['m'], ['d/*'], ['auth'], true],
    ['it is in another file now', ['m', 'd/q'], ['d/*'], ['policy'], false],
    ['its file has it no more', ['m', 'd/p'], ['d/*'], [], false],
    ['the pattern is gone, too', ['m'], [], [], false],
  ])('F-25 of a policy by a pattern of include: %s', (_, files, globs, sections, isRefused) => {
    const match = { glob: 'd/*', file: 'd/p' }
    const before = { guards: [{ section: 'policy', match }] }
    const guards = sections.map((section) => ({ section, match: undefined }))
    // Cast: only these are read.
    const check = (): void => refuseUnguarded(before as never, { files, globs, guards } as never)
    if (isRefused) expect(check).toThrow(/^d\/p policy: the file is gone; restore the file/)
    else expect(check).not.toThrow()
  })

  test.each<[collision: string, problems: readonly string[], collisions: readonly string[], isRefused: boolean]>([
    ['error', [], ['x'], true],
    ['error', ['x'], ['x'], false],
    ['error', ['x'], ['x', 'y'], true],
    ['error', [], [], false],
    ['warn', [], ['x'], false],
  ])('with naming.collision: %s, from %j to %j is refused: %s', (collision, problems, collisions, isRefused) => {
    const check = (): void =>
      refuseCollisions({ problems } as never, { gateway: { collision }, files: ['t.yaml'] } as never, { collisions } as never)
    if (isRefused) expect(check).toThrow(/^t\.yaml naming\.collision: .*rename one, filter it out/)
    else expect(check).not.toThrow()
  })

  test.each<[what: string, more: Partial<Plan>, isNothing: boolean]>([
    ['nothing', {}, true],
    [
      'a toolset that is over its budget as before',
      { toolsets: [{ name: 't', before: { tools: 1 }, after: { tools: 1 } }] as never },
      true,
    ],
    ['another toolset', { toolsets: [{ name: 't', before: undefined, after: { tools: 1 } }] as never }, false],
    ['a server', { servers: [{}] as never }, false],
    ['an entry', { entries: [{}] as never }, false],
    ['a restart', { needsRestart: ['x'] }, false],
    ['the listeners', { listeners: true }, false],
    ['other options', { others: true }, false],
  ])('that changes %s', (_what, more, isNothing) => {
    const nothing = { servers: [], entries: [], toolsets: [], listeners: false, needsRestart: [], others: false }
    // Cast: only these are read.
    expect(isEmpty({ ...nothing, ...more } as unknown as Plan)).toBe(isNothing)
  })
})
