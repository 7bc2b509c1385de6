/**
 * `-32042` of a 2025-11-25 server: a person must visit a URL before the call can work. Each host hears it in its own way
 * (BRIDGING 3.13, 7.3; B089).
 */
import { elicitationIdFor, wordQuestion } from '../era/questions.ts'
import type { Asker } from '../era/questions.ts'
import { complete, Refusal } from '../rpc/call.ts'
import type { Call, Caller, Outcome, ServerError } from '../rpc/call.ts'
import type { DeviationName } from '../rpc/fidelity.ts'
import { cleanMessage } from '../wire/label.ts'
import { Payload } from '../wire/payload.ts'

export const URL_REQUIRED = -32042

interface Elicitation {
  readonly elicitationId?: string
  readonly url: string
  readonly message: string
}

/** The outcome for this host, or the error it gets. `sentAway` is told each of the server's ids that a session will visit. */
export const urlRequired = (
  error: ServerError,
  call: Call,
  asker: Asker,
  note: (deviation: DeviationName) => void,
  sentAway: (original: string) => void,
): Outcome => {
  const data = error.error.value('data') as { elicitations?: Elicitation[] } | undefined
  const elicitations = Array.isArray(data?.elicitations) ? data.elicitations : []
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
    note('visitByRound')
    return asked(elicitations, call, asker)
  }
  for (const { elicitationId } of elicitations) if (elicitationId !== undefined) sentAway(elicitationId)
  const own = elicitations.map((elicitation) => ({
    ...elicitation,
    elicitationId: elicitationIdFor(session.id, asker.key, elicitation.elicitationId ?? elicitation.url),
  }))
  error.error.set('data', JSON.stringify({ ...data, elicitations: own }))
  throw error
}

const knowsUrls = ({ capabilities, session, revision }: Caller): boolean =>
  (capabilities['elicitation'] as { url?: unknown } | undefined)?.url !== undefined &&
  (session === undefined || revision >= '2025-11-25')

/** A modern host is asked, and tries again when it has the consent. */
const asked = (elicitations: readonly Elicitation[], call: Call, asker: Asker): Outcome => {
  const requests = elicitations.map(({ url, message }, at) => {
    const params = Payload.of({ mode: 'url', message, url })
    wordQuestion({ method: 'elicitation/create', params }, asker, call.caller, () => undefined)
    return [
      `url-${at + 1}`,
      { method: 'elicitation/create', params: JSON.parse(Buffer.concat(params.parts()).toString()) as object },
    ]
  })
  const result = Payload.of({ resultType: 'input_required', inputRequests: Object.fromEntries(requests) as object })
  return { kind: 'input_required', result, state: undefined }
}

/** Nobody can be sent there by the protocol: the model is told in words. */
const told = (call: Call, asker: Asker, elicitations: readonly Elicitation[]): Outcome => {
  const text = `${asker.label ?? asker.key}: ${elicitations.map(({ message }) => cleanMessage(message)).join('; ') || 'a URL must be visited first'}`
  if (call.method !== 'tools/call') throw new Refusal(-32603, text)
  return complete(Payload.of({ content: [{ type: 'text', text }], isError: true }))
}
