/** What every peer server offers (test/peers/README.md), as plain values: the two servers in TypeScript hand it to their SDKs. */
import { setTimeout as sleep } from 'node:timers/promises'

type Json = Record<string, unknown>

/** What one call may do; each server fills it in with its SDK. */
export interface Conversation {
  readonly signal: AbortSignal
  readonly progress: (params: { progress: number; total?: number; message?: string }) => Promise<void>
  readonly log: (level: 'debug' | 'info' | 'warning' | 'error', data: unknown) => Promise<void>
  /** Resolves with the host's answer, or with a result that asks for it and is to be returned as it is. */
  readonly ask: (method: string, params: Json) => Promise<{ answer: unknown } | { result: Json }>
  readonly toolsChanged: () => void
  readonly updated: (uri: string) => void
}

export class RefusedError extends Error {
  readonly code = -31999
  readonly data = { why: 'because', n: [1, 2] }
}

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const BLOCKS = [
  { type: 'text', text: 'plain ünïcode \u2028 text', annotations: { audience: ['user'], priority: 0.5 } },
  { type: 'image', data: PNG, mimeType: 'image/png' },
  { type: 'audio', data: 'UklGRg==', mimeType: 'audio/wav' },
  { type: 'resource_link', uri: 'peer://text', name: 'text', mimeType: 'text/plain', description: 'A link' },
  { type: 'resource', resource: { uri: 'peer://text', mimeType: 'text/plain', text: 'embedded' } },
  { type: 'resource', resource: { uri: 'peer://blob', mimeType: 'application/octet-stream', blob: 'AAEC' } },
]
const FORM = { type: 'object', properties: { answer: { type: 'string', title: 'Answer' } }, required: ['answer'] }
const QUESTIONS: Record<string, [method: string, params: Json]> = {
  ask_form: ['elicitation/create', { mode: 'form', message: 'Which answer?', requestedSchema: FORM }],
  ask_url: [
    'elicitation/create',
    { mode: 'url', message: 'Please visit', url: 'https://peer.example/visit', elicitationId: 'elicitation-1' },
  ],
  sample: [
    'sampling/createMessage',
    { messages: [{ role: 'user', content: { type: 'text', text: 'What?' } }], maxTokens: 7, systemPrompt: 'Be brief.' },
  ],
  roots: ['roots/list', {}],
}

const text = (said: string): Json => ({ content: [{ type: 'text', text: said }] })
const takes = (properties: Json = {}, required: string[] = []): Json => ({ type: 'object', properties, required })
const string = { type: 'string' }
const integer = { type: 'integer' }

const cancelledKeys = new Set<string>()
let hasExtra = false

const TOOLS: Record<string, { definition: Json; run(args: Json, conversation: Conversation): Promise<Json> | Json }> = {
  echo: {
    definition: {
      title: 'Echo',
      description: 'Says it again.',
      inputSchema: takes({ text: string, times: { ...integer, minimum: 1, maximum: 3, default: 1 } }, ['text']),
      annotations: { title: 'Says it again', readOnlyHint: true, openWorldHint: false },
      icons: [{ src: 'data:image/png;base64,AA==', mimeType: 'image/png', sizes: ['16x16'] }],
      _meta: { 'peer.example/kind': 'echo' },
    },
    run: ({ text: said, times = 1 }) => text(Array.from({ length: Number(times) }, () => said).join(' ')),
  },
  blocks: {
    definition: { description: 'One block of each type.', inputSchema: takes() },
    run: () => ({ content: BLOCKS, _meta: { 'peer.example/blocks': 6 } }),
  },
  structured: {
    definition: {
      description: 'Structured content.',
      inputSchema: takes({ n: integer }, ['n']),
      outputSchema: takes({ n: integer, list: { type: 'array', items: integer } }, ['n', 'list']),
    },
    run: ({ n }) => {
      const structuredContent = { n, list: [...Array(n).keys()] }
      return { ...text(JSON.stringify(structuredContent)), structuredContent }
    },
  },
  fail: {
    definition: { description: 'Fails as tools fail.', inputSchema: takes() },
    run: () => ({ ...text('it failed'), isError: true }),
  },
  refuse: {
    definition: { description: 'Answers with a JSON-RPC error.', inputSchema: takes() },
    run: () => {
      throw new RefusedError('refused')
    },
  },
  progress: {
    definition: { description: 'Reports progress.', inputSchema: takes({ steps: integer }, ['steps']) },
    run: async ({ steps }, { progress }) => {
      for (let step = 1; step <= Number(steps); step++) {
        await progress({ progress: step, total: Number(steps), message: `step ${step}` })
        await sleep(50)
      }
      return text('reported')
    },
  },
  log: {
    definition: { description: 'Sends log messages.', inputSchema: takes() },
    run: async (_, { log }) => {
      for (const level of ['debug', 'info', 'warning', 'error'] as const) await log(level, { text: `at ${level}` })
      return text('logged')
    },
  },
  wait: {
    definition: { description: 'Waits until it is cancelled.', inputSchema: takes({ key: string }, ['key']) },
    run: async ({ key }, { signal, progress }) => {
      signal.addEventListener('abort', () => cancelledKeys.add(String(key)))
      await progress({ progress: 1, message: 'waiting' })
      await sleep(30_000, undefined, { signal, ref: false })
      return text('waited')
    },
  },
  cancelled: {
    definition: {
      description: 'Tells whether the call with this key was cancelled.',
      inputSchema: takes({ key: string }, ['key']),
    },
    run: async ({ key }) => {
      for (let turn = 0; turn < 10 && !cancelledKeys.has(String(key)); turn++) await sleep(50)
      return text(cancelledKeys.has(String(key)) ? 'cancelled' : 'not cancelled')
    },
  },
  slow: {
    definition: { description: 'Takes its time.', inputSchema: takes({ ms: integer }, ['ms']) },
    run: async ({ ms }) => {
      await sleep(Number(ms))
      return text('done')
    },
  },
  grow: {
    definition: { description: 'Adds a tool, or removes it.', inputSchema: takes({ remove: { type: 'boolean' } }) },
    run: ({ remove }, { toolsChanged }) => {
      hasExtra = remove !== true
      toolsChanged()
      return text('grown')
    },
  },
  touch: {
    definition: { description: 'Updates peer://watched.', inputSchema: takes() },
    run: (_, { updated }) => {
      updated('peer://watched')
      return text('touched')
    },
  },
  ...Object.fromEntries(
    Object.entries(QUESTIONS).map(([name, [method, params]]) => [
      name,
      {
        definition: { description: `Asks: ${method}.`, inputSchema: takes() },
        run: async (_: Json, { ask }: Conversation) => {
          const asked = await ask(method, params)
          return 'result' in asked ? asked.result : text(JSON.stringify(asked.answer))
        },
      },
    ]),
  ),
}

const RESOURCES = [
  { uri: 'peer://text', name: 'text', title: 'Text', description: 'A text', mimeType: 'text/plain' },
  { uri: 'peer://blob', name: 'blob', mimeType: 'application/octet-stream', size: 5 },
  { uri: 'peer://watched', name: 'watched', mimeType: 'text/plain' },
]
const CONTENT: Record<string, Json> = {
  'peer://text': { text: 'the text\r\n\tünïcode' },
  'peer://blob': { blob: 'AAECAwQ=' },
  'peer://watched': { text: 'watched' },
}
const TEMPLATE = {
  uriTemplate: 'peer://items/{id}',
  name: 'item',
  title: 'Item',
  description: 'One item',
  mimeType: 'application/json',
}
const PROMPT = {
  name: 'greet',
  title: 'Greeting',
  description: 'Greets.',
  arguments: [
    { name: 'name', description: 'Whom', required: true },
    { name: 'style', required: false },
  ],
}

export class NotFoundError extends Error {}

/** A list in pages of `size`. */
const page = (key: string, entries: readonly unknown[], cursor: unknown, size = 7): Json => {
  const from = Number(cursor ?? 0)
  const next = from + size < entries.length ? { nextCursor: String(from + size) } : {}
  return { [key]: entries.slice(from, from + size), ...next }
}

export const INFO = { name: 'typescript-peer', title: 'TypeScript peer', version: '1.0.0' }
export const INSTRUCTIONS = 'A peer written in TypeScript.'

/** The answers to every request that a peer server serves, by method. */
export const HANDLERS: Record<string, (params: Json, conversation: Conversation) => Promise<Json> | Json> = {
  'tools/list': ({ cursor }) => {
    const listed = Object.entries(TOOLS).map(([name, { definition }]) => ({ name, ...definition }))
    const extra = { name: 'extra', description: 'Only sometimes there.', inputSchema: takes() }
    return page('tools', hasExtra ? [...listed, extra] : listed, cursor)
  },
  'tools/call': ({ name, arguments: args }, conversation) => {
    const tool = TOOLS[String(name)]
    if (tool !== undefined) return tool.run((args ?? {}) as Json, conversation)
    if (hasExtra && name === 'extra') return text('extra')
    throw new NotFoundError(`Unknown tool: ${String(name)}`)
  },
  'resources/list': ({ cursor }) => page('resources', RESOURCES, cursor, 2),
  'resources/templates/list': ({ cursor }) => page('resourceTemplates', [TEMPLATE], cursor),
  'resources/read': ({ uri }) => {
    const name = String(uri)
    const found = RESOURCES.find((resource) => resource.uri === name)
    if (found !== undefined) return { contents: [{ uri, mimeType: found.mimeType, ...CONTENT[name] }] }
    const id = /^peer:\/\/items\/(.+)$/.exec(name)?.[1]
    if (id === undefined) throw Object.assign(new NotFoundError(`Resource not found: ${name}`), { data: { uri } })
    return { contents: [{ uri, mimeType: 'application/json', text: JSON.stringify({ id }) }] }
  },
  'prompts/list': ({ cursor }) => page('prompts', [PROMPT], cursor),
  'prompts/get': ({ name, arguments: args }) => {
    const { name: whom, style = 'short' } = (args ?? {}) as Record<string, string>
    if (name !== 'greet') throw new NotFoundError(`Unknown prompt: ${String(name)}`)
    const content = { type: 'text', text: `Greet ${whom} in a ${style} way.` }
    return { description: 'Greets.', messages: [{ role: 'user', content }] }
  },
  'completion/complete': ({ argument }) => {
    const values = ['alice', 'albert', 'bob'].filter((one) => one.startsWith((argument as { value: string }).value))
    return { completion: { values, total: values.length, hasMore: false } }
  },
  'resources/subscribe': () => ({}),
  'resources/unsubscribe': () => ({}),
}

export const CAPABILITIES = {
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  prompts: { listChanged: true },
  completions: {},
  logging: {},
}
