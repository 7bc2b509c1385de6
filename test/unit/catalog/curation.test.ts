/** What the rules of a server make of what it offers: pure, without any server. */
import { describe, expect, test } from 'vitest'
import { fillArguments } from '../../../src/catalog/curate/curated-arguments.ts'
import { decideUri } from '../../../src/catalog/curate/curated-filter.ts'
import { Curator } from '../../../src/catalog/curate/curated-inventory.ts'
import { rulesFor } from '../../../src/catalog/curate/curated-rules.ts'
import type { Curation } from '../../../src/catalog/curation.ts'
import type { Entry, Inventory } from '../../../src/catalog/inventory.ts'
import { buildCatalog } from '../../../src/catalog/build-catalog.ts'
import { readParamHeaders } from '../../../src/wire/headers/param-headers.ts'
import { curated } from '../../support/curation.ts'
import { documentFrom, randomFrom } from '../../support/documents.ts'
import { ALWAYS, entryOf, inventoryOf, NEVER, promptOf, resourceOf, serverOf, templateOf, toolOf } from './fixtures.ts'

const rules = async (entry: object): Promise<Curation> => {
  const { curation } = await curated(entry)
  if (curation === undefined) throw new Error('nothing is curated')
  return curation
}

const curate = async (inventory: Inventory, entry: object): Promise<Inventory> =>
  new Curator().curate(inventory, await rules(entry))

const shown = (inventory: Inventory): Record<string, string[]> =>
  Object.fromEntries(Object.entries(inventory.lists).map(([kind, entries]) => [kind, entries.map(({ original }) => original)]))

const tool = (json: string): Entry => {
  const raw = Buffer.from(json)
  const { name, inputSchema } = JSON.parse(json) as { name: string; inputSchema: object }
  const read = readParamHeaders(Buffer.from(JSON.stringify(inputSchema)))
  return { original: name, raw, paramHeaders: 'headers' in read ? read.headers : [] }
}

describe('what is shown', () => {
  const offered = inventoryOf({
    tools: [toolOf('get'), toolOf('delete_a'), toolOf('list')],
    prompts: [promptOf('internal_x'), promptOf('x')],
    resources: [resourceOf('repo://acme/a'), resourceOf('repo://other/a')],
    templates: [templateOf('repo://acme/{path}'), templateOf('repo://{owner}/x')],
  })

  test('names: what is allowed and not denied', async () => {
    const { tools, prompts } = shown(
      await curate(offered, { filter: { allow: ['get', 'delete_*'], deny: 'delete_*' }, prompts: { deny: ['internal_*'] } }),
    )
    expect(tools).toEqual(['get'])
    expect(prompts).toEqual(['x'])
  })

  test('URIs and templates, by one pattern', async () => {
    const { resources, templates, tools } = shown(await curate(offered, { resources: { allow: ['repo://acme/**'] } }))
    expect(resources).toEqual(['repo://acme/a'])
    expect(templates).toEqual(['repo://acme/{path}'])
    expect(tools).toHaveLength(3)
  })

  test('an empty list of allowed names shows nothing', async () => {
    expect(shown(await curate(offered, { filter: { allow: [] } }))['tools']).toEqual([])
  })

  test.each([
    [{ destructive: 'deny' }, ['reads', 'adds']],
    [{ read_only: 'require' }, ['reads']],
    [{ read_only: 'deny' }, ['silent', 'adds', 'lies']],
    [{ open_world: 'deny' }, ['adds']],
    [{ idempotent: 'require', read_only: 'deny' }, ['adds']],
  ])('annotations %j leave %j', async (annotations, left) => {
    const hinted = inventoryOf({
      tools: [
        toolOf('silent'),
        toolOf('reads', { annotations: { readOnlyHint: true, destructiveHint: true } }),
        toolOf('adds', { annotations: { destructiveHint: false, idempotentHint: true, openWorldHint: false } }),
        toolOf('lies', { annotations: { destructiveHint: 'false' } }),
      ],
    })
    expect(shown(await curate(hinted, { trusted: true, filter: { annotations } }))['tools']).toEqual(left)
  })

  test('a URI is hidden in every spelling that a server may read as one that is', async () => {
    const curation = await rules({ resources: { allow: ['file:///pub/**'], deny: ['file:///pub/secret/**'] } })
    const isShown = (uri: string): boolean => decideUri(curation, uri).isShown
    for (const uri of ['file:///pub/a', 'file:///pub/a/', 'file:///pub/a%20b', 'file:///pub/{name}'])
      expect([uri, isShown(uri)]).toEqual([uri, true])
    for (const uri of [
      'file:///PUB/a',
      'file:///pub/secret/x',
      'file:///pub/SECRET/x',
      'file:///pub/%73ecret/x',
      'file:///pub/./secret/x',
      'file:///pub//secret/x',
      'file:///pub/a/../secret/x',
      'file:///pub/a/%2e%2e/secret/x',
      'file:///pub\\secret\\x',
      'file:///pub/x/../a',
      'repo://pub/../secret',
      'file:///pub/../etc/passwd',
      'file:///pub/..%2f..%2fetc/passwd',
      'file:///etc/passwd',
      'file://pub/a',
    ])
      expect([uri, isShown(uri)]).toEqual([uri, false])
  })

  test('a URI that may mean any other is hidden wherever there are rules for URIs', async () => {
    const denying = await rules({ resources: { deny: ['file:///secret/**'] } })
    const allowing = await rules({ resources: { allow: ['file:///pub/**'] } })
    const none = await rules({ filter: { deny: ['x'] } })
    const isShown = (uri: string): boolean[] => [denying, allowing, none].map((curation) => decideUri(curation, uri).isShown)
    expect(isShown('file:///pub/a')).toEqual([true, true, true])
    expect(isShown('file:///pub/../secret/x')).toEqual([false, false, true])
    expect(isShown('file:///pub/x/../a')).toEqual([false, false, true])
  })

  test('the tool to sign in is shown whatever is allowed', async () => {
    const signIn: Entry = { ...toolOf('sign_in'), isSignIn: true }
    const inventory = inventoryOf({ tools: [signIn, toolOf('get')] })
    expect(shown(await curate(inventory, { filter: { allow: ['none'] } }))['tools']).toEqual(['sign_in'])
  })

  test('an entry that no rule touches is the very same, and one that is edited is edited once', async () => {
    const curation = await rules({ tools: { get: { title: 'Get' } } })
    const curator = new Curator()
    const first = curator.curate(offered, curation).lists.tools
    const again = curator.curate({ ...offered, lists: { ...offered.lists } }, curation).lists.tools
    expect(first[1]).toBe(offered.lists.tools[1])
    expect(again[0]).toBe(first[0])
    expect(first[0]).not.toBe(offered.lists.tools[0])
    expect(curator.curate(offered, curation).lists).toBe(curator.curate(offered, curation).lists)
  })
})

describe('definitions', () => {
  const SEARCH =
    '{ "name":"search","description":"old","annotations":{"title":"T","readOnlyHint":false},"inputSchema":{"type":"object",' +
    '"properties":{"org":{"type":"string","x-mcp-header":"Org"},"per_page":{"type":"integer","maximum":1.0},"q":{"type":"string"},"any":true},' +
    '"required":["q","org","per_page"]},"outputSchema":{"type":"object"},"x-future":1e2}'
  const edited = async (args: object, more: object = {}): Promise<Entry> => {
    const { lists } = await curate(inventoryOf({ tools: [tool(SEARCH)] }), { tools: { search: { args, ...more } } })
    return lists.tools[0]!
  }
  const schemaOf = ({ raw }: Entry): unknown => (JSON.parse(raw.toString()) as { inputSchema: unknown }).inputSchema

  test('only what is named changes, byte for byte', async () => {
    const { raw } = await edited(
      {},
      { title: 'Find "it"', description: 'new', annotations: { readOnlyHint: true, openWorldHint: false } },
    )
    expect(raw.toString()).toBe(
      SEARCH.replace('{ "name"', '{"title":"Find \\"it\\"", "name"')
        .replace('"old"', '"new"')
        .replace('{"title":"T","readOnlyHint":false}', '{"openWorldHint":false,"title":"Find \\"it\\"","readOnlyHint":true}'),
    )
  })

  test('a hidden argument leaves properties, required and the headers asked of hosts; the call still knows its header', async () => {
    const entry = await edited({ org: { value: 'acme', hide: true } })
    expect(schemaOf(entry)).toEqual({
      type: 'object',
      properties: { per_page: { type: 'integer', maximum: 1 }, q: { type: 'string' }, any: true },
      required: ['q', 'per_page'],
    })
    expect(entry.raw.toString()).toContain('"maximum":1.0')
    expect(entry.paramHeaders).toEqual([])
    expect(entry.rule?.paramHeaders).toEqual([{ name: 'Org', path: ['org'], type: 'string' }])
    expect(entry.rule?.hiddenHeaders).toEqual(['mcp-param-org'])
  })

  test('a pinned argument is shown as a constant, a default as a default; neither is required', async () => {
    const entry = await edited({
      org: { value: 'acme' },
      per_page: { default: 20, description: 'Keep it small' },
      any: { default: null },
    })
    expect(schemaOf(entry)).toEqual({
      type: 'object',
      properties: {
        org: { type: 'string', 'x-mcp-header': 'Org', const: 'acme' },
        per_page: { type: 'integer', maximum: 1, default: 20, description: 'Keep it small' },
        q: { type: 'string' },
        any: { default: null },
      },
      required: ['q'],
    })
    expect(entry.paramHeaders).toHaveLength(1)
  })

  test('where nobody needs to send anything, nothing is required', async () => {
    const entry = await edited({ org: { hide: true, value: 1 }, q: { default: '' }, per_page: { value: 3 } })
    expect(schemaOf(entry)).not.toHaveProperty('required')
  })

  test('what is required stays as it is spelled where no argument of it is decided, or there is none', async () => {
    for (const required of ['', ',"required": [ "q" ]', ',"required":"q"']) {
      const json = `{"name":"t","inputSchema":{"properties":{"q":{},"n":{}}${required}}}`
      const { lists } = await curate(inventoryOf({ tools: [tool(json)] }), { tools: { t: { args: { n: { value: 1 } } } } })
      expect(lists.tools[0]!.raw.toString()).toBe(json.replace('"n":{}', '"n":{"const":1}'))
    }
  })

  test('a tool whose results are limited promises no shape', async () => {
    expect((await edited({}, { result: { max_tokens: 100 } })).raw.toString()).not.toContain('outputSchema')
    expect((await edited({}, { timeout: '1s' })).raw.toString()).toBe(SEARCH)
  })

  test('what is only worded in another way is called as before', async () => {
    expect((await edited({ q: { description: 'words' } }, { name: 'find', title: 'Find' })).rule).toBeUndefined()
  })

  test('rules that meet nothing are told with their places', async () => {
    const offered = inventoryOf({ tools: [tool(SEARCH)] })
    const { findings } = await curate(offered, {
      tools: { serch: { title: 'x' }, search: { args: { ogr: { value: 1 }, q: { hide: true }, org: { hide: true, value: 1 } } } },
    })
    expect(findings.map(({ name, note }) => `${name}: ${note}`)).toEqual([
      'serch: is configured, and the server has no such tool (configuration)',
      'search: the argument "ogr" is configured, and its schema does not list it (configuration)',
      'search: the argument "q" is required, hidden and has no value (configuration)',
    ])
  })
})

describe('arguments of a call', () => {
  const fill = async (args: string | undefined, edits: object): Promise<string | undefined> => {
    const { edits: all } = await rules({ tools: { t: { args: edits } } })
    const done = fillArguments(args === undefined ? undefined : Buffer.from(args), all.get('t')?.args ?? [])
    if ('refused' in done) return `!! ${done.refused}`
    return 'fault' in done ? `! ${done.fault}` : done.filled?.toString()
  }

  test('what the host sent stays as it is; ours is spliced in front', async () => {
    const pinned = { org: { value: 'ac"me', hide: true }, n: { default: 20 }, deep: { value: { a: [1, null, 'x'] }, hide: true } }
    expect(await fill(' {"q" :1.0, "n":5e0}'.trim(), pinned)).toBe(
      '{"org":"ac\\"me","deep":{"a":[1,null,"x"]},"q" :1.0, "n":5e0}',
    )
    expect(await fill('{ }', { n: { default: 20 } })).toBe('{"n":20}')
    expect(await fill(undefined, { n: { default: 20 } })).toBe('{"n":20}')
    expect(await fill(undefined, { n: { hide: true } })).toBeUndefined()
    expect(await fill('{"n":null}', { n: { default: 20 } })).toBe('{"n":null}')
  })

  test('T-20 B270 a key that equals a decided argument only in case is refused, and no hidden name is told', async () => {
    const edits = { org: { value: 'acme', hide: true }, K: { default: 20 }, said: { description: 'x' } }
    for (const key of ['Org', 'ORG', 'O\\u0052g'])
      expect(await fill(`{"${key}":"evil"}`, edits)).toMatch(
        /^!! the argument "O[rR][gG]" differs from one that is set by the conf/,
      )
    expect(await fill('{"K":1}', edits)).toBe('!! the argument "K" differs from "K" only in case')
    expect(await fill('{"Said":1,"SAID":2,"orgs":3}', { said: { description: 'x' } })).toBe('{"Said":1,"SAID":2,"orgs":3}')
    expect(await fill('{"a":{"Org":1}}', { org: { value: { id: 1 } } })).toBe('{"org":{"id":1},"a":{"Org":1}}')
    expect(await fill('{"org":{"Id":1}}', { org: { value: { id: 1 } } })).toMatch(/^! the argument "org" is fixed/)
  })

  test('B282 null for the arguments is absent, and stays where nothing is added', async () => {
    expect(await fill('null', { n: { default: 20 } })).toBe('{"n":20}')
    expect(await fill('null', { n: { hide: true } })).toBe('null')
  })

  test('T-26 whatever the host sends arrives byte for byte behind what is pinned', async () => {
    const random = randomFrom(7)
    for (let round = 0; round < 300; round++) {
      const args = documentFrom(random).trim()
      const filled = await fill(args, { 'not sent': { value: [1] } })
      expect(filled).toBe(/^\{\s*\}$/.test(args) ? '{"not sent":[1]}' : `{"not sent":[1],${args.slice(1)}`)
      expect(() => JSON.parse(filled ?? '') as unknown).not.toThrow()
    }
  })

  test.each([
    ['{"org":"acme"}', { org: { value: 'acme', hide: true } }, '! unknown argument "org"'],
    ['{"\\u006frg":"x"}', { org: { value: 'acme', hide: true } }, '! unknown argument "org"'],
    ['{"org":"x"}', { org: { hide: true } }, '! unknown argument "org"'],
    [
      '{"org":"acme","org":"x"}',
      { org: { value: 'acme' } },
      '! the argument "org" is fixed: leave it out, or send what its schema says',
    ],
    ['{"org":null}', { org: { value: 'acme' } }, '! the argument "org" is fixed: leave it out, or send what its schema says'],
    ['{ "org":"\\u0061cme"}', { org: { value: 'acme' } }, '{ "org":"\\u0061cme"}'],
    ['[]', { org: { value: 'acme' } }, '! the arguments must be an object'],
    ['"x"', { org: { value: 'acme' } }, '! the arguments must be an object'],
  ])('%s under %j', async (args, edits, outcome) => {
    expect(await fill(args, edits)).toBe(outcome)
  })
})

describe('names', () => {
  const names = async (entry: object, naming = ALWAYS, only = false): Promise<string[]> => {
    const inventory = await curate(inventoryOf({ tools: [toolOf('search_code'), toolOf('find')] }), entry)
    const server = serverOf('gh', {
      curation: await rules(entry),
      alias: (entry as { alias?: Record<string, string> }).alias ?? {},
    })
    const catalog = buildCatalog([{ server, inventory }], only ? { ...naming, prefix: 'never', originals: true } : naming)
    return catalog.lists.tools.map(({ exposed, entry: { original } }) => `${exposed}=${original}`)
  }

  test('the prefix stands before the configured name, and there is none in mode never', async () => {
    const entry = { tools: { search_code: { name: 'find_code' } } }
    expect(await names(entry)).toEqual(['gh__find_code=search_code', 'gh__find=find'])
    expect(await names(entry, NEVER)).toEqual(['find_code=search_code', 'find=find'])
  })

  test('alone at its own path a server has its own names', async () => {
    expect(await names({ tools: { search_code: { name: 'find_code' } }, alias: { find: 'x' } }, ALWAYS, true)).toEqual([
      'search_code=search_code',
      'find=find',
    ])
  })

  test('a configured name wins over a sibling that has it by itself, which is left out and told', async () => {
    const entry = { tools: { search_code: { name: 'find' } } }
    const inventory = await curate(inventoryOf({ tools: [toolOf('find'), toolOf('search_code')] }), entry)
    const { lists, problems, leftOut } = buildCatalog([{ server: serverOf('gh'), inventory }], ALWAYS)
    expect(lists.tools.map(({ entry: { original } }) => original)).toEqual(['search_code'])
    expect(problems).toEqual([
      { kind: 'duplicate', message: 'tools: "gh__find" is configured for "search_code" of gh; "find" of gh is left out' },
    ])
    const reason = '"gh__find" is configured for "search_code" of gh'
    expect(leftOut).toEqual([{ kind: 'tools', name: 'find', reason, server: 'gh' }])
  })

  test('a name of the configuration that is too long is shortened as any other', async () => {
    const [first] = await names({ tools: { search_code: { name: 'x'.repeat(100) } } })
    expect(first).toMatch(/^gh__x{35}_[a-z2-7]{8}=search_code$/)
  })
})

describe('why an entry is as it is', () => {
  test('each rule with its effect, in the order of effect; values are not told', async () => {
    const curation = await rules({
      trusted: true,
      alias: { hidden: 'h' },
      filter: { allow: ['search*', 'hidden', 'wild'], deny: ['hid*'], annotations: { destructive: 'deny' } },
      tools: {
        search: {
          name: 'find',
          title: 'T',
          description: 'D',
          annotations: { readOnlyHint: true },
          args: { org: { value: 'secret', hide: true }, n: { default: 1, description: 'd' } },
          timeout: '20s',
          result: { max_tokens: 4000, overflow: 'truncate' },
        },
      },
    })
    const why = (name: string, annotations = {}): string[] =>
      rulesFor({ curation }, 'tools', toolOf(name, { annotations })).map(
        ({ effect, what, path }) => `${effect}: ${what} | ${path}`,
      )
    expect(why('search', { destructiveHint: false })).toEqual(
      [
        'shows: allows "search*" | filter.allow[0]',
        'renames: it is called "find" | tools.search.name',
        'edits: another title | tools.search.title',
        'edits: another description | tools.search.description',
        'edits: says readOnlyHint for it | tools.search.annotations',
        'edits: the argument "org" is pinned, is hidden | tools.search.args.org',
        'edits: the argument "n" has a default, has another description | tools.search.args.n',
        'edits: a call takes at most 20 s | tools.search.timeout',
        'edits: a result holds at most about 4000 tokens (truncate) | tools.search.result',
      ].map((line) => line.replace('| ', '| servers.a.')),
    )
    expect(why('hidden')).toEqual(['hides: denies "hid*" | servers.a.filter.deny[0]'])
    expect(why('wild')).toEqual(['hides: denies tools with destructiveHint | servers.a.filter.annotations.destructive'])
    expect(why('other')).toEqual(['hides: allows other names | servers.a.filter.allow'])
    expect(rulesFor({ curation }, 'resources', entryOf('a:b', {}))).toEqual([])
    expect(rulesFor({ curation: undefined }, 'tools', toolOf('x'))).toEqual([])
  })

  test('what tools must have is told where it hides one', async () => {
    const curation = await rules({ trusted: true, filter: { annotations: { read_only: 'require' } } })
    expect(rulesFor({ curation }, 'tools', toolOf('x')).map(({ effect, what }) => [effect, what])).toEqual([
      ['hides', 'requires readOnlyHint'],
    ])
  })

  test('an alias is among them', async () => {
    const curation = await rules({ alias: { x: 'y' } })
    expect(rulesFor({ curation }, 'tools', toolOf('x'))).toHaveLength(1)
    expect(rulesFor({ curation }, 'resources', resourceOf('x'))).toEqual([])
    expect(rulesFor({ curation }, 'prompts', promptOf('x')).map(({ effect, path }) => [effect, path])).toEqual([
      ['renames', 'servers.a.alias.x'],
    ])
  })
})
