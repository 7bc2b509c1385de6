/** Calls between fake hosts and fake servers of one process under the eyes of the referee of soak and chaos. */
import { endOf } from './arena/callers.ts'
import type { Handle } from './fake-downstream.ts'
import type { Host } from './fake-host.ts'
import type { End, Referee } from './referee.ts'

/** Answers a call with its nonce, after the referee has seen it; `then` may do something else instead, or before. */
export const refereed =
  (referee: Referee, then: Handle = () => undefined): Handle =>
  async (turn) => {
    const { nonce } = turn.params['arguments'] as { nonce: number }
    referee.executed(nonce)
    return (await then(turn)) ?? { content: [{ type: 'text', text: String(nonce) }] }
  }

/** One call with the id 1 as the host sees it end; the referee has been told when this resolves. */
export const play = async (host: Host, referee: Referee, name: string): Promise<End> => {
  const nonce = referee.begin()
  const { response } = host.begin('tools/call', { name, arguments: { nonce } }, { id: 1 })
  const end: End = await response.then(endOf, () => ({ type: 'broken' as const }))
  referee.ended(nonce, end)
  return end
}
