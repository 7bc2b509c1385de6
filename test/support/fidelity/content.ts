/** Lists and what results hold. */
import { isModern, since } from './cells.ts'
import type { Cell } from './cells.ts'
import { blockOf, callTool, codeOf, crosses, exposed, exposedUri, impossible, judge, projected, same, textOf } from './probing.ts'
import type { Feature, Pair } from './probing.ts'
import { SAID } from './server.ts'
import type { JsonMap } from '../fakes/messages.ts'

const LISTS = {
  'tools/list': ['tools', 'name', 'echo'],
  'resources/list': ['resources', 'uri', 'file:///r'],
  'resources/templates/list': ['resourceTemplates', 'uriTemplate', 'file:///t/{x}'],
  'prompts/list': ['prompts', 'name', 'p'],
} as const

/** All pages of one list. */
export const listAll = async ({ host }: Pair, method: keyof typeof LISTS): Promise<{ entries: JsonMap[]; pages: number }> => {
  const entries: JsonMap[] = []
  let cursor: unknown
  for (let pages = 1; ; pages++) {
    const page = await host.host.call(method, cursor === undefined ? {} : { cursor })
    entries.push(...(page[LISTS[method][0]] as JsonMap[]))
    cursor = page['nextCursor']
    if (cursor === undefined) return { entries, pages }
  }
}

const lists: Feature = {
  name: 'lists and pagination',
  what: 'The host follows the cursors of all four lists to the end and finds the entries of all pages of the server, with unknown members.',
  expected: () => 'full',
  probe: async (pair) => {
    let pages = 0
    for (const [method, [, field, original]] of Object.entries(LISTS)) {
      const list = await listAll(pair, method as keyof typeof LISTS)
      pages += list.pages
      const name = method === 'tools/list' || method === 'prompts/list' ? exposed(pair, original) : exposedUri(pair, original)
      const entry = list.entries.find((each) => each[field] === name)
      const isWhole = method !== 'tools/list' || same(entry?.['x-new'], { kept: true })
      if (entry === undefined || !isWhole) throw new Error(`${method} lacks ${name}`)
    }
    return judge(pages, pages > 4, false)
  },
}

const calls: Feature = {
  name: 'calls',
  what: 'Unknown arguments, members and `_meta` reach the server; those of its result reach the host.',
  expected: () => 'full',
  probe: async (pair) => {
    const args = { deep: { list: [1, null, 'ü'] } }
    const result = await callTool(pair, 'echo', { arguments: args, _meta: { 'x/trace': 'up' } })
    const meta = (result['_meta'] as JsonMap)['x/y'] as JsonMap
    return judge(result, textOf(result) === JSON.stringify(args) && meta['x/trace'] === 'up' && result['x-new'] === 1, false)
  },
}

/** A kind of block by the first revision that knows it. */
const block = (name: string, tool: 'audio' | 'link', first: '2025-03-26' | '2025-06-18'): Feature => ({
  name,
  what: `A tool result holds a block of this kind, known since ${first}.`,
  expected: (host, server) =>
    !since(server, first)
      ? 'none'
      : since(host, first)
        ? 'full'
        : projected(
            'The host’s revision does not have this kind of block and would refuse the whole result: a text block describes it instead.',
            'B107',
          ),
  probe: async (pair) => {
    const arrived = blockOf(await callTool(pair, tool))
    const sent = tool === 'audio' ? SAID.audio : { ...SAID.link, uri: exposedUri(pair, SAID.link.uri) }
    const said = tool === 'audio' ? '[audio audio/wav, 3 bytes]' : `report: ${exposedUri(pair, SAID.link.uri)}`
    return judge(arrived, same(arrived, sent), same(arrived, { type: 'text', text: said }))
  },
})

const promptBlock: Feature = {
  ...block('resource_link in prompts', 'link', '2025-06-18'),
  what: 'A message of a prompt is a block of this kind, known since 2025-06-18.',
  probe: async (pair) => {
    const { messages } = await pair.host.host.call('prompts/get', { name: exposed(pair, 'p') })
    const arrived = (messages as { content: JsonMap }[])[0]!.content
    const uri = exposedUri(pair, SAID.link.uri)
    return judge(arrived, same(arrived, { ...SAID.link, uri }), same(arrived, { type: 'text', text: `report: ${uri}` }))
  },
}

const OLDER = projected(
  'Revisions before 2025-06-18 have no structured content: it is kept, and a text block repeats it.',
  'B107',
)

const objects: Feature = {
  name: 'structured content',
  what: 'A tool result has an object in `structuredContent` beside its text.',
  expected: (_, server) => (since(server, '2025-06-18') ? 'full' : 'none'),
  probe: async (pair) => {
    const result = await callTool(pair, 'object')
    const isText = textOf(result) === 'in words'
    const { structuredContent } = result
    return judge(result, isText && same(structuredContent, SAID.object), false)
  },
}

const values: Feature = {
  name: 'structured content that is not an object',
  what: 'A tool declares an array as its output and returns one (since 2026-07-28).',
  expected: (host, server) => {
    if (!isModern(server)) return 'none'
    if (isModern(host)) return 'full'
    return since(host, '2025-06-18')
      ? projected(
          'Up to 2025-11-25 outputs must be objects: schema and value are wrapped as `result`, and a text block repeats the value.',
          'B108',
        )
      : OLDER
  },
  probe: async (pair) => {
    const result = await callTool(pair, 'list')
    const { entries } = await listAll(pair, 'tools/list')
    const { outputSchema } = entries.find(({ name }) => name === exposed(pair, 'list')) ?? {}
    const { structuredContent } = result
    const isSaid = textOf(result) === JSON.stringify(SAID.list)
    const properties = ((outputSchema ?? {}) as JsonMap)['properties']
    const isWrapped = same(structuredContent, { result: SAID.list }) && same(properties, { result: SAID.outputSchema })
    const isSame = same(structuredContent, SAID.list) && same(outputSchema, SAID.outputSchema)
    return judge(result, isSame && !isSaid, isSaid && (isWrapped || isSame))
  },
}

const missing: Feature = {
  name: 'missing resources',
  what: 'The host reads a resource that the server does not have.',
  expected: (host, server) =>
    crosses(host, server)
      ? projected(
          'Legacy revisions use `-32002`, 2026-07-28 uses `-32602` with `data.uri`: the host gets the code of its revision.',
          'B103',
          'B104',
        )
      : 'full',
  probe: async (pair) => {
    const code = await codeOf(pair.host.host.call('resources/read', { uri: exposedUri(pair, 'file:///none') }))
    const own = (cell: Cell): number => (isModern(cell) ? -32602 : -32002)
    if (code !== own(pair.host)) throw new Error(`code ${code}`)
    return own(pair.host) === own(pair.server) ? 'full' : 'projected'
  },
}

const hints: Feature = {
  name: 'caching hints',
  what: 'The server states how long a result is valid, and for which callers (since 2026-07-28).',
  expected: (host, server) =>
    !isModern(server)
      ? 'none'
      : isModern(host)
        ? 'full'
        : impossible('Legacy revisions have no such members: they are removed.', 'B106'),
  probe: async (pair) => {
    const result = await pair.host.host.call('resources/read', { uri: exposedUri(pair, 'file:///r') })
    const { ttlMs, cacheScope } = result
    if (ttlMs === undefined && cacheScope === undefined) return 'impossible'
    return judge(result, same({ ttlMs, cacheScope }, SAID.hints), false)
  },
}

const instructions: Feature = {
  name: 'instructions',
  what: 'The server’s instructions are a section of the instructions that the host gets.',
  expected: () => 'full',
  probe: async ({ host, server }) => {
    const said = String(host.host.welcome['instructions'])
    return judge(said, said.includes(server.key.toUpperCase()) && said.includes(SAID.instructions), false)
  },
}

const completion: Feature = {
  name: 'completion',
  what: 'The host completes an argument of a prompt.',
  expected: () => 'full',
  probe: async (pair) => {
    const { completion: completed } = await complete(pair)
    return judge(completed, (completed as { values: unknown[] }).values.length === 1, false)
  },
}

const context: Feature = {
  name: 'completion context',
  what: 'The host adds the arguments chosen so far (since 2025-06-18).',
  expected: (host, server) =>
    !since(host, '2025-06-18')
      ? 'none'
      : since(server, '2025-06-18')
        ? 'full'
        : impossible('The server’s revision has no such member: it completes without context.', '3.6'),
  probe: async (pair) => {
    const { completion: completed } = await complete(pair, { context: { arguments: { b: '1' } } })
    const [value] = (completed as { values: string[] }).values
    return value === 'null' ? 'impossible' : judge(value, value === '{"arguments":{"b":"1"}}', false)
  },
}

const complete = (pair: Pair, more: JsonMap = {}): Promise<JsonMap> =>
  pair.host.host.call('completion/complete', {
    ref: { type: 'ref/prompt', name: exposed(pair, 'p') },
    argument: { name: 'a', value: '' },
    ...more,
  })

export const contentFeatures: readonly Feature[] = [
  lists,
  calls,
  block('audio', 'audio', '2025-03-26'),
  block('resource_link', 'link', '2025-06-18'),
  promptBlock,
  objects,
  values,
  missing,
  hints,
  instructions,
  completion,
  context,
]
