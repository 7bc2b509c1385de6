/** Error -32042 of a 2025-11-25 server, a URL to visit before the call, in the form of each host (BRIDGING 3.13, 7.3; B089). */
import { acceptsUrls, elicitationIdFor, inputRequests } from '../../era/questions.ts'
import type { Asker } from '../../era/questions.ts'
import type { RoutedCall } from '../routed-call.ts'
import { askerOf } from './encode-requests.ts'
import { Refusal, toolText } from '../../rpc/call.ts'
import type { Call, Outcome, Resume, ServerError } from '../../rpc/call.ts'
import { parseOwnJson } from '../../values/own-json.ts'
import { PARAMS_KEYS } from '../../wire/protocol/deciding-keys.ts'
import { cleanMessage } from '../../wire/protocol/label.ts'
import { METHODS } from '../../wire/protocol/methods.ts'
import { elementsAt } from '../../wire/message/members.ts'
import { Draft, join, Payload } from '../../wire/message/payload.ts'
import { OPEN_BRACE } from '../../wire/json/tokens.ts'

export const URL_REQUIRED = -32042

/** Returns the outcome for this host, or throws its error. */
export const urlRequired = (error: ServerError, { call, resume, downstream, view }: RoutedCall): Outcome => {
  const asker = askerOf(downstream, view, call.caller)
  const { session } = call.caller
  // A modern host can be asked only by a round, which other methods do not have (B057).
  if (session === undefined && METHODS[call.method]?.mayAskInput !== true) throw error
  const elicitations = elicitationsIn(error)
  if (!acceptsUrls(call.caller)) {
    downstream.fidelity.note('visitInWords', call)
    if (session === undefined)
      throw new Refusal(-32021, 'a URL must be visited first', {
        status: 400,
        data: { requiredCapabilities: { elicitation: { url: {} } } },
      })
    return asText(call, asker, elicitations)
  }
  if (session === undefined) {
    const visited = visitedBefore(resume)
    // The host has answered for each of these URLs: asking again would yield the same answers.
    if (elicitations.every((each) => visited.includes(urlOf(each)))) throw error
    downstream.fidelity.note('visitByRound', call)
    return asked(elicitations, visited)
  }
  for (const each of elicitations) {
    const id = each.text('elicitationId')
    if (id !== undefined) downstream.sessions.sentAway(id, session)
    const own = JSON.stringify(elicitationIdFor(session.id, asker.key, id ?? urlOf(each)))
    const member = each.member('elicitationId')
    const data = error.error.object('data')
    if (member !== undefined) data?.replace(member, own)
    else
      data?.replace({ start: each.start + 1, end: each.start + 1 }, `"elicitationId":${own}${each.members.length > 0 ? ',' : ''}`)
  }
  throw error
}

/** The entries that are objects, each within the bytes of the error. Throws `ScanError` for one with an ambiguous key (B270). */
const elicitationsIn = ({ error }: ServerError): readonly Payload[] => {
  const list = error.object('data')?.member('elicitations')
  const entries = list === undefined ? [] : elementsAt(error.bytes, list.start)
  return entries
    .filter(({ start }) => error.bytes[start] === OPEN_BRACE)
    .map(({ start }) => Payload.at(error.bytes, start, PARAMS_KEYS))
}

/** The server's ids of the elicitations. */
export const visitIdsIn = (error: ServerError): readonly string[] =>
  elicitationsIn(error).flatMap((each) => each.text('elicitationId') ?? [])

const urlOf = (elicitation: Payload): string => elicitation.text('url') ?? ''

/** The URLs of earlier rounds that the host has answered. */
const visitedBefore = (resume: Resume | undefined): readonly string[] =>
  resume?.maker === 'visit' && resume.responses !== undefined ? parseOwnJson(resume.state ?? '[]') : []

/** The resumption for the server: without the state of such a round, which belongs to the gateway. */
export const withoutVisits = (resume: Resume | undefined): Resume | undefined =>
  resume?.maker === 'visit' ? { state: undefined, responses: resume.responses } : resume

/** Asks a modern host, which tries again with the consent. */
const asked = (elicitations: readonly Payload[], visited: readonly string[]): Outcome => {
  for (const params of elicitations) if (!params.has('mode')) params.set('mode', '"url"')
  const questions = elicitations.map(
    (params, at) => [`url-${at + 1}`, { question: { method: 'elicitation/create', params } }] as const,
  )
  const result = new Draft()
  result.set('resultType', '"input_required"')
  result.set('inputRequests', inputRequests(questions))
  const state = JSON.stringify([...new Set([...visited, ...elicitations.map(urlOf)])])
  return { kind: 'input_required', result: Payload.at(join(result.parts())), state, maker: 'visit' }
}

/** The text for a model, if the host's revision has no URL mode. */
const asText = (call: Call, asker: Asker, elicitations: readonly Payload[]): Outcome => {
  const messages = elicitations.map((each) => cleanMessage(each.text('message') ?? '')).join('; ')
  const text = `${asker.label ?? asker.key}: ${messages || 'a URL must be visited first'}`
  if (call.method !== 'tools/call') throw new Refusal(-32603, text)
  return toolText(text, true)
}
