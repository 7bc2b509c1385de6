/** What the fake servers of a simulation do with a call: what its arguments say, told to its judges first. */
import type { FakeSpec, Handle } from '../fake-downstream.ts'
import type { JsonMap } from '../fakes/messages.ts'
import type { Turn } from '../fakes/turn.ts'
import type { ServerPlan, Work } from './plan.ts'
import type { Sleep } from './player.ts'

const BIG = 'x'.repeat(150_000)
const STEPS = 5

/** The message is the call's number, so that the host knows whose question it is. */
const questionOf = (nonce: number): JsonMap => ({
  message: String(nonce),
  requestedSchema: { type: 'object', properties: { sure: { type: 'boolean' } } },
})

/** Is told of a call that a server has got. */
export type Executed = (nonce: number, turn: Turn) => void

export const specOf = ({ kind, tools }: ServerPlan, executed: Executed, sleep: Sleep): FakeSpec => ({
  kind,
  tools: Array.from({ length: tools }, (_, at) => `t${at}`),
  on: { 'tools/call': serve(kind.startsWith('modern'), executed, sleep) },
})

const serve =
  (isModern: boolean, executed: Executed, sleep: Sleep): Handle =>
  async (turn: Turn) => {
    const { nonce, how, workMs } = turn.params['arguments'] as Work & { nonce: number }
    const isFirstRound = turn.params['inputResponses'] === undefined
    const capabilities = ((turn.params['_meta'] ?? {}) as JsonMap)['io.modelcontextprotocol/clientCapabilities'] as
      | JsonMap
      | undefined
    if (how === 'ask' && isModern && isFirstRound && capabilities?.['elicitation'] !== undefined)
      return {
        resultType: 'input_required',
        inputRequests: { sure: { method: 'elicitation/create', params: { mode: 'form', ...questionOf(nonce) } } },
        requestState: `state of ${nonce}`,
      }
    executed(nonce, turn)
    const answer = { content: [{ type: 'text', text: how === 'big' ? `${nonce} ${BIG}` : String(nonce) }] }
    if (how === 'never') return new Promise(() => undefined)
    if (how === 'ask' && !isModern && turn.connection.declared?.['elicitation'] !== undefined)
      await turn.ask('elicitation/create', questionOf(nonce))
    if (how === 'progress')
      for (let step = 1; step <= STEPS; step++) {
        turn.progress(step, { total: STEPS })
        await sleep(workMs / STEPS)
      }
    else if (workMs > 0) await sleep(workMs)
    if (how === 'chatty')
      for (let line = 0; line < 20; line++)
        turn.notify('notifications/message', { level: 'info', data: `line ${line} of ${nonce}` })
    return how === 'error' ? { ...answer, isError: true } : answer
  }
