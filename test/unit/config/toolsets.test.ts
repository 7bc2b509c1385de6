/** `toolsets` as a file says them: complete, with what they extend put in, or refused with place and remedy. */
import { describe, expect, test } from 'vitest'
import { configurationJsonSchema } from '../../../src/config/schema/json-schema.ts'
import { workspace, yaml } from './workspace.ts'

const SERVERS = `
servers:
  github: { url: "http://127.0.0.1:1/mcp", prefix: gh, tags: [code], trusted: true }
  files: { command: files, trusted: true, alias: { read: cat } }
  off: { command: off, enabled: false }
toolsets:
`
const load = async (toolsets: string) => {
  await using files = await yaml(`${SERVERS}${toolsets}`)
  const { gateway, warnings } = await files.load()
  return { toolsets: new Map(gateway.toolsets.map((toolset) => [toolset.name, toolset])), warnings }
}
const errors = async (toolsets: string): Promise<readonly string[]> => {
  await using files = await yaml(`${SERVERS}${toolsets}`)
  return await files.errors()
}
const EVERYTHING = { servers: ['*'], tools: undefined, resources: undefined, prompts: undefined, where: {} }

describe('what is said', () => {
  test('arrives under its name in code, with its place', async () => {
    const { toolsets, warnings } = await load(`
  review:
    description: Read only.
    servers: [github, "fil*", code]
    tools: ["gh__*", cat]
    resources: ["gh+repo://**"]
    prompts: gh__ask
    where: { readOnlyHint: true }
    discovery: auto
    always: [gh__find]
    budget: { tokens: 1.5k }
    confirm: "*__delete_*"
    override: { gh__find: { title: Find, description: Finds., annotations: { idempotentHint: true } } }
`)
    expect(toolsets.get('review')).toEqual({
      name: 'review',
      place: 'trunkline.yaml:8:3',
      description: 'Read only.',
      choices: [
        {
          servers: ['github', 'fil*', 'code'],
          tools: ['gh__*', 'cat'],
          resources: ['gh+repo://**'],
          prompts: ['gh__ask'],
          where: { readOnlyHint: true },
        },
      ],
      always: ['gh__find'],
      override: { gh__find: { title: 'Find', description: 'Finds.', annotations: { idempotentHint: true } } },
      confirm: ['*__delete_*'],
      discovery: 'auto',
      budget: { tools: 60, tokens: 1_500 },
    })
    expect(warnings).toEqual([])
  })

  test('nothing said: everything, listed in full, no budget', async () => {
    const { toolsets } = await load('  all: {}\n')
    expect(toolsets.get('all')).toMatchObject({ choices: [EVERYTHING], discovery: 'full', budget: undefined, confirm: [] })
  })

  test('a budget counts what it names; with discovery auto there always is one', async () => {
    const { toolsets } = await load('  a: { budget: { tools: 5 } }\n  b: { discovery: auto }\n')
    expect(toolsets.get('a')?.budget).toEqual({ tools: 5, tokens: Infinity })
    expect(toolsets.get('b')?.budget).toEqual({ tools: 60, tokens: 12_000 })
  })
})

describe('extends', () => {
  test('what is said stands in place of what is inherited, member by member', async () => {
    const { toolsets } = await load(`
  base: { servers: [github], tools: ["gh__*"], where: { readOnlyHint: true }, confirm: ["gh__x"], description: Base., budget: { tools: 9, tokens: 9 }, override: { gh__a: { title: A, description: a } } }
  narrow: { extends: base, tools: ["gh__find*"], budget: { tools: 3 }, override: { gh__a: { title: B }, gh__b: { title: C } } }
`)
    expect(toolsets.get('narrow')).toMatchObject({
      choices: [{ servers: ['github'], tools: ['gh__find*'], where: { readOnlyHint: true } }],
      confirm: ['gh__x'],
      description: 'Base.',
      budget: { tools: 3, tokens: 9 },
      override: { gh__a: { title: 'B', description: 'a' }, gh__b: { title: 'C' } },
    })
  })

  test('of several it is what any of them holds, narrowed by what is said', async () => {
    const { toolsets } = await load(`
  code: { servers: [github], description: Code., confirm: ["gh__x"] }
  docs: { servers: [files], tools: ["files__*"], description: Docs., confirm: ["files__x"] }
  both: { extends: [code, docs], where: { readOnlyHint: true } }
`)
    expect(toolsets.get('both')).toMatchObject({
      choices: [
        { servers: ['github'], tools: undefined, where: { readOnlyHint: true } },
        { servers: ['files'], tools: ['files__*'], where: { readOnlyHint: true } },
      ],
      confirm: ['gh__x', 'files__x'],
      description: 'Code.\n\nDocs.',
    })
  })

  test('two that set different values for one collide, unless the one that extends them decides', async () => {
    const bases = `
  a: { override: { gh__find: { title: A } }, discovery: search, budget: { tools: 1 } }
  b: { override: { gh__find: { title: B } }, discovery: full, budget: { tools: 2 } }
`
    expect(await errors(`${bases}  c: { extends: [a, b] }\n`)).toEqual([
      'trunkline.yaml:10:8 toolsets.c.extends: "a" and "b" set different values for override.gh__find.title; set it here: toolsets.c.override.gh__find.title',
      'trunkline.yaml:10:8 toolsets.c.extends: "a" and "b" set different values for budget.tools; set it here: toolsets.c.budget.tools',
      'trunkline.yaml:10:8 toolsets.c.extends: "a" and "b" set different values for discovery; set it here: toolsets.c.discovery',
    ])
    const { toolsets } = await load(
      `${bases}  c: { extends: [a, b], discovery: auto, budget: { tools: 3 }, override: { gh__find: { title: C } } }\n`,
    )
    expect(toolsets.get('c')).toMatchObject({ discovery: 'auto', override: { gh__find: { title: 'C' } } })
  })

  test('one that is unknown, or that leads back, is refused', async () => {
    expect(await errors('  reviews: {}\n  ops: { extends: review }\n')).toEqual([
      'trunkline.yaml:8:10 toolsets.ops.extends: there is no toolset "review"; did you mean "reviews"?',
    ])
    expect(await errors('  a: { extends: b }\n  b: { extends: [c] }\n  c: { extends: a }\n  d: { extends: d }\n')).toEqual([
      'trunkline.yaml:9:8 toolsets.c.extends: toolsets extend each other: a → b → c → a; remove one of them',
      'trunkline.yaml:10:8 toolsets.d.extends: toolsets extend each other: d → d; remove one of them',
    ])
  })
})

describe('what cannot be meant', () => {
  test.each([
    ['servers: [gihub]', 'servers[0]: no server has the key or the tag "gihub"; did you mean "github"?'],
    ['tools: ["github__*"]', 'tools[0]: no server has the prefix of "github__*"; the prefix of github is "gh"'],
    ['tools: ["g__find"]', 'tools[0]: no server has the prefix of "g__find"; did you mean "gh"?'],
    ['tools: [find]', 'tools[0]: "find" is not an exposed name; write <prefix>__<name>, such as gh__find'],
    ['prompts: ["xy__*"]', 'prompts[0]: no server has the prefix of "xy__*"; known: gh, files, off'],
    ['always: [gi__find]', 'always[0]: no server has the prefix of "gi__find"; did you mean "gh"?'],
    ['confirm: ["gihub__*"]', 'confirm[0]: no server has the prefix of "gihub__*"; known: gh, files, off'],
    ['override: { gx__find: { title: x } }', 'override.gx__find: no server has the prefix of "gx__find"; did you mean "gh"?'],
    ['tolls: []', ': unknown key "tolls"; did you mean "tools"?'],
    ['where: { readonlyHint: true }', 'where: unknown key "readonlyHint"; did you mean "readOnlyHint"?'],
    ['budget: { tokens: many }', 'budget.tokens: expected a number such as 60 or 12k, got "many"'],
    ['discovery: lazy', 'discovery: expected one of full, search, auto, got "lazy"'],
    ['limits: { rate: 5 }', 'limits.rate: expected a rate such as 20/s, got 5'],
  ])('%s', async (member, message) => {
    const [line] = await errors(`  review: { ${member} }\n`)
    expect(line).toContain(`toolsets.review${message.startsWith(':') ? '' : '.'}${message}`)
    expect(line).toMatch(/^trunkline\.yaml:7:\d+ /)
  })

  test.each(['Review', 'my_set', '1st', 'a/b', 'a b', ''])('%j is no name', async (name) => {
    expect(await errors(`  ${JSON.stringify(name)}: {}\n`)).toEqual([
      expect.stringContaining('is not a name for a toolset; use a-z'),
    ])
  })

  test('servers that are switched off, tags of an include and patterns of what may come are no errors', async () => {
    await using files = await workspace({
      'trunkline.yaml': `include: [{ mcpServers: .mcp.json, tags: [imported] }]\n${SERVERS}  a: { servers: [off, imported, "x-*"], tools: ["off__*", "*__delete_*"] }\n`,
      '.mcp.json': '{ "mcpServers": { "more": { "command": "more" } } }',
    })
    expect((await files.load()).warnings).toContain('trunkline.yaml:8:33: no server has a key like "x-*"')
  })

  test('without prefixes any name can be meant', async () => {
    await using files = await yaml(`naming: { prefix: never }\n${SERVERS}  a: { tools: [find] }\n`)
    expect((await files.load()).gateway.toolsets).toHaveLength(1)
  })

  test('annotations asked of a server that is not trusted are told', async () => {
    await using files = await yaml(
      'servers:\n  a: { command: a }\n  b: { command: b }\ntoolsets:\n  safe: { tools: ["a__*"], where: { readOnlyHint: true } }\n',
    )
    expect((await files.load()).warnings).toEqual([
      'trunkline.yaml:5:3: toolset "safe" selects by annotations, and those of a do not count without trusted: true',
    ])
  })
})

test('the published schema knows toolsets', () => {
  const { properties } = configurationJsonSchema()
  expect(properties?.['toolsets']?.additionalProperties).toMatchObject({ properties: { discovery: {}, budget: {} } })
})
