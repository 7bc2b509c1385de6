/**
 * A modern server asks for input by ending the call; a legacy host expects to be asked while its call is open. This layer
 * asks on the host's own stream and retries, round by round (BRIDGING 3.13, Example B).
 */
import { complete } from '../rpc/call.ts'
import type { Answer, Call, Handler, Layer, Outcome } from '../rpc/call.ts'
import { Failure } from '../wire/failure.ts'
import { Draft, Payload } from '../wire/payload.ts'

const MAX_ROUNDS = 16
/** A round that asks nothing is load-shedding: wait a little, with jitter. */
const SHED_PAUSE_MS = 500

/** What kept a host from answering, in a form that ends the call. */
class Declined extends Error {}

export const askLegacyHosts: Layer = (inner) => (call) => {
  const { ask } = call
  if (call.caller.session === undefined || ask === undefined) return inner(call)
  return inner(call).then((outcome) => (outcome.kind === 'input_required' ? goRounds(inner, call, ask, outcome) : outcome))
}

const goRounds = async (inner: Handler, call: Call, ask: NonNullable<Call['ask']>, first: Outcome): Promise<Outcome> => {
  let outcome = first
  for (let round = 0; outcome.kind === 'input_required'; round++) {
    if (round === MAX_ROUNDS) return ended(call, 'too many input rounds')
    try {
      outcome = await inner({ ...call, params: call.params.fresh(), resume: await answered(outcome, ask) })
    } catch (error) {
      if (error instanceof Declined) return ended(call, error.message)
      throw error
    }
  }
  return outcome
}

const answered = async (
  outcome: Outcome & { kind: 'input_required' },
  ask: NonNullable<Call['ask']>,
): Promise<NonNullable<Call['resume']>> => {
  const { result, state } = outcome
  const requests = result.object('inputRequests')
  if (requests === undefined) {
    await new Promise((resolve) => setTimeout(resolve, SHED_PAUSE_MS * (0.5 + Math.random())))
    return { state, responses: undefined }
  }
  const responses = new Draft()
  // Elicitations one after the other, as a person answers dialogs; the rest at once.
  let dialogs: Promise<unknown> = Promise.resolve()
  await Promise.all(
    requests.members.map(async ({ key }) => {
      const request = requests.object(key)
      const method = request?.text('method') ?? ''
      const put = async (): Promise<void> => {
        const answer = await ask({ method, params: request?.object('params') })
        responses.set(key, resultOf(method, answer).parts())
      }
      if (method !== 'elicitation/create') return put()
      const turn = dialogs.then(put)
      dialogs = turn.catch(() => undefined)
      return turn
    }),
  )
  return { state, responses: Payload.at(Buffer.concat(responses.parts())) }
}

/** B3: an elicitation that failed counts as cancelled; nothing stands for a refused sampling or roots request. */
const resultOf = (method: string, answer: Answer): Payload => {
  if ('result' in answer) return answer.result
  if (method === 'elicitation/create') return Payload.of({ action: 'cancel' })
  throw new Declined(answer.error.text('message') ?? 'the host declined')
}

const ended = (call: Call, why: string): Outcome => {
  if (call.method !== 'tools/call') throw new Failure('protocol', why)
  return complete(Payload.of({ content: [{ type: 'text', text: why }], isError: true }))
}
