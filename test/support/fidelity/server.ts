/** A server of one revision that offers all that its revision knows, one tool per feature; well-behaved: it asks only what was declared. */
import { fake } from '../fake-downstream.ts'
import type { FakeSpec, Handle } from '../fake-downstream.ts'
import { KEY, metaOf, RpcError } from '../fakes/messages.ts'
import type { JsonMap } from '../fakes/messages.ts'
import type { Turn } from '../fakes/turn.ts'
import { CELLS, isModern, kindOf, since, TASKS, UI } from './cells.ts'
import type { Cell } from './cells.ts'

const schema = { type: 'object', properties: {} }
const text = (said: string): JsonMap => ({ content: [{ type: 'text', text: said }] })

/** What the tools answer, and the questions they ask; probes compare with what arrives. */
export const SAID = {
  audio: { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
  link: { type: 'resource_link', name: 'report', uri: 'file:///report' },
  object: { a: 1, 'x/y': [true] },
  list: [1, 2],
  outputSchema: { type: 'array', items: { type: 'integer' } },
  progress: { total: 2, message: 'half' },
  log: { level: 'warning', data: 'careful' },
  instructions: 'Ask me first.',
  html: '<b>panel</b>',
  hints: { ttlMs: 5_000, cacheScope: 'private' },
  visit: { mode: 'url', url: 'https://example.com/visit', message: 'Visit', elicitationId: 'v-1' },
} as const

const choose = { message: 'Which?', requestedSchema: { type: 'object', properties: { c: { type: 'string' } } } }
const oneOf = [{ const: 'a', title: 'A' }]
const messages = [{ role: 'user', content: { type: 'text', text: 'Say' } }]

/** What each asking tool asks, and the capability it must see declared. */
export const QUESTIONS: Readonly<Record<string, { readonly method: string; readonly params: JsonMap; readonly needs: string }>> =
  {
    form: { method: 'elicitation/create', params: choose, needs: 'elicitation' },
    titled: {
      method: 'elicitation/create',
      params: { message: 'Which?', requestedSchema: { type: 'object', properties: { c: { type: 'string', oneOf } } } },
      needs: 'elicitation',
    },
    several: {
      method: 'elicitation/create',
      params: {
        message: 'Which?',
        requestedSchema: { type: 'object', properties: { c: { type: 'array', items: { type: 'string', enum: ['a'] } } } },
      },
      needs: 'elicitation',
    },
    url: {
      method: 'elicitation/create',
      params: { mode: 'url', message: 'Visit', url: 'https://example.com/u', elicitationId: 'u-1' },
      needs: 'elicitation.url',
    },
    sample: { method: 'sampling/createMessage', params: { messages, maxTokens: 9 }, needs: 'sampling' },
    equip: {
      method: 'sampling/createMessage',
      params: { messages, maxTokens: 9, tools: [{ name: 'echo', inputSchema: schema }] },
      needs: 'sampling.tools',
    },
    roots: { method: 'roots/list', params: {}, needs: 'roots' },
  }

const declared = ({ message, connection }: Turn): JsonMap =>
  ((connection.era === 'modern' ? metaOf(message)[KEY.capabilities] : connection.declared) ?? {}) as JsonMap
const declares = (turn: Turn, path: string): boolean =>
  path.split('.').reduce<unknown>((at, name) => (at as JsonMap | undefined)?.[name], declared(turn)) !== undefined
const declaresExtension = (turn: Turn, name: string): boolean =>
  ((declared(turn)['extensions'] ?? {}) as JsonMap)[name] !== undefined

const asking = async (turn: Turn, tool: string): Promise<JsonMap> => {
  const { method, params, needs } = QUESTIONS[tool]!
  if (!declares(turn, needs)) return text('undeclared')
  if (turn.connection.era === 'legacy') {
    const { result, error } = await turn.ask(method, params)
    return text(error === undefined ? JSON.stringify(result) : `refused ${error.code}`)
  }
  const responses = turn.params['inputResponses'] as JsonMap | undefined
  const { elicitationId: _, ...modern } = params
  if (responses === undefined) return { resultType: 'input_required', inputRequests: { q: { method, params: modern } } }
  return text(JSON.stringify(responses['q']))
}

const TASK = { taskId: 'job', status: 'working', createdAt: 'c', lastUpdatedAt: 'u' }
const TASK_RESULT = text('done by a task')

const runTask = (turn: Turn): JsonMap => {
  if (turn.connection.era === 'legacy') {
    if (turn.params['task'] === undefined) throw new RpcError({ code: -32601, message: 'task augmentation required' })
    return { task: { ...TASK, ttl: 60_000, pollInterval: 20 } }
  }
  if (declaresExtension(turn, TASKS)) return { resultType: 'task', ...TASK, ttlMs: 60_000, pollIntervalMs: 20 }
  const data = { requiredCapabilities: { extensions: { [TASKS]: {} } } }
  throw new RpcError({ code: -32021, message: 'needs tasks', data })
}

/** Sends the beginning of its stream and hangs up; the rest is there for whoever comes back. */
const hangUp = ({ response, id }: Turn): void => {
  response?.writeHead(200, { 'content-type': 'text/event-stream' })
  response?.write(`retry: 10\nid: rest-${JSON.stringify(id)}\ndata: \n\n`)
  setImmediate(() => response?.destroy())
}

const TOOLS: Readonly<Record<string, Handle>> = {
  echo: ({ params }) => ({ ...text(JSON.stringify(params['arguments'] ?? null)), _meta: { 'x/y': params['_meta'] }, 'x-new': 1 }),
  audio: () => ({ content: [SAID.audio] }),
  link: () => ({ content: [SAID.link] }),
  object: () => ({ ...text('in words'), structuredContent: SAID.object }),
  list: () => ({ content: [], structuredContent: SAID.list }),
  progress: (turn) => {
    turn.progress(1, SAID.progress)
    return text('done')
  },
  slow: fake.never,
  visit: () => {
    throw new RpcError({ code: -32042, message: 'visit first', data: { elicitations: [SAID.visit] } })
  },
  task: runTask,
  region: ({ headers }) => text(String(headers['mcp-param-region'])),
  drop: hangUp,
  batch: (turn) => {
    const result = { jsonrpc: '2.0', id: turn.id, result: text('batched') }
    turn.finish(JSON.stringify([{ jsonrpc: '2.0', method: 'notifications/x' }, result]))
  },
}
const toolOf = (name: string, cell: Cell): JsonMap => ({
  name,
  inputSchema:
    name === 'region' ? { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } } : schema,
  'x-new': { kept: true },
  ...(name === 'list' && isModern(cell) && { outputSchema: SAID.outputSchema }),
  ...(name === 'task' && cell.revision === '2025-11-25' && { execution: { taskSupport: 'required' } }),
})

/** A resource that one host alone subscribes to. */
export const watchedBy = ({ key }: Cell): string => `file:///watched-by-${key}`

const PANEL = { name: 'panel', inputSchema: schema, _meta: { ui: { resourceUri: 'ui://panel', 'x/y': 1 } } }
const PAGE = 9

/** The server of one column; `extras`: tools that probes add meanwhile. */
export const serverOf = (cell: Cell, extras: readonly JsonMap[]): FakeSpec => {
  /** Connections that were told a level. */
  const levels = new WeakSet<object>()
  const log: Handle = (turn) => {
    const isAsked = isModern(cell) ? metaOf(turn.message)[KEY.logLevel] !== undefined : levels.has(turn.connection)
    if (isAsked) turn.notify('notifications/message', SAID.log)
    return text('done')
  }
  const handlers: Readonly<Record<string, Handle>> = { ...TOOLS, log }
  const hints = isModern(cell) ? SAID.hints : {}
  const tools = [...Object.keys(handlers), ...Object.keys(QUESTIONS)].map((name) => toolOf(name, cell))
  return fake.of({
    kind: kindOf(cell),
    revision: cell.revision,
    resources: ['file:///r', ...CELLS.map(watchedBy)],
    templates: ['file:///t/{x}'],
    prompts: ['p'],
    instructions: SAID.instructions,
    capabilities: {
      tools: { listChanged: true },
      resources: { listChanged: true, subscribe: true },
      prompts: { listChanged: true },
      logging: {},
      completions: {},
      ...(cell.revision === '2025-11-25' && { tasks: { cancel: {}, requests: { tools: { call: {} } } } }),
      ...(isModern(cell) && { extensions: { [TASKS]: {} } }),
    },
    on: {
      'logging/setLevel': ({ connection }) => {
        levels.add(connection)
        return {}
      },
      'tools/list': (turn) => {
        const all = [...tools, ...extras, ...(declaresExtension(turn, UI) ? [PANEL] : [])]
        const from = Number(turn.params['cursor'] ?? 0)
        const more = from + PAGE < all.length ? { nextCursor: String(from + PAGE) } : {}
        return { ...hints, ...more, tools: all.slice(from, from + PAGE) }
      },
      'tools/call': (turn) => {
        const name = String(turn.params['name'])
        return QUESTIONS[name] === undefined ? (handlers[name] ?? TOOLS['echo']!)(turn) : asking(turn, name)
      },
      'resources/read': ({ params }) => {
        const uri = String(params['uri'])
        if (uri === 'file:///none')
          throw new RpcError({ code: isModern(cell) ? -32602 : -32002, message: 'Resource not found', data: { uri } })
        return { ...hints, contents: [{ uri, text: uri === 'ui://panel' ? SAID.html : uri, _meta: { ui: { csp: {} } } }] }
      },
      'prompts/get': () => ({
        messages: [{ role: 'user', content: since(cell, '2025-06-18') ? SAID.link : { type: 'text', text: 'p' } }],
      }),
      'completion/complete': ({ params }) => ({ completion: { values: [JSON.stringify(params['context'] ?? null)] } }),
      'tasks/get': () =>
        isModern(cell)
          ? { ...TASK, status: 'completed', ttlMs: 60_000, result: TASK_RESULT }
          : { ...TASK, status: 'completed', ttl: 60_000, pollInterval: 20 },
      'tasks/result': () => TASK_RESULT,
    },
  })
}
