/**
 * `-32042` of a 2025-11-25 server: a person must visit a URL before the call can work. Each host is told in its own way
 * (BRIDGING 3.13, 7.3; B089), in the server's own bytes.
 */
import { elicitationIdFor } from '../../era/questions.ts'
import type { Asker } from '../../era/questions.ts'
import { complete, Refusal } from '../../rpc/call.ts'
import type { Call, Caller, Outcome, Resume, ServerError } from '../../rpc/call.ts'
import type { DeviationName } from '../../rpc/fidelity.ts'
import { memberOf } from '../../values/json-object.ts'
import { parseOwnJson } from '../../values/own-json.ts'
import { cleanMessage } from '../../wire/protocol/label.ts'
import { elementsAt } from '../../wire/message/members.ts'
import { Draft, join, Payload } from '../../wire/message/payload.ts'

export const URL_REQUIRED = -32042

/**
 * The outcome for this host, or the error it gets; requests of a round are not worded yet. `resume`: what this call brought, and
 * `sentAway` is told each of the server's ids that a session will visit.
 */
export const urlRequired = (
  error: ServerError,
  call: Call,
  resume: Resume | undefined,
  asker: Asker,
  note: (deviation: DeviationName) => void,
  sentAway: (original: string) => void,
): Outcome => {
  const elicitations = elicitationsIn(error)
  const { session } = call.caller
  if (!knowsUrls(call.caller)) {
    note('visitInWords')
    if (session === undefined)
      throw new Refusal(-32021, 'a URL must be visited first', {
        status: 400,
        data: { requiredCapabilities: { elicitation: { url: {} } } },
      })
    return told(call, asker, elicitations)
  }
  if (session === undefined) {
    const visited = visitedBefore(resume)
    // The host has answered for each of them: the same question once more would get the same answer.
    if (elicitations.every((each) => visited.includes(urlOf(each)))) throw error
    note('visitByRound')
    return asked(elicitations, visited)
  }
  for (const each of elicitations) {
    const id = each.text('elicitationId')
    if (id !== undefined) sentAway(id)
    const own = JSON.stringify(elicitationIdFor(session.id, asker.key, id ?? urlOf(each)))
    const member = each.member('elicitationId')
    const data = error.error.object('data')
    if (member !== undefined) data?.replace(member, own)
    else
      data?.replace({ start: each.start + 1, end: each.start + 1 }, `"elicitationId":${own}${each.members.length > 0 ? ',' : ''}`)
  }
  throw error
}

/** The entries that are objects, each within the bytes of the error. */
const elicitationsIn = ({ error }: ServerError): readonly Payload[] => {
  const list = error.object('data')?.member('elicitations')
  const entries = list === undefined ? [] : elementsAt(error.bytes, list.start)
  return entries.filter(({ start }) => error.bytes[start] === OPEN_BRACE).map(({ start }) => Payload.at(error.bytes, start))
}

/** The server's ids of what a person must visit. */
export const visitIdsIn = (error: ServerError): readonly string[] =>
  elicitationsIn(error).flatMap((each) => each.text('elicitationId') ?? [])

const OPEN_BRACE = 0x7b
const urlOf = (elicitation: Payload): string => elicitation.text('url') ?? ''

/** The URLs that the host was asked to visit in the rounds before, if it has answered. */
const visitedBefore = (resume: Resume | undefined): readonly string[] =>
  resume?.maker === 'visit' && resume.responses !== undefined ? parseOwnJson(resume.state ?? '[]') : []

const knowsUrls = ({ capabilities, session, revision }: Caller): boolean =>
  memberOf(capabilities['elicitation'], 'url') !== undefined && (session === undefined || revision >= '2025-11-25')

/** What a retry brings to the server: the state of such a round is ours alone. */
export const withoutVisits = (resume: Resume | undefined): Resume | undefined =>
  resume?.maker === 'visit' ? { state: undefined, responses: resume.responses } : resume

/** A modern host is asked, and tries again when it has the consent. */
const asked = (elicitations: readonly Payload[], visited: readonly string[]): Outcome => {
  const requests = new Draft()
  for (const [at, params] of elicitations.entries()) {
    if (!params.has('mode')) params.set('mode', '"url"')
    const request = new Draft()
    request.set('method', '"elicitation/create"')
    request.set('params', params.parts())
    requests.set(`url-${at + 1}`, request.parts())
  }
  const result = new Draft()
  result.set('resultType', '"input_required"')
  result.set('inputRequests', requests.parts())
  const state = JSON.stringify([...new Set([...visited, ...elicitations.map(urlOf)])])
  return { kind: 'input_required', result: Payload.at(join(result.parts())), state, maker: 'visit' }
}

/** The protocol has no way to send the person there: the model is told in words. */
const told = (call: Call, asker: Asker, elicitations: readonly Payload[]): Outcome => {
  const words = elicitations.map((each) => cleanMessage(each.text('message') ?? '')).join('; ')
  const text = `${asker.label ?? asker.key}: ${words || 'a URL must be visited first'}`
  if (call.method !== 'tools/call') throw new Refusal(-32603, text)
  return complete(Payload.of({ content: [{ type: 'text', text }], isError: true }))
}
