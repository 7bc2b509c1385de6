/**
 * Server requests for a host (elicitation, sampling, roots): whether the host accepts them, and their form in its revision (BRIDGING
 * 3.13–3.15). The same code serves requests of legacy servers and entries of `input_required`.
 */
import { errorAnswer, Refusal } from '../rpc/call.ts'
import type { Answer, Caller, Capabilities, Question } from '../rpc/call.ts'
import type { DeviationName } from '../rpc/fidelity.ts'
import { jsonObject, memberOf } from '../values/json-object.ts'
import { ownValue } from '../values/own-value.ts'
import { cleanLabel, cleanMessage } from '../wire/protocol/label.ts'
import { elementsAt, lastMember, membersAt } from '../wire/message/members.ts'
import { Draft, Payload } from '../wire/message/payload.ts'
import type { Parts } from '../wire/message/payload.ts'
import { isAtLeast } from '../wire/protocol/revisions.ts'
import type { Revision } from '../wire/protocol/revisions.ts'
import { encodeSampling } from './sampling.ts'
import { OPEN_BRACKET } from '../wire/json/tokens.ts'
import { digestOf } from '../values/digest.ts'

/** Methods of server requests ([2026-07-28 basic/patterns/mrtr]). */
export const QUESTION_METHODS: ReadonlySet<string> = new Set(['elicitation/create', 'sampling/createMessage', 'roots/list'])

const NULL = Buffer.from('null')
/** The default mode of an elicitation. */
const FORM = 'form'

/** The server that asks. */
export interface Asker {
  readonly key: string
  /** Revision of the server, once it is known. */
  readonly revision: Revision | undefined
  /** The server's name, shown before the message; `undefined` with one server configured (DECISIONS 7). */
  readonly label: string | undefined
  /** At a bridge requests to a peer of the same era are relayed unchanged (BRIDGING 3.21). */
  readonly isBridge?: boolean
}

/** A question without an answer so far, and the function that takes its answer. */
export interface PendingQuestion {
  readonly question: Question
  readonly answer: (answer: Answer) => void
}

/** The member `inputRequests` with these questions by their keys ([schema 2026-07-28], InputRequests). */
export const inputRequests = (questions: Iterable<readonly [key: string, Pick<PendingQuestion, 'question'>]>): Parts => {
  const requests = new Draft()
  for (const [key, { question }] of questions) {
    const request = new Draft()
    request.set('method', JSON.stringify(question.method))
    if (question.params !== undefined) request.set('params', question.params.parts())
    requests.set(key, request.parts())
  }
  return requests.parts()
}

/** The host refused a question, which ends the call; the message is for its model. */
export class Declined extends Error {}

/** The response to a question. A failed dialog counts as cancelled; a refused sampling or roots request throws `Declined`. */
export const responseOf = (method: string, answer: Answer): Payload => {
  if ('result' in answer) return answer.result
  if (method === 'elicitation/create') return Payload.of({ action: 'cancel' })
  throw new Declined(answer.error.text('message') ?? 'the host declined')
}

/** The host's answer under `key` in `inputResponses`, as a copy; throws `Refusal` if it does not have the shape of its question. */
export const answerIn = (responses: Payload | undefined, key: string, question: Question): Payload => {
  const response = responses?.object(key)
  if (response === undefined || !isAnswerTo(question, response))
    throw new Refusal(-32602, `inputResponses["${key}"] is not a valid answer to ${question.method}`)
  return response.fresh()
}

/** The refusal for the server if this host does not accept the question; `undefined`: it does (B038, B059, B093, B097). */
export const refusalOf = ({ method, params }: Question, capabilities: Capabilities): Answer | undefined => {
  if (!QUESTION_METHODS.has(method)) return refused(-32601, method)
  if (method === 'roots/list') return capabilities['roots'] === undefined ? refused(-32601, method) : undefined
  if (method === 'sampling/createMessage') {
    const { sampling } = capabilities
    if (sampling === undefined) return refused(-32601, method)
    return usesTools(params) && memberOf(sampling, 'tools') === undefined ? refused(-32602, 'sampling with tools') : undefined
  }
  const { elicitation } = capabilities
  if (elicitation === undefined) return refused(-32601, method)
  const mode = modeOf(params)
  // Without a mode it means forms only.
  const isDeclared =
    ownValue(jsonObject(elicitation) ?? {}, mode) !== undefined || (mode === FORM && memberOf(elicitation, 'url') === undefined)
  return isDeclared ? undefined : refused(-32602, `elicitation mode "${mode}"`)
}

/** The client capabilities that a question needs ([2026-07-28 basic/index], -32021). */
export const requiredFor = ({ method, params }: Question): Capabilities => {
  if (method === 'roots/list') return { roots: {} }
  if (method === 'sampling/createMessage') return { sampling: usesTools(params) ? { tools: {} } : {} }
  return { elicitation: { [modeOf(params)]: {} } }
}

/** The mode of an elicitation; absent, it is a form. */
const modeOf = (params: Payload | undefined): string => params?.text('mode') ?? FORM

const usesTools = (params: Payload | undefined): boolean =>
  params !== undefined && !(params.isAbsent('tools') && params.isAbsent('toolChoice'))

/** Whether the host accepts elicitations in URL mode. */
export const acceptsUrls = ({ capabilities, session, revision }: Caller): boolean =>
  memberOf(capabilities['elicitation'], 'url') !== undefined && (session === undefined || isAtLeast(revision, '2025-11-25'))

/** The question in the form of the host's revision, or a refusal if the revision has no form for it. Edits the given params. */
export const encodeQuestion = (
  question: Question,
  asker: Asker,
  host: Pick<Caller, 'revision' | 'session'>,
  note: (deviation: DeviationName) => void,
): Question | Answer => {
  const { params } = question
  if (params === undefined) return question
  params.object('_meta')?.delete('progressToken')
  params.delete('task')
  if (question.method === 'sampling/createMessage') {
    const reason = encodeSampling(params, host.revision, note, asker.isBridge)
    if (reason === undefined) return question
    note('samplingShape')
    return refused(-32602, reason)
  }
  if (question.method !== 'elicitation/create') return question
  encodeMessage(params, asker)
  const mode = modeOf(params)
  if (mode === 'url') encodeUrl(params, asker, host)
  else if (mode === FORM && !isSameEra(asker, host)) return encodeForm(question, params, host.revision, note)
  return question
}

/** Adds the server's name to the message, since the gateway hides the server from the host (B090, B261). */
const encodeMessage = (params: Payload, { label }: Asker): void => {
  if (label === undefined) return
  params.set('message', JSON.stringify(`[${cleanLabel(label)}] ${cleanMessage(params.text('message') ?? '')}`))
}

/** Whether host and server at a bridge are of the same era. */
const isSameEra = ({ isBridge, revision }: Asker, host: Pick<Caller, 'revision'>): boolean =>
  isBridge === true && (revision === undefined || isAtLeast(host.revision, revision))

/** URL mode: a session gets an id of the gateway, or at a bridge that of the server; the modern era has no id (B087, B277). */
const encodeUrl = (params: Payload, asker: Asker, { session }: Pick<Caller, 'session'>): void => {
  if (session === undefined) params.delete('elicitationId')
  else if (asker.isBridge !== true || params.isAbsent('elicitationId')) {
    const own = params.text('elicitationId') ?? params.text('url') ?? ''
    params.set('elicitationId', JSON.stringify(elicitationIdFor(session.id, asker.key, own)))
  }
}

/** Id of a server's elicitation in one session: a digest, so no table is needed and nothing is disclosed. */
export const elicitationIdFor = (sessionId: string, server: string, original: string): string =>
  digestOf(`${sessionId}\0${server}\0${original}`)

/** 2025-06-18 has no mode, no titled options and no multiple choice (B094). */
const encodeForm = (
  question: Question,
  params: Payload,
  revision: Revision,
  note: (deviation: DeviationName) => void,
): Question | Answer => {
  if (isAtLeast(revision, '2025-11-25')) {
    if (params.isAbsent('mode')) params.set('mode', '"form"')
    return question
  }
  params.delete('mode')
  const properties = params.object('requestedSchema')?.object('properties')
  for (const { key } of properties?.members ?? []) {
    const property = properties?.object(key)
    if (property?.text('type') === 'array') {
      note('severalChoices')
      return refused(-32602, 'elicitation with several choices')
    }
    const options = property?.member('oneOf')
    if (property === undefined || options === undefined || property.bytes[options.start] !== OPEN_BRACKET) continue
    note('questionForm')
    const names: Record<'enum' | 'enumNames', Buffer[]> = { enum: [], enumNames: [] }
    for (const { start } of elementsAt(property.bytes, options.start)) {
      const members = membersAt(property.bytes, start)
      const textOf = (name: string): Buffer | undefined => {
        const member = lastMember(members, name)
        return member && property.bytes.subarray(member.start, member.end)
      }
      const value = textOf('const') ?? NULL
      names.enum.push(value)
      names.enumNames.push(textOf('title') ?? value)
    }
    property.delete('oneOf')
    for (const [name, list] of Object.entries(names)) property.set(name, joinArray(list))
  }
  return question
}

const joinArray = (list: readonly Buffer[]): Parts => [
  Buffer.from('['),
  ...list.flatMap((value, at) => (at === 0 ? [value] : [Buffer.from(','), value])),
  Buffer.from(']'),
]

/** The answer that replaces a missing one: a dialog is cancelled, all others are refused. */
export const noAnswer = ({ method }: Question): Answer =>
  method === 'elicitation/create'
    ? { result: Payload.of({ action: 'cancel' }) }
    : errorAnswer(method === 'sampling/createMessage' ? -1 : -32603, 'not answered')

/** Whether a host's answer has the shape of its question ([schema 2026-07-28], InputResponse). */
export const isAnswerTo = ({ method }: Question, response: Payload): boolean => {
  if (method === 'elicitation/create') {
    const action = response.text('action')
    return action === 'decline' || action === 'cancel' || (action === 'accept' && isContent(response))
  }
  if (method === 'roots/list') return Array.isArray(response.value('roots'))
  return response.has('role') && response.has('content')
}

const isContent = (response: Payload): boolean => response.isAbsent('content') || response.object('content') !== undefined

const refused = (code: number, what: string): Answer => errorAnswer(code, `${what} is not supported by the client`)
