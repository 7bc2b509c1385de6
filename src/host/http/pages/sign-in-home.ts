/** Requests for sign-in pages, served by the replica at which the sign-in began. */
import type { Replicas } from '../../../replicas/replicas.ts'
import type { HttpRequest } from '../../../transport/http1/server/request/http-request.ts'
import { withinRequest } from '../../boundary.ts'
import type { ListenerContext } from '../../listener-context.ts'
import { MAX_FORM_BYTES } from './sign-in-pages.ts'
import type { ConnectPages } from './sign-in-pages.ts'

export class SignInHome {
  readonly #context: ListenerContext
  readonly #pages: ConnectPages

  constructor(context: ListenerContext, pages: ConnectPages) {
    this.#context = context
    this.#pages = pages
  }

  /** A sign-in that began at another replica goes on there. */
  handle(request: HttpRequest): void {
    const { replicas, signIns } = this.#context
    const [, id = ''] = /^\/connect\/([\w-]{22,64})$/.exec(request.path) ?? []
    // The `state` at the issuer of callers begins with the id of the link.
    const [state = ''] = (new URLSearchParams(request.query).get('state') ?? '').split('.')
    const name = id === '' ? state : id
    if (replicas === undefined || name === '' || signIns.has(name) || replicas.isPassedOn(request))
      return this.#pages.handle(request)
    if (request.method !== 'POST') return void this.#passOn(request, undefined, name, replicas)
    request.readBody(MAX_FORM_BYTES, (body) => {
      if (Buffer.isBuffer(body)) void this.#passOn(request, body, name, replicas)
      else request.reply(413, {})
    })
  }

  async #passOn(request: HttpRequest, body: Buffer | undefined, name: string, replicas: Replicas): Promise<void> {
    const home = await replicas.findHome(name).catch(() => undefined)
    if (home !== undefined && (await replicas.passOn(request, body, home)) === 'answered') return
    withinRequest(request, this.#context, () => this.#pages.gone(request))
  }
}
