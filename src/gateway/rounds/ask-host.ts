/** Encodes a server's questions for the host, with the state that a modern host brings back (BRIDGING 3.2). */
import type { InputRequired, Outcome } from '../../rpc/call.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { RoutedCall } from '../routed-call.ts'
import type { Rounds } from './rounds.ts'
import { askerOf, encodeRequests } from './encode-requests.ts'

/** Throws `Failure` if the server asks for input that the host has not declared. */
export const askHost = (
  outcome: InputRequired,
  { call, received = call, route, downstream, view }: Omit<RoutedCall, 'resume'>,
  rounds: Rounds,
): Outcome => {
  const { fidelity, options } = downstream
  const refused = encodeRequests(
    outcome.result,
    askerOf(downstream, view, call.caller),
    call.caller,
    (deviation) => fidelity.note(deviation, call),
    ({ method }) => {
      throw new Failure('protocol', `asks for undeclared input: ${method}`)
    },
  )
  if (call.caller.session === undefined) return rounds.close(outcome, received, route)
  fidelity.note('askedByRequest', call)
  return { ...outcome, refused, totalMs: route.entry?.rule?.totalMs ?? options.timeouts.totalMs }
}
