/**
 * A model that real hosts talk to in place of one that costs money: asked anything, it calls the one tool it was told of, and when the
 * result comes back it says so and ends. It speaks the APIs of OpenAI (chat completions and responses), Anthropic and Gemini, as far as
 * hosts use them, and shares no code with `src`.
 */
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

export interface FakeModel extends AsyncDisposable {
  readonly url: string
  /** What came back of the tool it called, as text; empty: nothing yet. */
  readonly results: readonly string[]
  /** Names of the tools that it was offered last. */
  readonly offered: readonly string[]
  /** Paths that it was asked at and does not know. */
  readonly unknown: readonly string[]
}

interface Wanted {
  /** Name of the tool, as far as every host keeps it. */
  readonly tool: RegExp
  readonly args: object
  /** What its result holds. */
  readonly result: RegExp
}

/** Some hosts ask before their servers have started, or offer tools of servers after a search: tools of their own that help, in turn. */
const FILLERS: Readonly<Record<string, object>> = {
  WaitForMcpServers: {},
  tool_search: { query: 'everything__echo' },
  exec_command: { cmd: 'sleep 2' },
  run_shell_command: { command: 'sleep 2', is_background: false },
}
const MAX_FILLERS = 4

type Body = Readonly<Record<string, unknown>>

/** An API: what it is asked at, how it names tools, how results come back, and how an answer is written. */
interface Api {
  readonly path: RegExp
  readonly tools: (body: Body) => readonly Named[]
  readonly results: (body: Body) => readonly unknown[]
  readonly call: (tool: Named, args: object, body: Body, path: string) => Answer
  readonly text: (text: string, body: Body, path: string) => Answer
}

interface Named {
  readonly name: string
  /** Of the namespace that it was declared in. */
  readonly namespace?: string
}

/** Events with their names, or one object. */
type Answer = { readonly events: readonly (readonly [name: string | undefined, data: unknown])[]; readonly end?: string } | object

export const startModel = async (wanted: Wanted): Promise<FakeModel> => {
  const results: string[] = []
  const unknown: string[] = []
  let offered: readonly string[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url ?? ''
    const api = APIS.find((one) => one.path.test(path))
    if (request.method !== 'POST' || api === undefined) {
      if (!/models|count_tokens/.test(path)) unknown.push(`${request.method} ${path}`)
      return send(response, { object: 'list', data: [{ id: 'fake', object: 'model' }], input_tokens: 1, totalTokens: 1 })
    }
    const body = (await json(request)) as Body
    const texts = api.results(body).map((one) => (typeof one === 'string' ? one : JSON.stringify(one)))
    const found = texts.filter((text) => wanted.result.test(text))
    results.push(...found)
    const tools = api.tools(body)
    offered = tools.map(({ name, namespace }) => (namespace === undefined ? name : `${namespace} ${name}`))
    const tool = tools.find(({ name }) => wanted.tool.test(name))
    const fillers = tools.filter(({ name }) => Object.hasOwn(FILLERS, name))
    const filler = texts.length < MAX_FILLERS ? fillers[texts.length % fillers.length] : undefined
    if (found.length > 0) send(response, api.text('done', body, path))
    else if (tool !== undefined && texts.length <= MAX_FILLERS) send(response, api.call(tool, wanted.args, body, path))
    else if (filler !== undefined) send(response, api.call(filler, FILLERS[filler.name]!, body, path))
    else send(response, api.text('there is no such tool', body, path))
  }
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    results,
    unknown,
    get offered() {
      return offered
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const send = (response: ServerResponse, answer: Answer): void => {
  if (!('events' in answer)) return void response.setHeader('content-type', 'application/json').end(JSON.stringify(answer))
  response.setHeader('content-type', 'text/event-stream')
  for (const [name, data] of answer.events)
    response.write(`${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`)
  response.end(answer.end)
}

const listOf = (value: unknown): readonly Body[] => (Array.isArray(value) ? (value as Body[]) : [])
const id = (): string => `id_${Math.random().toString(36).slice(2)}`

const chatCompletions: Api = {
  path: /\/chat\/completions/,
  tools: ({ tools }) => listOf(tools).map(({ function: fn }) => fn as Named),
  results: ({ messages }) => listOf(messages).flatMap(({ role, content }) => (role === 'tool' ? [content] : [])),
  call: ({ name }, args, body) =>
    chat(body, 'tool_calls', {
      role: 'assistant',
      content: null,
      tool_calls: [{ index: 0, id: id(), type: 'function', function: { name, arguments: JSON.stringify(args) } }],
    }),
  text: (content, body) => chat(body, 'stop', { role: 'assistant', content }),
}

const chat = ({ stream, model }: Body, reason: string, message: object): Answer => {
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
  const head = { id: id(), created: 1, model }
  if (stream !== true)
    return { ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: reason }], usage }
  const chunk = (delta: object, finish: string | null): object => ({
    ...head,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, finish_reason: finish }],
  })
  return {
    events: [
      [undefined, chunk(message, null)],
      [undefined, chunk({}, reason)],
      [undefined, { ...head, object: 'chat.completion.chunk', choices: [], usage }],
    ],
    end: 'data: [DONE]\n\n',
  }
}

const responses: Api = {
  path: /\/responses/,
  tools: ({ tools }) =>
    listOf(tools).flatMap((tool) => {
      const { type, name, tools: inner } = tool
      return type === 'namespace'
        ? listOf(inner).map((one) => ({ name: String(one['name']), namespace: String(name) }))
        : [{ name: String(name) }]
    }),
  results: ({ input }) => listOf(input).flatMap(({ type, output }) => (type === 'function_call_output' ? [output] : [])),
  call: ({ name, namespace }, args) =>
    response({
      type: 'function_call',
      id: id(),
      call_id: id(),
      name,
      ...(namespace && { namespace }),
      arguments: JSON.stringify(args),
    }),
  text: (text) =>
    response({
      type: 'message',
      id: id(),
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text, annotations: [] }],
    }),
}

const response = (item: object): Answer => {
  const head = { id: id(), object: 'response', created_at: 1, model: 'fake' }
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 }
  const events: [string, object][] = [
    ['response.created', { response: { ...head, status: 'in_progress', output: [] } }],
    ['response.output_item.added', { output_index: 0, item }],
    ['response.output_item.done', { output_index: 0, item }],
    ['response.completed', { response: { ...head, status: 'completed', output: [item], usage } }],
  ]
  return { events: events.map(([type, data], at) => [type, { type, sequence_number: at, ...data }]) }
}

const messages: Api = {
  path: /\/v1\/messages(\?|$)/,
  tools: ({ tools }) => listOf(tools) as unknown as readonly Named[],
  results: ({ messages: all }) =>
    listOf(all).flatMap(({ content }) =>
      listOf(content).flatMap((block) => (block['type'] === 'tool_result' ? [block['content']] : [])),
    ),
  call: ({ name }, args, body) =>
    message(
      body,
      'tool_use',
      { type: 'tool_use', id: id(), name, input: {} },
      { type: 'input_json_delta', partial_json: JSON.stringify(args) },
      args,
    ),
  text: (text, body) => message(body, 'end_turn', { type: 'text', text: '' }, { type: 'text_delta', text }, undefined),
}

const message = ({ stream, model }: Body, reason: string, block: Body, delta: Body, input: object | undefined): Answer => {
  const head = {
    id: id(),
    type: 'message',
    role: 'assistant',
    model,
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  }
  if (stream !== true)
    return { ...head, content: [{ ...block, ...(input ? { input } : { text: delta['text'] }) }], stop_reason: reason }
  return {
    events: [
      ['message_start', { type: 'message_start', message: { ...head, content: [], stop_reason: null } }],
      ['content_block_start', { type: 'content_block_start', index: 0, content_block: block }],
      ['content_block_delta', { type: 'content_block_delta', index: 0, delta }],
      ['content_block_stop', { type: 'content_block_stop', index: 0 }],
      [
        'message_delta',
        { type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 1 } },
      ],
      ['message_stop', { type: 'message_stop' }],
    ],
  }
}

const gemini: Api = {
  path: /:(stream)?generateContent/i,
  tools: ({ tools }) =>
    listOf(tools).flatMap(({ functionDeclarations }) => listOf(functionDeclarations) as unknown as readonly Named[]),
  results: ({ contents }) =>
    listOf(contents).flatMap(({ parts }) =>
      listOf(parts).flatMap(({ functionResponse }) => (functionResponse === undefined ? [] : [functionResponse])),
    ),
  call: ({ name }, args, _body, path) => candidate(path, { functionCall: { name, args } }),
  text: (text, _body, path) => candidate(path, { text }),
}

const candidate = (path: string, part: object): Answer => {
  const answer = {
    candidates: [{ index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  }
  return /stream/i.test(path) ? { events: [[undefined, answer]] } : answer
}

const APIS: readonly Api[] = [chatCompletions, responses, messages, gemini]
