/** Encodes questions of one server for hosts, and describes the server that asks. */
import type { View } from '../../catalog/view/view.ts'
import type { Downstream } from '../../downstream/downstream.ts'
import { refusalOf, encodeQuestion } from '../../era/questions.ts'
import type { Asker } from '../../era/questions.ts'
import { isBridge } from '../../rpc/call.ts'
import type { Answer, Caller, Question } from '../../rpc/call.ts'
import type { DeviationName } from '../../rpc/fidelity.ts'
import type { Payload } from '../../wire/message/payload.ts'

/** The server that asks this caller, with a label if there are several servers (DECISIONS 7). */
export const askerOf = (downstream: Downstream, view: View, caller: Pick<Caller, 'session' | 'scope'>): Asker => ({
  key: downstream.options.key,
  revision: downstream.eras.revisionFor(caller),
  isBridge: isBridge(caller.scope),
  label: view.catalog.sources.length > 1 ? downstream.options.displayName : undefined,
})

/**
 * Encodes the questions of `inputRequests` in place. Returns the refusals of questions that the host's revision has no form for, by key.
 * Questions that the host does not accept are removed and passed to `onRefusal` (B059).
 */
export const encodeRequests = (
  result: Payload,
  asker: Asker,
  caller: Caller,
  note: (deviation: DeviationName) => void,
  onRefusal: (question: Question) => void = () => undefined,
): ReadonlyMap<string, Answer> => {
  const requests = result.object('inputRequests')
  const refused = new Map<string, Answer>()
  for (const { key } of requests?.members ?? []) {
    const request = requests?.object(key)
    const question: Question = { method: request?.text('method') ?? '', params: request?.object('params') }
    if (refusalOf(question, caller.capabilities) !== undefined) {
      onRefusal(question)
      requests?.delete(key)
      continue
    }
    const encoded = encodeQuestion(question, asker, caller, note)
    if (!('method' in encoded)) refused.set(key, encoded)
  }
  return refused
}
