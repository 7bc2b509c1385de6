/**
 * Input rounds of modern servers for legacy hosts. A modern server requests input by ending the call with `input_required`; a legacy
 * host answers requests while its call is open. This layer sends the requests on the stream of the call and repeats the call with the
 * answers, round by round (BRIDGING 3.13, Example B).
 */
import { toolText } from '../../rpc/call.ts'
import type { Call, Handler, HostSession, InputRequired, Layer, Outcome, Question, Resume } from '../../rpc/call.ts'
import { Cancellation, pauseFor } from '../../rpc/cancellation.ts'
import type { CancelSignal } from '../../rpc/cancellation.ts'
import { backoffMs } from '../../time/backoff.ts'
import type { BackoffRange } from '../../time/backoff.ts'
import { LONGEST_TIMER_MS } from '../../time/pause.ts'
import { Failure } from '../../wire/message/failure.ts'
import { Declined, responseOf } from '../questions.ts'
import { Draft, join, Payload } from '../../wire/message/payload.ts'

const MAX_ROUNDS = 16
/** Pause before the retry, with jitter, after a round without questions: the server sheds load. */
const SHED_PAUSE_MS = 500
/** Pauses between retries while the person visits a URL: the answer of the host reports consent, not completion (rule 4). */
const VISIT_PAUSES: BackoffRange = { firstMs: 2_000, maxMs: 30_000 }

export const askLegacyHosts: Layer = (inner) => (call) => {
  const { ask } = call
  const { session } = call.caller
  if (session === undefined || ask === undefined) return inner(call)
  return inner(call).then((outcome) =>
    outcome.kind === 'input_required'
      ? withinTime(outcome, call, (bounded) => goRounds(inner, bounded, { ask, session }, outcome))
      : outcome,
  )
}

/** Cancels the call to the server when all rounds together exceed the call's total time (B085). */
const withinTime = async (
  { totalMs = LONGEST_TIMER_MS }: InputRequired,
  call: Call,
  go: (call: Call) => Promise<Outcome>,
): Promise<Outcome> => {
  const stop = new Cancellation()
  const onAbort = (): void => stop.abort(call.signal.notice)
  call.signal.addEventListener('abort', onAbort)
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  const onLate = (): void => {
    resolve(ended(call, 'the input rounds took too long (timeouts.total)'))
    stop.abort()
  }
  const timer = setTimeout(onLate, Math.min(totalMs, LONGEST_TIMER_MS))
  try {
    return await Promise.race([promise, go({ ...call, signal: stop.signal })])
  } finally {
    clearTimeout(timer)
    call.signal.removeEventListener('abort', onAbort)
  }
}

interface Host {
  readonly ask: NonNullable<Call['ask']>
  readonly session: HostSession
}

const goRounds = async (inner: Handler, call: Call, { ask, session }: Host, first: Outcome): Promise<Outcome> => {
  const visits = new Visits()
  let outcome = first
  for (let round = 0; outcome.kind === 'input_required'; round++) {
    if (round - visits.waits >= MAX_ROUNDS) return ended(call, 'too many input rounds')
    try {
      const resume = await nextRound(outcome, ask, visits, call.signal)
      outcome = await inner({ ...call, params: call.params.fresh(), resume })
    } catch (error) {
      if (error instanceof Declined) return ended(call, error.message)
      throw error
    }
  }
  visits.notifyComplete(session)
  return outcome
}

/** URLs that the person has agreed to visit; repeated questions get the same answer without asking again (B086). */
class Visits {
  readonly #accepted = new Map<string, { readonly elicitationId: Buffer | undefined; readonly answer: Payload }>()
  /** Rounds that only waited for a visit. */
  waits = 0

  answerTo({ params }: Question): Payload | undefined {
    return this.#accepted.get(params?.text('url') ?? '')?.answer
  }

  remember({ params }: Question, answer: Payload): void {
    const url = params?.text('url')
    if (url !== undefined && answer.text('action') === 'accept')
      this.#accepted.set(url, { elicitationId: params?.final('elicitationId'), answer })
  }

  async pause(signal: CancelSignal): Promise<void> {
    await pauseFor(
      backoffMs(this.waits++, VISIT_PAUSES, () => 1),
      signal,
    )
  }

  /** Notifies the host that the visits are complete (rule 4). */
  notifyComplete(session: HostSession): void {
    for (const { elicitationId } of this.#accepted.values())
      if (elicitationId !== undefined)
        session.notify(
          'notifications/elicitation/complete',
          Payload.at(Buffer.from(`{"elicitationId":${elicitationId.toString()}}`)),
        )
  }
}

const nextRound = async (
  { result, state, maker, refused }: InputRequired,
  ask: NonNullable<Call['ask']>,
  visits: Visits,
  signal: CancelSignal,
): Promise<Resume> => {
  const requests = result.object('inputRequests')
  if (requests === undefined || requests.members.length === 0) {
    await pauseFor(SHED_PAUSE_MS * (0.5 + Math.random()), signal)
    return { state, maker, responses: undefined }
  }
  const answers = new Map<string, Payload>()
  // Elicitations one after the other, since a person answers dialogs; all others at once.
  let dialogs: Promise<unknown> = Promise.resolve()
  let isNew = false
  let isOver = false
  await Promise.all(
    requests.members.map(async ({ key }) => {
      const request = requests.object(key)
      const question: Question = { method: request?.text('method') ?? '', params: request?.object('params') }
      const put = async (): Promise<void> => {
        // A dialog that waited for its turn is not shown after the end of the call.
        if (isOver || signal.aborted) throw new Failure('cancelled', 'the call has ended')
        const known = visits.answerTo(question)
        isNew ||= known === undefined
        const answer = known ?? responseOf(question.method, refused?.get(key) ?? (await ask(question)))
        visits.remember(question, answer)
        answers.set(key, answer)
      }
      if (question.method !== 'elicitation/create') return put()
      const turn = dialogs.then(put)
      dialogs = turn.catch(() => undefined)
      return turn
    }),
  ).finally(() => (isOver = true))
  if (!isNew) await visits.pause(signal)
  const responses = new Draft()
  for (const { key } of requests.members) responses.set(key, answers.get(key)?.parts() ?? '{}')
  return { state, maker, responses: Payload.at(join(responses.parts())) }
}

/** Async: a failure thrown in the callback of a timer would end the process (F-31). */
const ended = async (call: Call, why: string): Promise<Outcome> => {
  if (call.method !== 'tools/call') throw new Failure('protocol', why)
  return toolText(why, true)
}
