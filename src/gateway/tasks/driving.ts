/**
 * Follows a task for a host that cannot: polls it, asks the host the task's questions, and returns the outcome of the call. Uses the
 * methods of the tasks extension, which the link of a legacy server translates (BRIDGING 3.17).
 */
import { complete, ServerError, toolText } from '../../rpc/call.ts'
import type { Call, Handler, Outcome, Question } from '../../rpc/call.ts'
import { Declined, responseOf } from '../../era/questions.ts'
import { Cancellation, pauseFor } from '../../rpc/cancellation.ts'
import type { CancelSignal } from '../../rpc/cancellation.ts'
import { LONGEST_TIMER_MS } from '../../time/pause.ts'
import { isInteger } from '../../values/json-object.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { FailureKind } from '../../wire/message/failure.ts'
import { Draft, join, Payload } from '../../wire/message/payload.ts'
import { MODERN } from '../../wire/protocol/revisions.ts'
import { isTerminal, withTasks } from '../../wire/protocol/extensions.ts'

const DEFAULT_POLL_MS = 1_000
const MIN_POLL_MS = 20
/** Time limit of `tasks/cancel`. */
const CANCEL_MS = 60_000
/** Failed polls in a row after which the call fails. */
const MAX_LOST_POLLS = 5
/** Failures after which the task is not polled again. */
const FINAL: ReadonlySet<FailureKind> = new Set(['cancelled', 'shutting_down'])

/** The outcome of the call that became the task `created`. Cancels it when the host cancels the call, and after `maxMs`. */
export const driveTask = async (created: Payload, call: Call, handle: Handler, maxMs: number): Promise<Outcome> => {
  const id = created.text('taskId') ?? ''
  const stop = new Cancellation()
  const request = (method: string, responses?: Payload, signal: CancelSignal = stop): Promise<Outcome> =>
    handle({
      ...call,
      method,
      target: id,
      params: Payload.of({ taskId: id }),
      caller: { ...call.caller, session: undefined, revision: MODERN, capabilities: withTasks(call.caller.capabilities) },
      resume: responses && { state: undefined, responses },
      progressToken: undefined,
      paramHeaders: [],
      unknownHeaders: {},
      signal,
    })
  const giveUp = (): void => stop.abort()
  const timer = setTimeout(giveUp, Math.min(maxMs, LONGEST_TIMER_MS))
  if (call.signal.aborted) giveUp()
  else call.signal.addEventListener('abort', giveUp)
  const answered = new Set<string>()
  const notifyStatus = statusNotifier(call)
  const read = async (): Promise<Payload> => Payload.at(join((await request('tasks/get')).result.parts()))
  let task = created
  let lost = 0
  try {
    // A task that has ended when it is created has its outcome only in `tasks/get`.
    if (isTerminal(created.text('status'))) task = await read()
    while (!isTerminal(task.text('status'))) {
      notifyStatus(task.text('statusMessage'))
      const responses = await answersTo(task, call, answered, stop)
      if (responses !== undefined) await request('tasks/update', responses)
      await pauseFor(pollMs(task), stop)
      try {
        task = await read()
        lost = 0
      } catch (error) {
        if (!(error instanceof Failure) || FINAL.has(error.kind) || ++lost >= MAX_LOST_POLLS) throw error
      }
    }
    return outcomeOf(task)
  } catch (error) {
    if (!isTerminal(task.text('status')))
      await request('tasks/cancel', undefined, AbortSignal.timeout(CANCEL_MS)).catch(() => undefined)
    if (error instanceof Declined) return toolText(error.message, true)
    const isLate = stop.aborted && !call.signal.aborted
    throw isLate ? new Failure('timeout', 'the task took too long', { amount: Math.round(maxMs / 1000) }) : error
  } finally {
    clearTimeout(timer)
    call.signal.removeEventListener('abort', giveUp)
  }
}

const outcomeOf = (task: Payload): Outcome => {
  const status = task.text('status')
  if (status === 'cancelled') return toolText('the task was cancelled', true)
  const result = task.object('result')
  if (status === 'completed' && result !== undefined) return complete(Payload.at(join(result.parts())))
  const error = task.object('error')
  const code = error?.value('code')
  const message = error?.text('message')
  if (status !== 'failed' || error === undefined || !isInteger(code) || message === undefined)
    throw new Failure('bad_response', `a ${status} task without its ${status === 'failed' ? 'error' : 'result'}`)
  throw new ServerError(code, message, Payload.at(join(error.parts())))
}

/** Answers to the questions of the task that were not answered yet, asked one after the other, as a person answers dialogs. */
const answersTo = async (task: Payload, call: Call, answered: Set<string>, stop: CancelSignal): Promise<Payload | undefined> => {
  const requests = task.object('inputRequests')
  const asked = (requests?.members ?? []).filter(({ key }) => !answered.has(key))
  if (requests === undefined || asked.length === 0 || call.ask === undefined) return undefined
  const responses = new Draft()
  for (const { key } of asked) {
    const request = requests.object(key)
    const question: Question = { method: request?.text('method') ?? '', params: request?.object('params') }
    responses.set(key, responseOf(question.method, await unless(stop, call.ask(question))).parts())
    answered.add(key)
  }
  return Payload.at(join(responses.parts()))
}

/** Sends new status messages as progress, if the host has requested progress. */
const statusNotifier = (call: Call): ((message: string | undefined) => void) => {
  let last: string | undefined
  let progress = 0
  return (message) => {
    if (call.progressToken === undefined || message === undefined || message === last) return
    last = message
    call.notify('notifications/progress', Payload.of({ progressToken: 0, progress: ++progress, message }))
  }
}

/** Delay before the next poll: at least the server's poll interval (B181), with jitter. */
const pollMs = (task: Payload): number => {
  const asked = task.value('pollIntervalMs')
  const ms = typeof asked === 'number' ? Math.max(asked, MIN_POLL_MS) : DEFAULT_POLL_MS
  return ms * (1 + Math.random() / 5)
}

/** Rejects as soon as `stop` is aborted. */
const unless = <T>(stop: CancelSignal, work: Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const onAbort = (): void => reject(new Failure('cancelled', 'cancelled by the host'))
    if (stop.aborted) return onAbort()
    stop.addEventListener('abort', onAbort)
    work.then(resolve, reject).finally(() => stop.removeEventListener('abort', onAbort))
  })
