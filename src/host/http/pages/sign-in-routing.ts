/** Forwards requests for sign-in pages to the replica at which the sign-in began. */
import type { Replicas } from '../../../replicas/replicas.ts'
import type { HttpRequest } from '../../../transport/http1/server/request/http-request.ts'
import { withinRequest } from '../../boundary.ts'
import type { ListenerContext } from '../../listener-context.ts'
import { MAX_FORM_BYTES } from './sign-in-pages.ts'
import type { ConnectPages } from './sign-in-pages.ts'

/** Serves a request below `/connect/` here or at the replica of its sign-in. */
export const handleSignIn = (request: HttpRequest, pages: ConnectPages, context: ListenerContext): void => {
  const { replicas, signIns } = context
  const [, id = ''] = /^\/connect\/([\w-]{22,64})$/.exec(request.path) ?? []
  // The `state` sent to the callers' issuer begins with the id of the link.
  const [state = ''] = (new URLSearchParams(request.query).get('state') ?? '').split('.')
  const name = id === '' ? state : id
  if (replicas === undefined || name === '' || signIns.has(name) || replicas.isForwarded(request)) return pages.handle(request)
  const toReplica = async (body?: Buffer): Promise<void> => {
    if (!(await forward(request, body, name, replicas))) withinRequest(request, context, () => pages.gone(request))
  }
  if (request.method !== 'POST') return void toReplica()
  request.readBody(MAX_FORM_BYTES, (body) => {
    if (Buffer.isBuffer(body)) void toReplica(body)
    else request.reply(413, {})
  })
}

/** Resolves with false if no replica has the sign-in, or its replica did not answer. */
const forward = async (request: HttpRequest, body: Buffer | undefined, name: string, replicas: Replicas): Promise<boolean> => {
  const home = await replicas.findHome(name).catch(() => undefined)
  return home !== undefined && (await replicas.forward(request, body, home)) === 'answered'
}
