/** How calls end, in one word each. Pure, so that the dashboard uses it too. */

export type CallOutcome =
  | 'ok'
  | 'tool_error'
  | 'error'
  | 'failed'
  | 'refused'
  | 'cancelled'
  | 'input_required'
  | 'task'
  | 'streamed'

const GOOD: ReadonlySet<CallOutcome> = new Set(['ok', 'input_required', 'task', 'streamed'])

/** Whether an outcome is a problem that a person would look for. */
export const isErrorOutcome = (outcome: CallOutcome): boolean => !GOOD.has(outcome)
