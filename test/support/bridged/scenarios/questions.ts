/** What servers ask of clients: elicitation, sampling, roots, methods of a vendor; and what becomes of refusals. */
import type { JsonMap } from '../../fakes/messages.ts'
import { Refused } from '../peers.ts'
import type { Handle } from '../peers.ts'
import { asking, call, isLegacy, seenEnd, shown, text, tools } from '../scenario.ts'
import type { Row } from '../rows.ts'
import type { Scenario } from '../scenario.ts'

const SCHEMA = {
  type: 'object',
  properties: {
    mail: { type: 'string', format: 'email', title: 'Mail', description: 'd', minLength: 3, maxLength: 50, default: 'a@b.c' },
    n: { type: 'integer', minimum: 1, maximum: 9, default: 3 },
    share: { type: 'number', minimum: 0.5 },
    sure: { type: 'boolean', default: true },
    pick: { type: 'string', enum: ['a', 'b'], enumNames: ['A', 'B'] },
    titled: { type: 'string', oneOf: [{ const: 'x', title: 'X' }] },
    many: { type: 'array', minItems: 1, maxItems: 2, items: { type: 'string', enum: ['p', 'q'] } },
    titledMany: { type: 'array', items: { anyOf: [{ const: 'v', title: 'V' }] } },
  },
  required: ['mail'],
}

/** One tool that asks; the client notes what it was asked and answers. */
const question = (
  name: string,
  method: string,
  params: JsonMap,
  capabilities: JsonMap,
  answer: Handle,
  on?: (row: Row) => boolean,
): Scenario => {
  return {
    name,
    ...(on && { on }),
    server: { capabilities: { tools: {} }, serve: (server) => tools({ ask: asking(server, method, params, shown) })(server) },
    client: {
      capabilities,
      answers: { [method]: answer },
    },
    play: async (scene) => [await call(scene, 'ask'), scene.asked],
  }
}

const FORM = { message: 'Which? "q"', requestedSchema: SCHEMA }
const ELICITS = { elicitation: { form: {}, url: {} } }
const MESSAGES = [
  { role: 'user', content: { type: 'text', text: 'hi' } },
  { role: 'assistant', content: { type: 'image', data: 'AA==', mimeType: 'image/png' } },
  { role: 'user', content: { type: 'audio', data: 'AA==', mimeType: 'audio/wav' } },
]
const SAMPLE = {
  messages: MESSAGES,
  maxTokens: 7,
  systemPrompt: 'be brief',
  temperature: 0.25,
  stopSequences: ['x'],
  includeContext: 'none',
  metadata: { 'any-provider': { a: 1 } },
  modelPreferences: { hints: [{ name: 'm' }, {}], costPriority: 0.1, speedPriority: 0.2, intelligencePriority: 0.9 },
}
const SAMPLED = { model: 'm-1', role: 'assistant', content: { type: 'text', text: 'well' }, stopReason: 'endTurn' }
const knowsModes = ({ revision }: Row): boolean => revision >= '2025-11-25'

export const questions: readonly Scenario[] = [
  question(
    'a form is asked for with every kind of field, and its content comes back',
    'elicitation/create',
    { mode: 'form', ...FORM },
    ELICITS,
    () => ({
      action: 'accept',
      content: { mail: 'x@y.z', n: 4, share: 0.75, sure: false, pick: 'b', titled: 'x', many: ['p', 'q'], titledMany: ['v'] },
      _meta: { 'com.example/a': 1 },
    }),
    knowsModes,
  ),
  question('a form without a mode stays without', 'elicitation/create', FORM, { elicitation: {} }, () => ({
    action: 'accept',
    content: { mail: 'x@y.z' },
  })),
  question('a person declines', 'elicitation/create', FORM, { elicitation: {} }, () => ({ action: 'decline' })),
  question('a person cancels', 'elicitation/create', FORM, { elicitation: {} }, () => ({ action: 'cancel' })),
  question(
    'a person is sent to a URL',
    'elicitation/create',
    { mode: 'url', message: 'Please sign', url: 'https://example.com/s?a=b', elicitationId: 'e-1' },
    ELICITS,
    () => ({ action: 'accept' }),
    knowsModes,
  ),
  question(
    'a client that fails to ask says so',
    'elicitation/create',
    FORM,
    { elicitation: {} },
    () => {
      throw new Refused(-32099, 'no screen', { why: 'headless' })
    },
    isLegacy,
  ),
  question(
    'a model is asked, with preferences, system prompt, metadata, images and audio',
    'sampling/createMessage',
    SAMPLE,
    { sampling: { context: {} } },
    () => SAMPLED,
  ),
  question(
    'a model may use tools, and says so',
    'sampling/createMessage',
    {
      messages: [{ role: 'user', content: [{ type: 'text', text: 'use' }] }],
      maxTokens: 9,
      tools: [{ name: 't', description: 'd', inputSchema: { type: 'object' } }],
      toolChoice: { mode: 'required' },
    },
    { sampling: { tools: {} } },
    () => ({
      model: 'm',
      role: 'assistant',
      content: [{ type: 'tool_use', id: 'u1', name: 't', input: { a: 1 } }],
      stopReason: 'toolUse',
    }),
    knowsModes,
  ),
  question(
    'context of this server is asked for and kept',
    'sampling/createMessage',
    { messages: MESSAGES.slice(0, 1), maxTokens: 1, includeContext: 'thisServer' },
    { sampling: { context: {} } },
    () => SAMPLED,
  ),
  question(
    'a person refuses the model',
    'sampling/createMessage',
    SAMPLE,
    { sampling: {} },
    () => {
      throw new Refused(-1, 'User rejected sampling request', { by: 'person' })
    },
    isLegacy,
  ),
  question('roots are listed, with names and _meta', 'roots/list', {}, { roots: { listChanged: true } }, () => ({
    roots: [{ uri: 'file:///a', name: 'A', _meta: { 'com.example/r': 1 } }, { uri: 'file:///b c' }],
  })),
  question('no roots are no roots', 'roots/list', {}, { roots: {} }, () => ({ roots: [] })),
  question(
    'roots that fail, fail',
    'roots/list',
    {},
    { roots: {} },
    () => {
      throw new Refused(-32603, 'no disk', { disk: 'c' })
    },
    isLegacy,
  ),
  question(
    'a method of a vendor is asked of the client',
    'com.example/ask',
    { q: [1, { a: null }] },
    {},
    ({ params }) => ({ a: 2, params, _meta: { 'com.example/b': 1 } }),
    isLegacy,
  ),
  question(
    'a method of a vendor fails at the client',
    'com.example/ask',
    { q: 1 },
    {},
    () => {
      throw new Refused(-32055, 'vendor no', { x: 1 })
    },
    isLegacy,
  ),
  {
    name: 'a server does not ask for what the client did not declare, and fails with its own error',
    server: {
      capabilities: { tools: {} },
      serve: (server) =>
        tools({
          elicit: async (turn) => shown(seenEnd(await turn.request('elicitation/create', FORM))),
          sample: async (turn) => shown(seenEnd(await turn.request('sampling/createMessage', SAMPLE))),
          roots: async (turn) => shown(seenEnd(await turn.request('roots/list', {}))),
          vendor: async (turn) => shown(seenEnd(await turn.request('com.example/none', {}))),
        })(server),
    },
    on: isLegacy,
    play: async (scene) => [
      await call(scene, 'elicit'),
      await call(scene, 'sample'),
      await call(scene, 'roots'),
      await call(scene, 'vendor'),
    ],
  },
  {
    name: 'a modern client gets the server’s refusal for a capability that it did not declare',
    server: {
      capabilities: { tools: {} },
      serve: (server) => tools({ ask: asking(server, 'elicitation/create', { mode: 'form', ...FORM }, shown) })(server),
    },
    on: ({ era }) => era === 'modern',
    play: (scene) => call(scene, 'ask'),
  },
  {
    name: 'several questions in one call depend on each other',
    server: {
      capabilities: { tools: {} },
      serve: (server) =>
        tools({
          steps: async (turn) => {
            const answers: unknown[] = []
            for (const step of [1, 2, 3])
              answers.push(
                seenEnd(
                  await turn.request('elicitation/create', {
                    message: `step ${step}`,
                    requestedSchema: { type: 'object', properties: {} },
                  }),
                ),
              )
            return shown(answers)
          },
        })(server),
    },
    client: {
      capabilities: { elicitation: {} },
      answers: {
        'elicitation/create': ({ params }) =>
          params['message'] === 'step 3' ? { action: 'decline' } : { action: 'accept', content: {} },
      },
    },
    on: isLegacy,
    play: (scene) => call(scene, 'steps'),
  },
  {
    name: 'a modern call has several rounds with several questions and the server’s state',
    server: {
      capabilities: { tools: {} },
      serve: tools({
        rounds: ({ responses }) => {
          const ask = (message: string) => ({
            method: 'elicitation/create',
            params: { mode: 'form', message, requestedSchema: { type: 'object', properties: { v: { type: 'string' } } } },
          })
          if (responses === undefined)
            return {
              resultType: 'input_required',
              inputRequests: { a: ask('a'), b: { method: 'roots/list' } },
              requestState: 'first',
            }
          if ('c' in responses) return shown(responses)
          return { resultType: 'input_required', inputRequests: { c: ask(JSON.stringify(responses)) }, requestState: 'second' }
        },
      }),
    },
    client: {
      capabilities: { elicitation: { form: {} }, roots: {} },
      answers: {
        'elicitation/create': ({ params }) => ({ action: 'accept', content: { v: String(params['message']) } }),
        'roots/list': () => ({ roots: [{ uri: 'file:///r' }] }),
      },
    },
    on: ({ era }) => era === 'modern',
    play: (scene) => call(scene, 'rounds'),
  },
  {
    name: 'the server’s state and questions reach a client that handles the rounds itself',
    server: {
      capabilities: { tools: {}, prompts: {}, resources: {} },
      serve: (server) => {
        const ask: Handle = ({ responses }) =>
          responses === undefined
            ? {
                resultType: 'input_required',
                inputRequests: {
                  'key of/mine': {
                    method: 'elicitation/create',
                    params: { mode: 'form', message: 'm', requestedSchema: { type: 'object', properties: {} }, 'x-more': 1 },
                  },
                },
              }
            : { messages: [], contents: [], content: [] }
        tools({ ask })(server)
        server.handle('prompts/get', ask)
        server.handle('resources/read', ask)
      },
    },
    client: {
      capabilities: { elicitation: { form: {} } },
      answers: { 'elicitation/create': ({ params }) => ({ action: 'accept', content: { saw: JSON.stringify(params) } }) },
    },
    on: ({ era }) => era === 'modern',
    play: async (scene) => [
      await call(scene, 'ask'),
      seenEnd(await scene.client.request('prompts/get', { name: 'p' })),
      seenEnd(await scene.client.request('resources/read', { uri: 'a://b' })),
    ],
  },
  {
    name: 'a required visit of a URL gives an error with its elicitations, and the visit is notified under its id',
    server: {
      capabilities: { tools: {} },
      serve: (server) =>
        tools({
          need: () => {
            throw new Refused(-32042, 'Visit first', {
              elicitations: [{ mode: 'url', message: 'Sign in', url: 'https://example.com/in', elicitationId: 'id-1' }],
              more: 1,
            })
          },
          ask: async (turn) => {
            const answer = seenEnd(
              await turn.request('elicitation/create', {
                mode: 'url',
                message: 'Pay',
                url: 'https://example.com/pay',
                elicitationId: 'id-2',
              }),
            )
            return shown(answer)
          },
        })(server),
    },
    client: { capabilities: ELICITS, answers: { 'elicitation/create': () => ({ action: 'accept' }) } },
    on: (row) => isLegacy(row) && knowsModes(row),
    play: async (scene) => {
      const { client, servers } = scene
      const seen = [await call(scene, 'need'), await call(scene, 'ask')]
      for (const elicitationId of ['id-1', 'id-2']) {
        for (const server of servers)
          await server.notify('notifications/elicitation/complete', { elicitationId }).catch(() => undefined)
        await client.notices.until(({ params }) => params?.['elicitationId'] === elicitationId)
      }
      return [seen, client.notices.entries]
    },
  },
  {
    name: 'a server asks outside of any call and gets an answer',
    server: { capabilities: { tools: {} }, serve: tools({ only: () => text('x') }) },
    client: {
      capabilities: { roots: {}, sampling: {}, elicitation: {} },
      answers: {
        'roots/list': () => ({ roots: [{ uri: 'file:///r' }] }),
        'sampling/createMessage': () => SAMPLED,
        'elicitation/create': () => ({ action: 'decline' }),
      },
    },
    on: isLegacy,
    play: async (scene) => {
      await call(scene, 'only')
      const server = scene.servers.at(-1)
      if (server === undefined) throw new Error('no server')
      const seen: unknown[] = []
      for (const [method, params] of [
        ['roots/list', {}],
        ['elicitation/create', FORM],
        ['sampling/createMessage', SAMPLE],
        ['ping', {}],
      ] as const)
        seen.push(seenEnd(await server.request(method, params)))
      return seen
    },
  },
  {
    name: 'a client reports progress on a question, and the server withdraws a question',
    server: {
      capabilities: { tools: {} },
      serve: (server, { notes }) =>
        tools({
          ask: async (turn) => {
            const progress: unknown[] = []
            const onprogress = (params: JsonMap): void => {
              progress.push(params)
              notes.push('progress')
            }
            const end = await turn.request('com.example/slow', {}, { onprogress })
            return shown([seenEnd(end), progress])
          },
          drop: async (turn) => {
            const giveUp = new AbortController()
            const pending = turn.request('com.example/never', {}, { signal: giveUp.signal }).then(
              () => '',
              () => '',
            )
            await notes.until((note) => note === 'asked')
            giveUp.abort('no matter')
            await pending
            await notes.until((note) => note === 'taken back')
            return text('went on')
          },
        })(server),
    },
    on: isLegacy,
    play: async (scene) => {
      scene.client.handle('com.example/slow', async (turn) => {
        for (const progress of [1, 2]) await turn.progress({ progress, total: 2, message: 'm' })
        // SDKs drop progress that is read together with the answer.
        await scene.notes.when(() => (scene.notes.entries.length === 2 ? true : undefined))
        return { slow: true }
      })
      scene.client.handle('com.example/never', async ({ signal }) => {
        scene.notes.push('asked')
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
        scene.notes.push('taken back')
        return {}
      })
      return [await call(scene, 'ask'), await call(scene, 'drop'), scene.notes.entries]
    },
  },
]
