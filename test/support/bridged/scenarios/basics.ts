/** Who they are, what they can do, lists, results of every kind, errors. */
import type { JsonMap } from '../../fakes/messages.ts'
import { Refused } from '../peers.ts'
import { call, each, isLatest, isLegacy, isModern, seenEnd, shown, text, tool, tools } from '../scenario.ts'
import type { Scenario } from '../scenario.ts'

const PNG = 'iVBORw0KGgo='
const ICONS = [{ src: 'https://example.com/icon.png', mimeType: 'image/png', sizes: ['48x48', 'any'], theme: 'dark' }]
const RICH_TOOL: JsonMap = {
  name: 'rich',
  title: 'A rich tool',
  description: 'Has every member',
  inputSchema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: { at: { $ref: '#/$defs/point' }, note: { type: 'string', description: 'any' } },
    required: ['at'],
    additionalProperties: false,
    $defs: { point: { type: 'object', properties: { x: { type: 'number' }, y: { type: 'number' } } } },
  },
  outputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'], additionalProperties: true },
  annotations: { title: 'Rich', readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  icons: ICONS,
  _meta: { 'com.example/x': { deep: [1, 2, { three: null }] } },
}

const BLOCKS: Readonly<Record<string, readonly JsonMap[]>> = {
  text: [{ type: 'text', text: 'plain \u2028 "quoted" 🙂', annotations: { audience: ['user'], priority: 0.5 } }],
  image: [{ type: 'image', data: PNG, mimeType: 'image/png', _meta: { 'com.example/i': 1 } }],
  audio: [{ type: 'audio', data: PNG, mimeType: 'audio/wav' }],
  link: [
    { type: 'resource_link', uri: 'note://b', name: 'b', title: 'B', description: 'a link', mimeType: 'text/plain', size: 3 },
  ],
  textResource: [{ type: 'resource', resource: { uri: 'note://b', mimeType: 'text/plain', text: 'embedded' } }],
  blobResource: [{ type: 'resource', resource: { uri: 'note://c', mimeType: 'application/octet-stream', blob: PNG } }],
  mixed: [
    { type: 'text', text: '1' },
    { type: 'image', data: PNG, mimeType: 'image/png' },
    { type: 'resource_link', uri: 'file:///x', name: 'x' },
    { type: 'text', text: '2' },
  ],
  none: [],
}

export const basics: readonly Scenario[] = [
  {
    name: 'the client sees the server: name, version, title, website, icons, instructions, capabilities, experimental capabilities',
    server: {
      info: { name: 'intro', version: '9.9', title: 'The Intro', websiteUrl: 'https://example.com', icons: ICONS },
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        logging: {},
        completions: {},
        experimental: { 'com.example/x': { y: [1, 2] } },
      },
      instructions: 'First line.\n\n  Second line.  ',
    },
    play: async ({ client }) => client.server(),
  },
  {
    name: 'a server without instructions and with few capabilities is shown unchanged',
    server: { capabilities: { tools: {} }, serve: tools({ only: () => text('done') }) },
    play: async (scene) => [scene.client.server(), await call(scene, 'only')],
  },
  {
    name: 'the server sees the client: name, version, title, capabilities, experimental capabilities and extensions',
    server: {
      capabilities: { tools: {} },
      serve: (server) => tools({ who: () => shown(server.client()) })(server),
    },
    client: {
      info: { name: 'known-client', version: '0.0.1', title: 'Known', websiteUrl: 'https://client.example.com' },
      capabilities: {
        sampling: { tools: {}, context: {} },
        elicitation: { form: { applyDefaults: true }, url: {} },
        roots: { listChanged: true },
        experimental: { 'com.example/c': { d: true } },
        extensions: { 'com.example/ext': { on: 1 } },
      },
    },
    on: isLegacy,
    play: (scene) => call(scene, 'who'),
  },
  {
    name: 'each request to a server of 2026-07-28 names the client and its capabilities',
    server: {
      capabilities: { tools: {} },
      serve: tools({ who: ({ envelope }) => shown(envelope) }),
    },
    client: {
      info: { name: 'known-client', version: '0.0.1', title: 'Known' },
      capabilities: {
        sampling: { tools: {} },
        elicitation: { form: {}, url: {} },
        roots: {},
        extensions: { 'com.example/ext': { on: 1 } },
      },
    },
    on: isModern,
    play: (scene) => call(scene, 'who'),
  },
  {
    name: 'lists keep their order and every member of every definition',
    server: {
      capabilities: { tools: {}, resources: {}, prompts: {} },
      serve: (server) => {
        server.handle('tools/list', () => ({ tools: [RICH_TOOL, tool('b'), tool('a')], _meta: { 'com.example/list': 1 } }))
        server.handle('resources/list', () => ({
          resources: [
            {
              uri: 'note://z',
              name: 'z',
              title: 'Z',
              description: 'last first',
              mimeType: 'text/plain',
              size: 12,
              icons: ICONS,
              annotations: { audience: ['user', 'assistant'], priority: 1, lastModified: '2026-01-01T00:00:00Z' },
              _meta: { 'com.example/r': true },
            },
            { uri: 'file:///a', name: 'a' },
          ],
        }))
        server.handle('resources/templates/list', () => ({
          resourceTemplates: [
            {
              uriTemplate: 'note://{id}{?page,size*}',
              name: 't',
              title: 'T',
              description: 'd',
              mimeType: 'text/plain',
              icons: ICONS,
              _meta: { 'com.example/t': 1 },
            },
          ],
        }))
        server.handle('prompts/list', () => ({
          prompts: [
            {
              name: 'p',
              title: 'P',
              description: 'd',
              icons: ICONS,
              arguments: [{ name: 'x', title: 'X', description: 'dx', required: true }, { name: 'y' }],
              _meta: { 'com.example/p': 1 },
            },
            { name: 'a' },
          ],
        }))
      },
    },
    play: (scene) => each(scene, ['tools/list'], ['resources/list'], ['resources/templates/list'], ['prompts/list']),
  },
  {
    name: 'pages and cursors are the server’s own, and the server refuses an unknown cursor',
    server: {
      capabilities: { tools: {}, resources: {}, prompts: {} },
      serve: (server) => {
        const paged =
          (member: string, entries: readonly JsonMap[]) =>
          ({ params }: { params: JsonMap }): JsonMap => {
            const cursor = params['cursor']
            if (cursor === undefined) return { [member]: [entries[0]], nextCursor: 'next:1/+=' }
            if (cursor === 'next:1/+=') return { [member]: [entries[1]] }
            throw new Refused(-32602, `no page ${JSON.stringify(cursor)}`, { cursor })
          }
        server.handle('tools/list', paged('tools', [tool('one'), tool('two')]))
        server.handle(
          'resources/list',
          paged('resources', [
            { uri: 'a://1', name: '1' },
            { uri: 'a://2', name: '2' },
          ]),
        )
        server.handle(
          'resources/templates/list',
          paged('resourceTemplates', [
            { uriTemplate: 'a://{x}', name: 'x' },
            { uriTemplate: 'b://{x}', name: 'y' },
          ]),
        )
        server.handle('prompts/list', paged('prompts', [{ name: 'one' }, { name: 'two' }]))
      },
    },
    play: async (scene) => {
      const lists = ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list']
      const seen: unknown[] = []
      for (const method of lists)
        seen.push(await each(scene, [method], [method, { cursor: 'next:1/+=' }], [method, { cursor: 'made up' }]))
      return seen
    },
  },
  {
    name: 'the server refuses a method that it does not have',
    server: { capabilities: { tools: {} }, serve: tools({ only: () => text('done') }) },
    play: (scene) =>
      each(
        scene,
        ['resources/list'],
        ['resources/templates/list'],
        ['prompts/list'],
        ['resources/read', { uri: 'a://b' }],
        ['prompts/get', { name: 'x' }],
        ['completion/complete', { ref: { type: 'ref/prompt', name: 'x' }, argument: { name: 'a', value: '' } }],
        ['com.example/none', { a: 1 }],
      ),
  },
  ...Object.entries(BLOCKS).map(([kind, content]): Scenario => ({
    name: `a tool’s result keeps its content: ${kind}`,
    server: { capabilities: { tools: {} }, serve: tools({ make: () => ({ content: [...content] }) }) },
    play: (scene) => call(scene, 'make'),
  })),
  {
    name: 'structured output arrives as the server wrote it, with and without text, with and without an output schema',
    server: {
      capabilities: { tools: {} },
      serve: tools(
        {
          both: () => ({ content: [{ type: 'text', text: '{"n":1}' }], structuredContent: { n: 1, more: [true, null] } }),
          alone: () => ({ content: [], structuredContent: { n: 2 } }),
          plain: () => ({ content: [{ type: 'text', text: 'x' }], structuredContent: { any: 'thing' } }),
          failed: () => ({ content: [{ type: 'text', text: 'broken' }], isError: true }),
        },
        [
          tool('both', { outputSchema: RICH_TOOL['outputSchema'] }),
          tool('alone', { outputSchema: RICH_TOOL['outputSchema'] }),
          tool('plain'),
          tool('failed', { outputSchema: RICH_TOOL['outputSchema'] }),
        ],
      ),
    },
    play: async (scene) => [
      await call(scene, 'both'),
      await call(scene, 'alone'),
      await call(scene, 'plain'),
      await call(scene, 'failed'),
    ],
  },
  {
    name: 'a failed tool gives a result with isError, its text and its _meta',
    server: {
      capabilities: { tools: {} },
      serve: tools({ fail: () => ({ ...text('no disk'), isError: true, _meta: { 'com.example/why': { code: 5 } } }) }),
    },
    play: (scene) => call(scene, 'fail'),
  },
  {
    name: 'arguments reach the tool unchanged',
    server: { capabilities: { tools: {} }, serve: tools({ echo: ({ params }) => shown(params) }) },
    play: async (scene) => [
      await call(scene, 'echo'),
      await call(scene, 'echo', {}),
      await call(scene, 'echo', {
        n: 1.5,
        big: 9007199254740991,
        nothing: null,
        list: [[], {}],
        'key with "quotes"': 'ü🙂\n',
        nested: { a: { b: { c: [] } } },
      }),
    ],
  },
  {
    name: '_meta of requests, results and notifications is relayed',
    server: {
      capabilities: { tools: {} },
      serve: tools({
        meta: async (turn) => {
          await turn.progress({ progress: 1, _meta: { 'com.example/p': 'q' } })
          return { ...shown(turn.meta), _meta: { 'com.example/back': { ok: true }, plain: 1 } }
        },
      }),
    },
    play: async (scene) => {
      const progress: unknown[] = []
      const end = await scene.client.request(
        'tools/call',
        {
          name: 'meta',
          _meta: { 'com.example/trace': { id: 'x' }, traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
        },
        { onprogress: (params) => progress.push(params) },
      )
      return [seenEnd(end), progress]
    },
  },
  {
    name: 'errors of handlers keep code, message and data',
    server: {
      capabilities: { tools: {}, resources: {}, prompts: {} },
      serve: (server) => {
        tools({
          fail: ({ params }) => {
            const { code, data } = params['arguments'] as { code: number; data?: unknown }
            throw new Refused(code, `error ${code}: "quoted"`, data)
          },
          crash: () => {
            throw new Error('unexpected')
          },
        })(server)
        server.handle('resources/read', ({ params }) => {
          throw new Refused(-32002, 'gone', { uri: params['uri'], more: 1 })
        })
        server.handle('prompts/get', () => {
          throw new Refused(-32602, 'no such prompt', { names: ['a'] })
        })
      },
    },
    play: async (scene) => {
      const seen: unknown[] = []
      for (const code of [-32700, -32600, -32601, -32602, -32603, -32000, -32001, -32002, -32003, -32050, -1, 1, 4711])
        seen.push(await call(scene, 'fail', { code, data: { code, deep: [{ a: null }] } }), await call(scene, 'fail', { code }))
      return [
        seen,
        await call(scene, 'crash'),
        ...(await each(scene, ['resources/read', { uri: 'no://where' }], ['prompts/get', { name: 'x' }])),
      ]
    },
  },
  {
    name: 'the server serves or refuses tools, prompts and resources that no list shows',
    server: {
      capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} },
      serve: (server) => {
        server.handle('tools/list', () => ({ tools: [] }))
        server.handle('tools/call', ({ params }) => {
          if (params['name'] === 'hidden') return text('found')
          throw new Refused(-32602, `Tool ${String(params['name'])} not found`)
        })
        server.handle('resources/list', () => ({ resources: [] }))
        server.handle('resources/read', ({ params }) => ({ contents: [{ uri: params['uri'], text: 'from nowhere' }] }))
        server.handle('prompts/list', () => ({ prompts: [] }))
        server.handle('prompts/get', ({ params }) => ({
          description: 'd',
          messages: [{ role: 'user', content: { type: 'text', text: String(params['name']) } }],
        }))
        server.handle('completion/complete', ({ params }) => ({ completion: { values: [JSON.stringify(params)] } }))
      },
    },
    play: async (scene) => [
      await call(scene, 'hidden'),
      await call(scene, 'unknown'),
      ...(await each(
        scene,
        ['resources/read', { uri: 'any://thing at all' }],
        ['prompts/get', { name: 'unlisted', arguments: { a: 'b' } }],
        ['completion/complete', { ref: { type: 'ref/prompt', name: 'unlisted' }, argument: { name: 'a', value: 'v' } }],
        ['completion/complete', { ref: { type: 'ref/resource', uri: 'any://{thing}' }, argument: { name: 'thing', value: '' } }],
      )),
    ],
  },
  {
    name: 'resources are read as text and blob, several at once, none, with _meta; links can be followed',
    server: {
      capabilities: { tools: {}, resources: {} },
      serve: (server) => {
        tools({ link: () => ({ content: [{ type: 'resource_link', uri: 'note://linked', name: 'linked' }] }) })(server)
        server.handle('resources/list', () => ({ resources: [{ uri: 'note://two', name: 'two' }] }))
        server.handle('resources/read', ({ params: { uri } }) => {
          if (uri === 'note://none') return { contents: [] }
          if (uri === 'note://two')
            return {
              contents: [
                { uri: 'note://two/a', text: 'A', mimeType: 'text/plain', _meta: { 'com.example/a': 1 } },
                { uri: 'other://b', blob: PNG },
              ],
              _meta: { 'com.example/read': 1 },
            }
          return { contents: [{ uri, text: `text of ${String(uri)}` }] }
        })
      },
    },
    play: async (scene) => [
      await call(scene, 'link'),
      ...(await each(
        scene,
        ['resources/read', { uri: 'note://linked' }],
        ['resources/read', { uri: 'note://two' }],
        ['resources/read', { uri: 'note://none' }],
        ['resources/read', { uri: 'https://example.com/a?b=c#d' }],
        ['resources/read', { uri: 'relative/path' }],
      )),
    ],
  },
  {
    name: 'prompts contain every kind of message, and arguments reach them',
    server: {
      capabilities: { prompts: {} },
      serve: (server) => {
        server.handle('prompts/list', () => ({ prompts: [{ name: 'all', arguments: [{ name: 'x', required: true }] }] }))
        server.handle('prompts/get', ({ params }) => ({
          description: JSON.stringify(params),
          messages: [
            { role: 'user', content: { type: 'text', text: 'hello' } },
            { role: 'assistant', content: { type: 'image', data: PNG, mimeType: 'image/png' } },
            { role: 'user', content: { type: 'audio', data: PNG, mimeType: 'audio/wav' } },
            { role: 'user', content: { type: 'resource', resource: { uri: 'note://x', text: 'embedded' } } },
            { role: 'user', content: { type: 'resource_link', uri: 'note://y', name: 'y' } },
          ],
          _meta: { 'com.example/g': 1 },
        }))
      },
    },
    play: (scene) => each(scene, ['prompts/get', { name: 'all', arguments: { x: 'y' } }], ['prompts/get', { name: 'all' }]),
  },
  {
    name: 'completions arrive complete, with context, total and hasMore, also more than a hundred',
    server: {
      capabilities: { prompts: {}, resources: {}, completions: {} },
      serve: (server) => {
        server.handle('prompts/list', () => ({ prompts: [{ name: 'p', arguments: [{ name: 'a' }] }] }))
        server.handle('completion/complete', ({ params }) => ({
          completion: { values: ['one', JSON.stringify(params)], total: 230, hasMore: true },
          _meta: { 'com.example/c': 1 },
        }))
      },
    },
    play: (scene) =>
      each(
        scene,
        [
          'completion/complete',
          { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: 'o' }, context: { arguments: { b: 'c' } } },
        ],
        ['completion/complete', { ref: { type: 'ref/resource', uri: 'note://{id}' }, argument: { name: 'id', value: '' } }],
      ),
  },
  {
    name: 'concurrent calls get their own answers, in any order',
    server: {
      capabilities: { tools: {} },
      serve: (server, { notes }) =>
        tools({
          late: async ({ params }) => {
            const { n } = params['arguments'] as { n: number }
            notes.push(n)
            // The first is answered last.
            if (n === 0) await notes.when(() => (notes.entries.length >= 20 ? true : undefined))
            return text(String(n))
          },
        })(server),
    },
    play: (scene) => Promise.all(Array.from({ length: 20 }, (_, n) => call(scene, 'late', { n }))),
  },
  {
    name: 'vendor methods and their errors are relayed',
    server: {
      capabilities: {},
      serve: (server) => {
        server.handle('com.example/sum', ({ params, meta }) => ({ sum: 3, params, meta, _meta: { 'com.example/s': 1 } }))
        server.handle('vendor/fail', () => {
          throw new Refused(-32050, 'vendor error', { why: 'because' })
        })
      },
    },
    play: (scene) =>
      each(
        scene,
        ['com.example/sum', { of: [1, 2], _meta: { 'com.example/m': 1 } }],
        ['com.example/sum'],
        ['vendor/fail', { a: 1 }],
      ),
  },
  {
    name: 'ping is answered in both directions',
    server: {
      capabilities: { tools: {} },
      serve: tools({ ping: async (turn) => shown(await turn.request('ping', {})) }),
    },
    on: isLegacy,
    play: async (scene) => [await each(scene, ['ping']), await call(scene, 'ping')],
  },
  {
    name: 'unknown members of params and results are relayed',
    server: {
      capabilities: { tools: {}, prompts: {} },
      serve: (server) => {
        server.handle('com.example/raw', ({ params }) => ({ params, 'x-result': { y: 1 } }))
        server.handle('tools/list', ({ params }) => ({ tools: [tool('a', { 'x-vendor': { z: [1] } })], 'x-list': params }))
        server.handle('prompts/list', () => ({ prompts: [{ name: 'p', 'x-vendor': 1 }] }))
      },
    },
    play: (scene) => each(scene, ['com.example/raw', { 'x-param': [1] }], ['tools/list', { 'x-param': 2 }], ['prompts/list']),
  },
  {
    name: 'the methods of the client work: listTools, callTool with its validation, readResource, getPrompt, complete',
    server: {
      capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} },
      serve: (server) => {
        tools(
          {
            good: () => ({ ...text('{"n":1}'), structuredContent: { n: 1 } }),
            bad: () => ({ ...text('x'), structuredContent: { n: 'no number' } }),
            missing: () => text('x'),
          },
          [
            tool('good', { outputSchema: RICH_TOOL['outputSchema'] }),
            tool('bad', { outputSchema: RICH_TOOL['outputSchema'] }),
            tool('missing', { outputSchema: RICH_TOOL['outputSchema'] }),
          ],
        )(server)
        server.handle('resources/list', () => ({ resources: [{ uri: 'a://b', name: 'b' }] }))
        server.handle('resources/read', ({ params }) => ({ contents: [{ uri: params['uri'], text: 'B' }] }))
        server.handle('prompts/list', () => ({ prompts: [{ name: 'p' }] }))
        server.handle('prompts/get', () => ({ messages: [] }))
        server.handle('completion/complete', () => ({ completion: { values: ['v'] } }))
      },
    },
    play: async ({ client }) => {
      const sdk = client.sdk as Sdk
      const ended = (promise: Promise<unknown>) =>
        promise.then(
          (result) => seenEnd({ result: result as JsonMap }),
          (error: { code?: number; message: string }) => ({ code: error.code, message: error.message }),
        )
      return [
        await ended(sdk.listTools()),
        await ended(sdk.callTool({ name: 'good' })),
        await ended(sdk.callTool({ name: 'bad' })),
        await ended(sdk.callTool({ name: 'missing' })),
        await ended(sdk.listResources()),
        await ended(sdk.readResource({ uri: 'a://b' })),
        await ended(sdk.listPrompts()),
        await ended(sdk.getPrompt({ name: 'p' })),
        await ended(sdk.complete({ ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } })),
        await ended(sdk.listResourceTemplates()),
      ]
    },
  },
  {
    name: 'the answer to server/discover is the server’s own',
    server: {
      info: { name: 'discovered', version: '1', title: 'D', icons: ICONS },
      capabilities: {
        tools: { listChanged: true },
        extensions: { 'com.example/ext': { a: 1 } },
        experimental: { 'com.example/e': {} },
      },
      instructions: 'Alone.',
    },
    on: isModern,
    // How long it may be kept is the gateway's to say: it knows whether the server is there.
    play: async ({ client }) => {
      const found = await (client.sdk as Sdk).discover()
      return seenEnd({ result: { ...found, ttlMs: 0, cacheScope: 'private' } })
    },
  },
  {
    name: 'the server decides how long lists and resources may be cached',
    server: {
      capabilities: { tools: {}, resources: {} },
      serve: (server) => {
        server.handle('tools/list', () => ({ tools: [tool('a')], ttlMs: 4321, cacheScope: 'private' }))
        server.handle('resources/read', ({ params }) => ({
          contents: [{ uri: params['uri'], text: 't' }],
          ttlMs: 77,
          cacheScope: 'private',
        }))
      },
    },
    on: isModern,
    play: (scene) => each(scene, ['tools/list'], ['resources/read', { uri: 'a://b' }]),
  },
  {
    name: 'execution and other members that a revision defines for a tool are kept',
    server: {
      capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } }, list: {}, cancel: {} } },
      serve: (server) =>
        server.handle('tools/list', () => ({
          tools: [tool('a', { execution: { taskSupport: 'optional' } }), tool('b', { execution: { taskSupport: 'required' } })],
        })),
    },
    on: (row) => row.sdk === 1 && isLatest(row),
    play: async (scene) => [scene.client.server().capabilities, await each(scene, ['tools/list'])],
  },
  {
    name: 'a big result arrives complete',
    server: { capabilities: { tools: {} }, serve: tools({ big: () => text('x'.repeat(3_000_000)) }) },
    play: async (scene) => JSON.stringify(await call(scene, 'big')).length,
  },
]

/** The methods that both SDKs' clients have. */
interface Sdk {
  listTools(): Promise<unknown>
  callTool(params: object): Promise<unknown>
  listResources(): Promise<unknown>
  readResource(params: object): Promise<unknown>
  listPrompts(): Promise<unknown>
  getPrompt(params: object): Promise<unknown>
  complete(params: object): Promise<unknown>
  listResourceTemplates(): Promise<unknown>
  discover(): Promise<JsonMap>
}
