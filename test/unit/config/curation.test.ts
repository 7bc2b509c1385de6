import { describe, expect, test } from 'vitest'
import { yaml } from './workspace.ts'

const loaded = async (text: string, env: Readonly<Record<string, string>> = {}) => {
  await using files = await yaml(text)
  return await files.load(undefined, { env })
}
const problems = async (text: string): Promise<readonly string[]> => {
  await using files = await yaml(text)
  return await files.errors()
}
const tools = (lines: string): string =>
  `servers:\n  a:\n    command: x\n    tools:\n      ${lines.replaceAll('\n', '\n      ')}\n`

describe('rules keep what was written, and where', () => {
  test('of a filter', async () => {
    const { servers } = await loaded(`
servers:
  a:
    command: x
    trusted: true
    filter:
      allow: "get_*"
      deny:
        - get_a
        - get_b
      annotations: { destructive: deny }
    resources: { deny: ["file:///etc/**"] }
    prompts: { allow: [p] }
`)
    expect(servers[0]!.curation).toMatchObject({
      tools: {
        allow: {
          place: 'trunkline.yaml:7:7',
          globs: [{ glob: 'get_*', path: 'servers.a.filter.allow', place: 'trunkline.yaml:7:7' }],
        },
        deny: [
          { glob: 'get_a', path: 'servers.a.filter.deny[0]', place: 'trunkline.yaml:9:11' },
          { glob: 'get_b', path: 'servers.a.filter.deny[1]', place: 'trunkline.yaml:10:11' },
        ],
        hints: [{ hint: 'destructiveHint', verdict: 'deny', place: 'trunkline.yaml:11:22' }],
      },
      resources: { allow: undefined, deny: [{ glob: 'file:///etc/**' }] },
      prompts: { allow: { globs: [{ glob: 'p' }] }, deny: [] },
    })
  })

  test('of a tool, as JSON that keeps the digits', async () => {
    const { servers, secrets } = await loaded(
      tools(`find:
  name: search
  args:
    org: { value: "\${ORG_TOKEN}", hide: true }
    size: { value: 12345678901234567890 }
    rate: { default: 1.50 }
    list: { value: [1, {a: null, b: "x"}, yes] }
    none: { value: null }
    hex: { value: 0x10 }
  timeout: 20s
  result: { max_tokens: 4000 }`),
      { ORG_TOKEN: 'acme-secret' },
    )
    const edit = servers[0]!.curation?.edits.get('find')
    expect(edit).toMatchObject({
      original: 'find',
      place: 'trunkline.yaml:5:7',
      name: { text: 'search', place: 'trunkline.yaml:6:9' },
      timeout: { totalMs: 20_000, place: 'trunkline.yaml:14:9' },
      result: { maxTokens: 4000, overflow: 'resource', place: 'trunkline.yaml:15:9' },
    })
    const values = edit?.args.map(({ name, value, default: given }) => [name, value ?? given])
    expect(Object.fromEntries(values ?? [])).toEqual({
      org: '"acme-secret"',
      size: '12345678901234567890',
      rate: '1.50',
      list: '[1,{"a":null,"b":"x"},"yes"]',
      none: 'null',
      hex: '16',
    })
    expect(edit?.args.map(({ isHidden }) => isHidden)).toEqual([true, false, false, false, false, false])
    expect(secrets).toContain('acme-secret')
  })

  test('T-25 an argument may be called like a member of every object', async () => {
    const { servers } = await loaded(tools(`constructor:\n  args: { toString: { value: 1 } }`))
    const edit = servers[0]!.curation?.edits.get('constructor')
    expect(edit?.args.map(({ name, value }) => [name, value])).toEqual([['toString', '1']])
    expect(servers[0]!.curation?.edits.get('toString')).toBeUndefined()
  })

  test('where nothing is said there is nothing to do', async () => {
    const { servers } = await loaded('servers:\n  a: { command: x, resources: { rewrite: identity } }\n')
    expect(servers[0]!.curation).toBeUndefined()
  })
})

describe('what cannot be meant is told with its place', () => {
  test.each([
    [tools('a: { nme: x }'), ['trunkline.yaml:5:12 servers.a.tools.a: unknown key "nme"; did you mean "name"?']],
    [
      tools('a: { args: { x: { value: 1, defalt: 2 } } }'),
      ['trunkline.yaml:5:35 servers.a.tools.a.args.x: unknown key "defalt"; did you mean "default"?'],
    ],
    [
      tools('a: { name: same }\nb: { name: same }'),
      [
        'trunkline.yaml:6:12 servers.a.tools.b.name: "a__same" is already the exposed name of "a" of server "a"; choose another name',
      ],
    ],
    [
      tools('a: { name: b }\nb: { timeout: 1s }'),
      ['trunkline.yaml:6:7 servers.a.tools.b: "a__b" is already the exposed name of "a" of server "a"; choose another name'],
    ],
    [
      'naming: { prefix: never }\nservers:\n  a: { command: x, tools: { t: { name: find } } }\n  b: { command: x, tools: { u: { name: find } } }\n',
      [
        'trunkline.yaml:4:34 servers.b.tools.u.name: "find" is already the exposed name of "t" of server "a"; choose another name',
      ],
    ],
    [
      tools('a: { name: x }').replace('tools:', 'alias: { a: y }\n    tools:'),
      ['trunkline.yaml:6:12 servers.a.tools.a.name: "a" has an alias, which wins; keep one of them'],
    ],
    [
      tools('a: { args: { x: { value: 1, default: 2 } } }'),
      ['trunkline.yaml:5:35 servers.a.tools.a.args.x.default: a pinned argument needs no default; keep one of them'],
    ],
    [
      tools('a: { args: { x: { value: "${API_TOKEN:-x}" } } }'),
      [
        'trunkline.yaml:5:25 servers.a.tools.a.args.x.value: the variable is named like a secret, and hosts would see its value; add hide: true',
      ],
    ],
    [
      tools('a: { args: { x: { hide: true, default: 2 } } }'),
      [
        'trunkline.yaml:5:37 servers.a.tools.a.args.x.default: a caller cannot send a hidden argument, so its default is a value; set value instead',
      ],
    ],
    [
      tools('a: { args: { x: { hide: true, description: d } } }'),
      ['trunkline.yaml:5:37 servers.a.tools.a.args.x.description: a hidden argument is not shown; remove the description'],
    ],
    [
      'servers:\n  a: { command: x, filter: { annotations: { destructive: deny } } }\n',
      [
        'trunkline.yaml:2:30 servers.a.filter.annotations: annotations of a server that is not trusted decide nothing; set "trusted: true" if you believe them, or use allow and deny',
      ],
    ],
    [
      tools('a: { result: { overflow: file } }'),
      [
        'trunkline.yaml:5:12 servers.a.tools.a.result: expected a whole number from 16 to 10000000, got a mapping',
        'trunkline.yaml:5:22 servers.a.tools.a.result.overflow: expected one of resource, truncate, error, got "file"',
      ],
    ],
    [
      tools('a: { args: { __proto__: { value: 1 } } }'),
      ['trunkline.yaml:5:20 servers.a.tools.a.args.__proto__: "__proto__" cannot be configured; remove it'],
    ],
    [
      tools('a: { name: "x y" }'),
      ['trunkline.yaml:5:12 servers.a.tools.a.name: expected a name of letters, digits, _ and - (at most 128), got "x y"'],
    ],
  ])('%j', async (text, expected) => {
    expect(await problems(text)).toEqual(expected)
  })

  test('the same name behind two prefixes is no collision', async () => {
    const text =
      'servers:\n  a: { command: x, tools: { t: { name: find } } }\n  b: { command: x, tools: { u: { name: find } } }\n'
    await expect(loaded(text)).resolves.toMatchObject({ servers: [{ key: 'a' }, { key: 'b' }] })
  })
})
