/**
 * What a server asks of a host, before the host is asked: may this host be asked that, and in which shape does it know the
 * question (BRIDGING 3.13–3.15)? Written once, for questions that come as requests and for those inside `input_required`.
 */
import { createHash } from 'node:crypto'
import type { Answer, Caller, Capabilities, Question } from '../rpc/call.ts'
import { cleanLabel, cleanMessage } from '../wire/label.ts'
import { Payload } from '../wire/payload.ts'
import { isAtLeast } from '../wire/revisions.ts'
import type { Revision } from '../wire/revisions.ts'

/** The methods by which a server asks ([2026-07-28 basic/patterns/mrtr]). */
export const QUESTION_METHODS: ReadonlySet<string> = new Set(['elicitation/create', 'sampling/createMessage', 'roots/list'])

/** Who asks, as far as a person must be told. */
export interface Asker {
  readonly key: string
  /** Put before the message; `undefined` with one server configured (DECISIONS 7). */
  readonly label: string | undefined
}

/** Why this host must not be asked that, as the answer the server gets; `undefined`: it may (B038, B059, B093, B097). */
export const refusalOf = ({ method, params }: Question, capabilities: Capabilities): Answer | undefined => {
  if (method === 'roots/list') return capabilities['roots'] === undefined ? refused(-32601, method) : undefined
  if (method === 'sampling/createMessage') {
    const sampling = capabilities['sampling'] as { tools?: unknown } | undefined
    if (sampling === undefined) return refused(-32601, method)
    return params?.has('tools') === true && sampling.tools === undefined ? refused(-32602, 'sampling with tools') : undefined
  }
  const elicitation = capabilities['elicitation'] as { form?: unknown; url?: unknown } | undefined
  if (elicitation === undefined) return refused(-32601, method)
  const mode = params?.text('mode') ?? 'form'
  const isDeclared =
    mode === 'url' ? elicitation.url !== undefined : elicitation.form !== undefined || elicitation.url === undefined
  return isDeclared ? undefined : refused(-32602, `elicitation mode "${mode}"`)
}

/** Why a host of this revision has no words for the question, as the answer the server gets (B094). */
export const beyondRevision = ({ method, params }: Question, revision: Revision): Answer | undefined => {
  if (method !== 'elicitation/create' || params === undefined || isAtLeast(revision, '2025-11-25')) return undefined
  const properties = params.object('requestedSchema')?.object('properties')
  const isMultiple = properties?.members.some(({ key }) => properties.object(key)?.text('type') === 'array')
  return isMultiple === true ? refused(-32602, 'elicitation with several choices') : undefined
}

/** The question in the shape this host knows, or the refusal where it has none. Edits the params it is given. */
export const wordQuestion = (question: Question, asker: Asker, host: Pick<Caller, 'revision' | 'session'>): Question | Answer => {
  const { params } = question
  if (params === undefined) return question
  const beyond = beyondRevision(question, host.revision)
  if (beyond !== undefined) return beyond
  params.object('_meta')?.delete('progressToken')
  params.delete('task')
  if (question.method === 'sampling/createMessage') wordSampling(params)
  if (question.method !== 'elicitation/create') return question
  wordMessage(params, asker)
  return params.text('mode') === 'url' ? wordUrl(question, params, asker, host) : wordForm(question, params, host.revision)
}

/** The host's "this server" is the whole gateway: context of others must not leak into a prompt (B095). */
const wordSampling = (params: Payload): void => {
  const context = params.text('includeContext')
  if (context !== undefined && context !== 'none') params.delete('includeContext')
}

/** A person must see who asks, and we have hidden it (B090, B261). */
const wordMessage = (params: Payload, { label }: Asker): void => {
  if (label === undefined) return
  params.set('message', JSON.stringify(`[${cleanLabel(label)}] ${cleanMessage(params.text('message') ?? '')}`))
}

/** URL mode: the id is ours in 2025-11-25, and gone since (B087). */
const wordUrl = (
  question: Question,
  params: Payload,
  asker: Asker,
  { revision, session }: Pick<Caller, 'revision' | 'session'>,
): Question => {
  if (session === undefined) params.delete('elicitationId')
  else if (isAtLeast(revision, '2025-11-25')) {
    const own = params.text('elicitationId') ?? params.text('url') ?? ''
    params.set('elicitationId', JSON.stringify(elicitationIdFor(session.id, asker.key, own)))
  }
  return question
}

/** The id under which one session knows an elicitation of one server: needs no table, and tells nothing. */
export const elicitationIdFor = (sessionId: string, server: string, original: string): string =>
  createHash('sha256').update(`${sessionId}\0${server}\0${original}`).digest('base64url').slice(0, 22)

/** 2025-06-18 knows no mode and no titled options (B094). */
const wordForm = (question: Question, params: Payload, revision: Revision): Question => {
  if (isAtLeast(revision, '2025-11-25')) {
    if (!params.has('mode')) params.set('mode', '"form"')
    return question
  }
  params.delete('mode')
  const properties = params.object('requestedSchema')?.object('properties')
  for (const { key } of properties?.members ?? []) {
    const property = properties?.value(key) as { oneOf?: { const: string; title?: string }[] } | undefined
    if (!Array.isArray(property?.oneOf)) continue
    const { oneOf, ...rest } = property
    const enumNames = oneOf.map((option) => option.title ?? option.const)
    properties?.set(key, JSON.stringify({ ...rest, enum: oneOf.map((option) => option.const), enumNames }))
  }
  return question
}

/** What stands for an answer that will not come: a dialog is cancelled, everything else refused. */
export const noAnswer = ({ method }: Question): Answer =>
  method === 'elicitation/create'
    ? { result: Payload.of({ action: 'cancel' }) }
    : { error: Payload.of({ code: method === 'sampling/createMessage' ? -1 : -32603, message: 'nobody answered' }) }

/** Whether a host's answer has the shape of its question ([schema 2026-07-28], InputResponse). */
export const isAnswerTo = ({ method }: Question, response: Payload): boolean => {
  if (method === 'elicitation/create') {
    const action = response.text('action')
    return action === 'decline' || action === 'cancel' || (action === 'accept' && isContent(response))
  }
  if (method === 'roots/list') return Array.isArray(response.value('roots'))
  return response.has('role') && response.has('content')
}

const isContent = (response: Payload): boolean => !response.has('content') || response.object('content') !== undefined

const refused = (code: number, what: string): Answer => ({
  error: Payload.of({ code, message: `${what} is not supported by the client` }),
})
