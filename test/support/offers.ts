/**
 * What every test server offers, whichever SDK serves it: the features the interop matrix walks through.
 * The tables know no SDK; `reference/` and `sdk1-server.ts` register them each in its own way.
 */
import { setTimeout } from 'node:timers/promises'
import type { ServerState } from './server-state.ts'

/** What a tool may do with its own call while it runs. */
export interface Conversation {
  signal: AbortSignal
  /** Sends a progress notification, if the caller asked for progress. */
  report(progress: number, total: number): Promise<void>
}

export type PropertySchema = { type: 'string' } | { type: 'string'; enum: string[] }

export interface ToolOffer {
  name: string
  description: string
  inputSchema: { type: 'object'; properties: Record<string, PropertySchema>; required?: string[] }
  /** Returns the text of the one content block. */
  run: (args: Record<string, string>, call: Conversation, state: ServerState) => Promise<string> | string
}

export interface ResourceOffer {
  uri: string
  name: string
  description: string
  mimeType: string
  text?: string
  /** Base64. */
  blob?: string
}

export interface TemplateOffer {
  uriTemplate: string
  name: string
  description: string
  mimeType: string
  read: (variables: Record<string, string>) => string
}

export interface PromptOffer {
  name: string
  description: string
  arguments?: { name: string; description: string; required: boolean }[]
  render: (args: Record<string, string>) => PromptMessage[]
}

export interface PromptMessage {
  role: 'user'
  content:
    | { type: 'text'; text: string }
    | { type: 'image'; data: string; mimeType: string }
    | { type: 'resource'; resource: { uri: string; mimeType: string; text: string } }
}

/** A 1x1 PNG, base64. */
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='

/** How many entries a page of any list holds when a server is asked for pages. */
export const PAGE_SIZE = 2

const text = (value: string): PromptMessage['content'] => ({ type: 'text', text: value })
const strings = (...names: string[]): ToolOffer['inputSchema'] => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
  required: names,
})
const nothing: ToolOffer['inputSchema'] = { type: 'object', properties: {} }

export const tools: ToolOffer[] = [
  {
    name: 'test_simple_text',
    description: 'Returns one text',
    inputSchema: nothing,
    run: () => 'This is a simple text response for testing.',
  },
  { name: 'echo', description: 'Returns its text', inputSchema: strings('text'), run: ({ text }) => text ?? '' },
  {
    name: 'test_tool_with_progress',
    // The pauses are for SDK clients: they drop progress that reaches them in one piece with the answer.
    description: 'Reports progress 0, 50 and 100 of 100 before it answers',
    inputSchema: nothing,
    async run(_, call) {
      for (const progress of [0, 50, 100]) {
        await call.report(progress, 100)
        await setTimeout(20)
      }
      return 'Progress is complete.'
    },
  },
  {
    name: 'report_until_seen',
    description: 'Reports progress 0, 50 and 100 of 100 and answers only once mark_seen was called with its key',
    inputSchema: strings('key'),
    async run({ key = '' }, call, state) {
      for (const progress of [0, 50, 100]) await call.report(progress, 100)
      await state.reached(key, 'seen')
      return 'Progress was seen.'
    },
  },
  {
    name: 'mark_seen',
    description: 'Lets report_until_seen with this key answer',
    inputSchema: strings('key'),
    run({ key = '' }, _, state) {
      state.mark(key, 'seen')
      return 'Marked.'
    },
  },
  {
    name: 'hold',
    description: 'Never answers; remembers under its key that it started and that it was cancelled',
    inputSchema: strings('key'),
    run: ({ key = '' }, { signal }, state) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          state.mark(key, 'cancelled')
          reject(new Error('cancelled'))
        })
        state.mark(key, 'started')
      }),
  },
  {
    name: 'await_call',
    description: 'Answers once the hold with this key has started or was cancelled',
    inputSchema: {
      ...strings('key', 'reached'),
      properties: { key: { type: 'string' }, reached: { type: 'string', enum: ['started', 'cancelled'] } },
    },
    async run({ key = '', reached }, _, state) {
      await state.reached(key, reached === 'cancelled' ? 'cancelled' : 'started')
      return `${key} ${reached}`
    },
  },
  {
    name: 'test_trigger_tool_change',
    description: 'Adds extra_tool to the list or removes it',
    inputSchema: nothing,
    run(_, __, state) {
      state.toggle('tools')
      return 'The list of tools changed.'
    },
  },
  {
    name: 'test_trigger_prompt_change',
    description: 'Adds extra_prompt to the list or removes it',
    inputSchema: nothing,
    run(_, __, state) {
      state.toggle('prompts')
      return 'The list of prompts changed.'
    },
  },
  {
    name: 'touch_watched',
    description: 'Announces that test://watched-resource changed',
    inputSchema: nothing,
    run(_, __, state) {
      state.touch('test://watched-resource')
      return 'The watched resource changed.'
    },
  },
]

/** One prompt as lists show it. */
export const listedPrompt = ({ name, description, arguments: args }: PromptOffer) => ({
  name,
  description,
  ...(args && { arguments: args }),
})

/** The tool that comes and goes. */
export const extraTool: ToolOffer = {
  name: 'extra_tool',
  description: 'Is not always here',
  inputSchema: nothing,
  run: () => 'extra',
}

export const resources: ResourceOffer[] = [
  {
    uri: 'test://static-text',
    name: 'static-text',
    description: 'A text',
    mimeType: 'text/plain',
    text: 'This is the content of the static text resource.',
  },
  { uri: 'test://static-binary', name: 'static-binary', description: 'A picture', mimeType: 'image/png', blob: PNG },
  {
    uri: 'test://watched-resource',
    name: 'watched-resource',
    description: 'A text one can subscribe to',
    mimeType: 'text/plain',
    text: 'Watched resource content',
  },
]

export const templates: TemplateOffer[] = [
  {
    uriTemplate: 'test://template/{id}/data',
    name: 'template',
    description: 'Data for an id',
    mimeType: 'application/json',
    read: ({ id }) => JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
  },
  {
    uriTemplate: 'test://note/{topic}',
    name: 'note',
    description: 'A note on a topic',
    mimeType: 'text/plain',
    read: ({ topic }) => `A note on ${topic}`,
  },
  {
    uriTemplate: 'test://pair/{left}/{right}',
    name: 'pair',
    description: 'Two words',
    mimeType: 'text/plain',
    read: ({ left, right }) => `${left} and ${right}`,
  },
]

export const prompts: PromptOffer[] = [
  {
    name: 'test_simple_prompt',
    description: 'A prompt without arguments',
    render: () => [{ role: 'user', content: text('This is a simple prompt for testing.') }],
  },
  {
    name: 'test_prompt_with_arguments',
    description: 'A prompt with two arguments',
    arguments: [
      { name: 'arg1', description: 'First test argument', required: true },
      { name: 'arg2', description: 'Second test argument', required: true },
    ],
    render: ({ arg1, arg2 }) => [{ role: 'user', content: text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`) }],
  },
  {
    name: 'test_prompt_with_embedded_resource',
    description: 'A prompt that embeds a resource',
    arguments: [{ name: 'resourceUri', description: 'URI of the resource to embed', required: true }],
    render: ({ resourceUri = '' }) => [
      {
        role: 'user',
        content: {
          type: 'resource',
          resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' },
        },
      },
      { role: 'user', content: text('Please process the embedded resource above.') },
    ],
  },
  {
    name: 'test_prompt_with_image',
    description: 'A prompt with a picture',
    render: () => [
      { role: 'user', content: { type: 'image', data: PNG, mimeType: 'image/png' } },
      { role: 'user', content: text('Please analyze the image above.') },
    ],
  },
]

/** The prompt that comes and goes. */
export const extraPrompt: PromptOffer = {
  name: 'extra_prompt',
  description: 'Is not always here',
  render: () => [{ role: 'user', content: text('extra') }],
}

const completions: Record<string, string[]> = {
  'test_prompt_with_arguments arg1': ['paris', 'park', 'party', 'quay'],
  'test://note/{topic} topic': ['apples', 'apricots', 'bread'],
}

/** The known values of one argument that begin with `value`; none for an argument without completion. */
export const completeArgument = (owner: string, argument: string, value: string): string[] =>
  (completions[`${owner} ${argument}`] ?? []).filter((known) => known.startsWith(value))

/** One page of a list: the entries from `cursor` on, and the cursor of the next page if there is one. */
export const page = <Entry>(entries: Entry[], cursor: string | undefined): { entries: Entry[]; nextCursor?: string } => {
  const from = Number(cursor ?? 0)
  const to = from + PAGE_SIZE
  return { entries: entries.slice(from, to), ...(to < entries.length ? { nextCursor: String(to) } : {}) }
}
