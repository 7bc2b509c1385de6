/** An edit of the configuration changes the lines that say it, and no other byte of the file. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { editConfiguration } from '../../../src/admin/change/edit.ts'
import { readEdit } from '../../../src/admin/change/edit-request.ts'
import type { EditRequest } from '../../../src/admin/change/edit-request.ts'
import type { Plan } from '../../../src/admin/change/plan.ts'
import type { EditedFile } from '../../../src/config/runtime-environment.ts'

const WRITTEN = `# Ours. Do not sort.
servers:
  one:               # the first
    command: serve   # from PATH
    filter:
      deny:
        - drop       # never
    tools:
      search: # slow
        description: "Finds things"   # short
  two: { command: other, filter: { deny: [a, b] } }
toolsets:
  review:
    tools: ["one__*", one__search] # by name
`

interface Bench {
  readonly file: string
  readonly text: () => string
  readonly edit: (change: object | readonly object[], revision?: string) => Promise<Awaited<ReturnType<typeof editConfiguration>>>
  /** What was planned, as if the file held it. */
  readonly planned: EditedFile[]
  readonly reloads: () => number
}

const bench = (text: string, name = 'trunkline.yaml'): Bench => {
  const folder = mkdtempSync(join(tmpdir(), 'tl-edit-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, name)
  writeFileSync(file, text)
  const planned: EditedFile[] = []
  let reloads = 0
  const plan = {} as Plan
  const edit: Bench['edit'] = (change, revision) =>
    editConfiguration(
      { files: [file] },
      {
        plan: async (edited = []) => {
          planned.push(...edited)
          return { kind: 'planned', plan }
        },
        reload: async () => {
          reloads++
          return { kind: 'applied', added: [], removed: [], changed: [], needsRestart: [], plan }
        },
      },
      { changes: [change].flat(), revision } as EditRequest,
    )
  return { file, text: () => readFileSync(file, 'utf8'), edit, planned, reloads: () => reloads }
}

const tool = (facts: object): object => ({ kind: 'tool', server: 'one', tool: 'search', ...facts })
/** The lines that differ. */
const changedLines = (before: string, after: string): readonly string[] => {
  const [old, now] = [before.split('\n'), after.split('\n')]
  return [
    ...old.filter((line) => !now.includes(line)).map((line) => `- ${line}`),
    ...now.filter((line) => !old.includes(line)).map((line) => `+ ${line}`),
  ]
}

describe('an edit', () => {
  const CASES: readonly (readonly [what: string, change: object, lines: readonly string[]])[] = [
    ['switches a tool off', tool({ hidden: true }), ['+         - search']],
    [
      'switches it on',
      tool({ tool: 'drop', hidden: false }),
      ['-     filter:', '-       deny:', '-         - drop       # never'],
    ],
    ['renames it', tool({ name: 'find' }), ['+         name: find']],
    [
      'describes it, with the comment behind kept',
      tool({ description: 'Finds: all # of it' }),
      ['-         description: "Finds things"   # short', '+         description: "Finds: all # of it"   # short'],
    ],
    ['describes it with a word that YAML would take for a number', tool({ name: '12' }), ['+         name: "12"']],
    [
      'takes a description back',
      tool({ description: null }),
      ['-     tools:', '-       search: # slow', '-         description: "Finds things"   # short'],
    ],
    [
      'switches a tool off in flow style',
      tool({ server: 'two', tool: 'c', hidden: true }),
      ['-   two: { command: other, filter: { deny: [a, b] } }', '+   two: { command: other, filter: { deny: [a, b, "c"] } }'],
    ],
    [
      'switches a tool on in flow style',
      tool({ server: 'two', tool: 'a', hidden: false }),
      ['-   two: { command: other, filter: { deny: [a, b] } }', '+   two: { command: other, filter: { deny: [b] } }'],
    ],
    [
      'names a tool in a toolset',
      { kind: 'toolset', toolset: 'review', tool: 'two__x', member: true },
      ['-     tools: ["one__*", one__search] # by name', '+     tools: ["one__*", one__search, "two__x"] # by name'],
    ],
    [
      'takes it out of a toolset',
      { kind: 'toolset', toolset: 'review', tool: 'one__search', member: false },
      ['-     tools: ["one__*", one__search] # by name', '+     tools: ["one__*"] # by name'],
    ],
  ]

  test.each(CASES)('%s: these lines and no others', async (_what, change, lines) => {
    const { edit, text, planned, file } = bench(WRITTEN)
    const end = await edit(change)
    expect(text()).toBe(WRITTEN)
    if (end.kind !== 'planned') throw new Error(end.kind)
    expect(changedLines(WRITTEN, planned[0]?.text ?? '')).toEqual(lines)
    expect(end.files.flatMap(({ diff }) => diff).filter((line) => /^[+-]/.test(line))).toEqual(lines)
    await edit(change, end.revision)
    expect(text()).toBe(planned[0]?.text)
    expect(planned[1]).toEqual({ file, text: text() })
  })

  test.each(CASES)('%s, also in a file with line ends of Windows', async (_what, change) => {
    const windows = bench(WRITTEN.replaceAll('\n', '\r\n'))
    const unix = bench(WRITTEN)
    await windows.edit(change)
    await unix.edit(change)
    expect(windows.planned[0]?.text).toBe(unix.planned[0]?.text.replaceAll('\n', '\r\n'))
  })

  test('is refused where the file was changed since it was planned', async () => {
    const { edit, file, text, reloads } = bench(WRITTEN)
    const end = await edit(tool({ hidden: true }))
    writeFileSync(file, `${WRITTEN}# more\n`)
    await expect(edit(tool({ hidden: true }), end.kind === 'planned' ? end.revision : '')).rejects.toMatchObject({
      status: 409,
      code: 'changed',
    })
    expect([text(), reloads()]).toEqual([`${WRITTEN}# more\n`, 0])
  })

  test('is refused where an anchor would change another server with it', async () => {
    const shared = 'servers:\n  one: &base\n    command: serve\n    filter: { deny: [x] }\n  two: *base\n'
    for (const server of ['one', 'two'])
      await expect(bench(shared).edit(tool({ server, hidden: true }))).rejects.toMatchObject({ status: 409, code: 'edit' })
    const beside = 'servers:\n  one:\n    command: &c serve # shared\n  two:\n    command: *c\n'
    const { edit, planned } = bench(beside)
    await edit(tool({ hidden: true }))
    expect(planned[0]?.text).toBe(
      'servers:\n  one:\n    command: &c serve # shared\n    filter:\n      deny:\n        - search\n  two:\n    command: *c\n',
    )
  })

  test('is written into JSON as well', async () => {
    const json = '{\n  // ours\n  "servers": {\n    "one": { "command": "serve" } // first\n  }\n}\n'
    const { edit, planned } = bench(json, 'trunkline.jsonc')
    await edit(tool({ hidden: true }))
    expect(planned[0]?.text).toContain('// ours')
    expect(planned[0]?.text.replaceAll(/\/\/.*|\s/g, '')).toBe(
      '{"servers":{"one":{"command":"serve","filter":{"deny":["search"]}}}}',
    )
  })

  test.each([
    ['of a server that no file has', tool({ server: 'zz', hidden: true }), 'gone'],
    ['that shows what another rule hides', tool({ hidden: false }), 'edit'],
    ['of a name that would be a pattern', tool({ tool: 'a*', hidden: true }), 'edit'],
    ['that says what the file says', tool({ description: 'Finds things' }), 'nothing'],
    ['that takes out what a pattern holds', { kind: 'toolset', toolset: 'review', tool: 'one__x', member: false }, 'edit'],
    ['of a toolset that is not there', { kind: 'toolset', toolset: 'zz', tool: 'one__x', member: true }, 'gone'],
  ])('%s is refused with a reason', async (_what, change, code) => {
    const { edit, text } = bench(WRITTEN)
    await expect(edit(change)).rejects.toMatchObject({ code })
    expect(text()).toBe(WRITTEN)
  })

  test('leaves a toolset that names one tool that one: without it, it would hold all', async () => {
    const { edit } = bench('toolsets:\n  mine: { tools: [one__x] }\n')
    await expect(edit({ kind: 'toolset', toolset: 'mine', tool: 'one__x', member: false })).rejects.toMatchObject({
      code: 'edit',
    })
  })

  test('of many tools at once: each list is written once, and everything else stays', async () => {
    const { edit, planned, text } = bench(WRITTEN)
    const change = [
      tool({ tool: 'a', hidden: true }),
      tool({ tool: 'b', hidden: true }),
      tool({ tool: 'drop', hidden: false }),
      tool({ server: 'two', tool: 'a', hidden: false }),
      tool({ server: 'two', tool: 'b', hidden: false }),
      { kind: 'toolset', toolset: 'review', tool: 'one__search', member: false },
      { kind: 'toolset', toolset: 'review', tool: 'two__x', member: true },
      { kind: 'toolset', toolset: 'review', tool: 'two__y', member: true },
      { kind: 'tag', server: 'one', tag: 'code', tagged: true },
    ]
    const end = await edit(change)
    if (end.kind !== 'planned') throw new Error(end.kind)
    expect(changedLines(WRITTEN, planned[0]?.text ?? '')).toEqual([
      '-         - drop       # never',
      '-   two: { command: other, filter: { deny: [a, b] } }',
      '-     tools: ["one__*", one__search] # by name',
      '+         - a',
      '+         - b',
      '+     tags:',
      '+       - code',
      '+   two: { command: other }',
      '+     tools: ["one__*", "two__x", "two__y"] # by name',
    ])
    await edit(change, end.revision)
    expect(text()).toBe(planned[0]?.text)
  })

  test('makes a toolset, behind those that are there or at the end of the file', async () => {
    const change = {
      kind: 'new toolset',
      toolset: 'reading',
      description: 'Reading: all of it',
      tools: ['one__search', 'two__x', 'two__x'],
      budget: { tokens: 4_000 },
    }
    const lines = [
      '+   reading:',
      '+     description: "Reading: all of it"',
      '+     tools:',
      '+       - one__search',
      '+       - two__x',
      '+     budget:',
      '+       tokens: 4000',
    ]
    const { edit, planned } = bench(WRITTEN)
    await edit(change)
    expect(changedLines(WRITTEN, planned[0]?.text ?? '')).toEqual(
      // There is such a line already.
      lines.filter((line) => line !== '+     tools:'),
    )
    const alone = bench('servers:\n  one: { command: serve } # first\n')
    await alone.edit(change)
    expect(changedLines('servers:\n  one: { command: serve } # first\n', alone.planned[0]?.text ?? '')).toEqual([
      '+ toolsets:',
      ...lines,
    ])
    await expect(edit({ ...change, toolset: 'review' })).rejects.toMatchObject({ code: 'edit' })
    await expect(edit({ ...change, tools: [] })).rejects.toMatchObject({ code: 'edit' })
    await expect(edit({ ...change, tools: ['one__*'] })).rejects.toMatchObject({ code: 'edit' })
  })

  test('of several files is written into all of them, or into none', async () => {
    const first = bench('servers:\n  one: { command: serve }\n')
    const second = bench('servers:\n  two: { command: serve }\n', 'more.yaml')
    const files = [first.file, second.file]
    const changes = ['one', 'two'].map((server) => ({ kind: 'tag' as const, server, tag: 'code', tagged: true }))
    const plan = async () => ({ kind: 'planned', plan: {} as Plan }) as const
    const reload = async () => ({ kind: 'refused', problems: [] }) as const
    const end = await editConfiguration({ files }, { plan, reload }, { changes, revision: undefined })
    if (end.kind !== 'planned') throw new Error(end.kind)
    expect(end.files.map(({ file }) => file)).toEqual(files)
    const before = first.text()
    chmodSync(second.file, 0o444)
    await expect(editConfiguration({ files }, { plan, reload }, { changes, revision: end.revision })).rejects.toMatchObject({
      code: 'changed',
    })
    expect(first.text()).toBe(before)
    chmodSync(second.file, 0o644)
    await editConfiguration({ files }, { plan, reload }, { changes, revision: end.revision })
    expect([first.text(), second.text()]).toEqual([
      'servers:\n  one: { command: serve, tags: ["code"] }\n',
      'servers:\n  two: { command: serve, tags: ["code"] }\n',
    ])
  })

  test('is not written into a file of a host', async () => {
    const { edit } = bench('{ "mcpServers": { "one": { "command": "serve" } } }', 'mcp.json')
    await expect(edit(tool({ hidden: true }))).rejects.toMatchObject({ code: 'gone' })
  })
})

test.each([
  '',
  '[]',
  '{}',
  '{"changes":[]}',
  '{"changes":[7]}',
  '{"changes":[{"kind":"tool","server":"one"}]}',
  '{"changes":[{"kind":"x"}]}',
  '{"changes":[{"kind":"tool","server":"a","tool":"b","hidden":"yes"}]}',
  '{"changes":[{"kind":"new toolset","toolset":"a","tools":["b",""]}]}',
  '{"changes":[{"kind":"new toolset","toolset":"a","tools":["b"],"budget":{"tokens":-1}}]}',
  '{"changes":[{"kind":"tag","server":"a","tag":"b"}]}',
  `{"changes":[${Array.from({ length: 1_001 }, () => '{"kind":"tag","server":"a","tag":"b","tagged":true}').join(',')}]}`,
])('a request that cannot be meant is refused: %s', (body) => {
  expect(() => readEdit(body)).toThrow(expect.objectContaining({ status: 400, code: 'body' }) as Error)
})
