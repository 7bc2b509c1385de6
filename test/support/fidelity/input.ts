/** What servers ask of hosts in the middle of a call. */
import { isModern, since } from './cells.ts'
import type { Cell, Revision } from './cells.ts'
import { callTool, crosses, exposed, impossible, judge, projected, same, textOf } from './probing.ts'
import type { Expected, Feature, Pair, Verdict } from './probing.ts'
import { QUESTIONS, SAID } from './server.ts'
import type { JsonMap, Message } from '../fakes/messages.ts'

const ANSWERS: Readonly<Record<string, JsonMap>> = {
  'elicitation/create': { action: 'accept', content: { c: 'a' } },
  'sampling/createMessage': { role: 'assistant', model: 'm', content: { type: 'text', text: 's' } },
  'roots/list': { roots: [{ uri: 'file:///root' }] },
}

/** The answers that every host gives. */
export const answerAll = ({ host, asked }: Pick<Pair['host'], 'host' | 'asked'>): void => {
  for (const [method, answer] of Object.entries(ANSWERS))
    host.answer(method, (params) => {
      asked.push({ jsonrpc: '2.0', method, params })
      return answer
    })
}

interface Asked {
  readonly result: JsonMap
  readonly form: 'request' | 'round'
  readonly questions: readonly Message[]
}

/** Calls, answers what is asked in the form in which it is asked, and calls again where that is the form. */
const callAsked = async (pair: Pair, name: string): Promise<Asked> => {
  const { asked } = pair.host
  asked.length = 0
  const first = await callTool(pair, name)
  if (first['resultType'] !== 'input_required') return { result: first, form: 'request', questions: [...asked] }
  const requests = first['inputRequests'] as Record<string, Message>
  const entries = Object.entries(requests).map(([key, { method = '' }]) => [key, ANSWERS[method]])
  const { requestState } = first
  const again = { ...(requestState !== undefined && { requestState }), inputResponses: Object.fromEntries(entries) as object }
  return { result: await callTool(pair, name, again), form: 'round', questions: Object.values(requests) }
}

const ACROSS = {
  toRequest: projected(
    'The server ends the call with `input_required`; the host is asked by requests on the stream of its call.',
    'B082',
    'B083',
  ),
  toRound: projected(
    'The server asks during the call; the host’s request ends with `input_required`, and the call is parked.',
    'B073',
  ),
}
const acrossEras = (host: Cell, server: Cell): Expected =>
  !crosses(host, server) ? 'full' : isModern(host) ? ACROSS.toRound : ACROSS.toRequest

/** One kind of question, by the first revisions that know it; `older`: what becomes of it for hosts before that. */
const question = (
  name: string,
  tool: string,
  what: string,
  first: { readonly server: Revision; readonly host: Revision },
  older: (host: Cell) => Expected,
): Feature => ({
  name,
  what,
  expected: (host, server) =>
    !since(server, first.server) ? 'none' : since(host, first.host) ? acrossEras(host, server) : older(host),
  probe: async (pair) => {
    const { result, form, questions } = await callAsked(pair, tool)
    return verdictOf(pair, tool, textOf(result), form, questions)
  },
})

const NO_FORM = impossible(
  'The host cannot declare elicitation, so the capability is not declared to the server, and its requests are refused.',
  'B037',
  'B038',
)
const NO_URL = impossible('The host’s revision has no URL mode, so it is not declared to the server.', 'B037', 'B093')
const NO_SEVERAL = impossible(
  'A 2025-06-18 form has no multiple choice: the host is not asked, and the server gets a refusal or `cancel`.',
  'B094',
)
const NO_SAMPLING_TOOLS = impossible(
  'The host’s revision has no tools in sampling, so they are not declared to the server.',
  'B037',
  'B097',
)
const TITLES = projected('2025-06-18 writes titled choices as `enum` and `enumNames`.', 'B094')

/** Hosts of 2025-06-18 know forms; before that there is no elicitation at all. */
const formOr =
  (less: Expected) =>
  (host: Cell): Expected =>
    since(host, '2025-06-18') ? less : NO_FORM
const never = (): Expected => 'full'

const verdictOf = (pair: Pair, tool: string, said: string, form: Asked['form'], questions: readonly Message[]): Verdict => {
  const { method, params } = QUESTIONS[tool]!
  if (questions.length === 0 && (said === 'undeclared' || said.startsWith('refused') || said.includes('"cancel"')))
    return 'impossible'
  const [asked] = questions
  if (asked?.method !== method || said !== JSON.stringify(ANSWERS[method]))
    throw new Error(`asked ${JSON.stringify(asked)}, got ${said}`)
  const isSameForm = form === (isModern(pair.server) ? 'round' : 'request')
  const shape = (question: JsonMap): unknown => [
    question['requestedSchema'],
    question['messages'],
    question['tools'],
    question['url'],
  ]
  const isSameShape = same(shape(asked.params ?? {}), shape(params))
  const isEnum = JSON.stringify(asked.params).includes('"enumNames":["A"]')
  return judge(asked, isSameForm && isSameShape, isSameShape || isEnum)
}

const visits: Feature = {
  name: 'URLs to visit first (-32042)',
  what: 'The server fails a call until a person has visited a URL (only in 2025-11-25).',
  expected: (host, server) => {
    if (server.revision !== '2025-11-25') return 'none'
    if (isModern(host))
      return projected('2026-07-28 has no such error: the host is asked by `input_required` to open the URL.', 'B089')
    return since(host, '2025-11-25')
      ? 'full'
      : impossible('The host’s revision has neither this error nor URL mode: its model gets a text without the URL.', '3.13')
  },
  probe: async (pair) => {
    const { response } = pair.host.host.begin('tools/call', { name: exposed(pair, 'visit') })
    const { result, error } = await response
    if (result?.['isError'] === true && textOf(result).includes(SAID.visit.message)) return 'impossible'
    const [elicitation] = (error?.data?.['elicitations'] ?? []) as JsonMap[]
    return judge(
      { result, error },
      error?.code === -32042 && elicitation?.['url'] === SAID.visit.url,
      JSON.stringify(result?.['inputRequests'] ?? '').includes(SAID.visit.url),
    )
  },
}

const rootsNews: Feature = {
  name: 'changed roots',
  what: 'The host announces that its roots have changed.',
  expected: (host, server) =>
    isModern(host)
      ? 'none'
      : isModern(server)
        ? impossible('2026-07-28 has no such notification: a server asks for roots in each call.', '3.15')
        : 'full',
  probe: async (pair) => {
    const { host, server } = pair
    const key = `${host.key} ${server.key}`
    const { connection } = await touched(pair, key)
    host.host.notify('notifications/roots/list_changed')
    if (isModern(server)) {
      await touched(pair, `${key} again`)
      return server.fake.all('notifications/roots/list_changed').length === 0 ? 'impossible' : 'full'
    }
    await server.fake.until('notifications/roots/list_changed', (turn) => turn.connection === connection)
    return 'full'
  },
}

/** A call of this pair as the server saw it. */
const touched = async (pair: Pair, mark: string) => {
  await callTool(pair, 'echo', { arguments: { mark } })
  return pair.server.fake.until('tools/call', ({ params }) => (params['arguments'] as JsonMap | undefined)?.['mark'] === mark)
}

const ELICITS: Revision = '2025-06-18'
const LATER: Revision = '2025-11-25'

export const inputFeatures: readonly Feature[] = [
  question(
    'elicitation: forms',
    'form',
    'The server asks for a form to be filled in.',
    { server: ELICITS, host: ELICITS },
    formOr('full'),
  ),
  question(
    'elicitation: titled choices',
    'titled',
    'The form has a choice with titles.',
    { server: LATER, host: LATER },
    formOr(TITLES),
  ),
  question(
    'elicitation: choices of several',
    'several',
    'The form has a multiple choice.',
    { server: LATER, host: LATER },
    formOr(NO_SEVERAL),
  ),
  question('elicitation: URLs', 'url', 'The server asks for a visit to a URL.', { server: LATER, host: LATER }, formOr(NO_URL)),
  visits,
  question('sampling', 'sample', 'The server asks the host’s model.', { server: '2024-11-05', host: '2024-11-05' }, never),
  question(
    'sampling with tools',
    'equip',
    'The server’s request gives tools to the model.',
    { server: LATER, host: LATER },
    () => NO_SAMPLING_TOOLS,
  ),
  question(
    'roots',
    'roots',
    'The server asks for the host’s roots during a call.',
    { server: '2024-11-05', host: '2024-11-05' },
    never,
  ),
  rootsNews,
]
