/** What hosts are told of one server and its questions, wherever those stand: the label, the URIs, the shape of each question. */
import { uriMode } from '../../catalog/names/naming.ts'
import type { View } from '../../catalog/view/view.ts'
import type { Downstream } from '../../downstream/downstream.ts'
import { refusalOf, encodeQuestion } from '../../era/questions.ts'
import type { Asker } from '../../era/questions.ts'
import { isBridge } from '../../rpc/call.ts'
import type { Answer, Caller, Question } from '../../rpc/call.ts'
import type { DeviationName } from '../../rpc/fidelity.ts'
import type { Payload } from '../../wire/message/payload.ts'

export const isNamespaced = (downstream: Downstream, view: View): boolean =>
  uriMode(downstream.options, view.catalog.naming) === 'namespaced'

/** Whether any URI of its results can have to leave under another form: among several servers another may own it. */
export const mayRenameUris = (downstream: Downstream, view: View): boolean =>
  view.catalog.sources.length > 1 || isNamespaced(downstream, view)

/** The server that asks this caller: with several servers a person is told which (DECISIONS 7). */
export const askerOf = (downstream: Downstream, view: View, caller: Pick<Caller, 'session' | 'scope'>): Asker => ({
  key: downstream.options.key,
  revision: downstream.eras.revisionFor(caller),
  isBridge: isBridge(caller.scope),
  label: view.catalog.sources.length > 1 ? downstream.options.displayName : undefined,
})

/**
 * The questions of `inputRequests`, encoded as if they came as requests; what came out as an answer, because the host has no words
 * for the question, by its key. `onRefusal` is told of those that this host must not be asked: they are left out (B059).
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
