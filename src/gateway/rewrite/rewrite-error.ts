/** Rewrites a server's error for its host: exposed URIs, and the form of the host's revision (BRIDGING 7). */
import { exposeErrorUri } from '../../catalog/view/expose-result.ts'
import { exposedUri } from '../../catalog/view/routes.ts'
import { complete, isBridge, ServerError } from '../../rpc/call.ts'
import type { Outcome } from '../../rpc/call.ts'
import { Payload } from '../../wire/message/payload.ts'
import { OLDEST_LEGACY } from '../../wire/protocol/revisions.ts'
import { isTranslated } from '../bridges.ts'
import { URL_REQUIRED, urlRequired, visitIdsIn } from '../rounds/url-required.ts'
import type { RoutedCall } from '../routed-call.ts'

/** Returns the outcome that replaces the error (a visit to a URL, an empty completion: B112), or throws the error, edited in place. */
export const rewriteError = (error: unknown, routed: RoutedCall): Outcome => {
  if (!(error instanceof ServerError)) throw error
  const { call, downstream, view } = routed
  const { caller } = call
  if (isBridge(caller.scope) && !isTranslated(caller, downstream)) {
    if (error.code === URL_REQUIRED) for (const id of visitIdsIn(error)) downstream.sessions.sentAway(id, caller.session)
    throw error
  }
  if (error.code === URL_REQUIRED) return urlRequired(error, routed)
  // The merged endpoint offers completion for all servers (decision 0193). At a bridge only the oldest revision has no capability for it.
  const isOffered = !isBridge(caller.scope) || downstream.eras.revisionFor(caller) === OLDEST_LEGACY
  if (isOffered && call.method === 'completion/complete' && error.code === -32601) {
    downstream.fidelity.note('completionNone', call)
    return complete(Payload.of({ completion: { values: [] } }))
  }
  const data = error.error.object('data')
  const isNotFound = error.code === -32002 || (error.code === -32602 && data?.has('uri') === true)
  if (call.method === 'resources/read' && isNotFound) {
    if ((error.code === -32002) === (call.caller.session === undefined)) downstream.fidelity.note('notFound', call)
    // `data` of another type stays, since it cannot have a member.
    if (data !== undefined || isNothing(error.error.raw('data')) || call.caller.session === undefined)
      error.error.setIn('data', 'uri', JSON.stringify(call.target))
  } else if (view.mayRenameUris(downstream.options))
    exposeErrorUri(error.error, (uri) => exposedUri(view, downstream.options, uri))
  throw error
}

const isNothing = (json: Buffer | undefined): boolean => json === undefined || json.toString() === 'null'
