/**
 * The endpoints of the registration proxy: hosts register, people consent, codes and tokens are relayed (BRIDGING 6.3.5; T-08).
 *
 *     GET  /.well-known/oauth-authorization-server   metadata, also below the path of the public URL
 *     POST /oauth/register      returns a client id, which contains the registration
 *     GET  /oauth/authorize     asks the person for consent, every time
 *     POST /oauth/authorize     takes the answer; redirects to the provider
 *     GET  /oauth/callback      the provider's redirect, in the same browser; redirects to the host
 *     POST /oauth/token         takes codes and refresh tokens of hosts
 */
import type { AuthorizationProxy } from '../../../auth/inbound/authorization-proxy.ts'
import type { HttpRequest } from '../../../transport/http1/server/request/http-request.ts'
import { cleanMessage } from '../../../wire/protocol/label.ts'
import { reportRefused } from '../../denials.ts'
import type { ListenerContext } from '../../listener-context.ts'
import { asError } from '../../../values/as-error.ts'
import { BrowserMarks } from './browser-marks.ts'
import { pageHeaders } from './page.ts'
import { consentPage, messagePage } from './sign-in-html.ts'
import { parseJson } from '../../../values/json-object.ts'

const WELL_KNOWN = '/.well-known/oauth-authorization-server'
const MAX_FORM_BYTES = 64 * 1_024
/** A form redirects to the provider, and from there to the host. */
const PAGE_HEADERS = pageHeaders('any')
const JSON_BODY = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }
const METADATA = { 'Content-Type': 'application/json', 'Cache-Control': 'max-age=300' }
const EXPIRED = 'This page has expired. Go back to your application and try again.'
const UNAVAILABLE = 'You cannot be signed in now: the authorization server of Trunkline cannot be used.'

export interface AuthorizationSource {
  readonly context: Pick<ListenerContext, 'denied' | 'log'>
  /** `undefined`: no registration proxy is configured. */
  readonly proxy: () => Promise<AuthorizationProxy> | undefined
  /** The proxy's issuer identifier: origin and path under which hosts reach the gateway. */
  readonly issuer: () => string
}

export class AuthorizationPages {
  readonly #source: AuthorizationSource
  readonly #marks: BrowserMarks

  constructor(source: AuthorizationSource) {
    this.#source = source
    this.#marks = new BrowserMarks('trunkline-consent', () => source.issuer().startsWith('https:'))
  }

  /** True: the request is for the proxy, and is answered. */
  serves(request: HttpRequest): boolean {
    const { path, method } = request
    const isMetadata = path.startsWith(WELL_KNOWN)
    if (!isMetadata && !path.startsWith('/oauth/')) return false
    const proxy = this.#source.proxy()
    if (proxy === undefined) return false
    if (isMetadata) {
      const prefix = new URL(this.#source.issuer()).pathname.replace(/\/$/, '')
      if (path !== WELL_KNOWN && path !== WELL_KNOWN + prefix) return false
    }
    void this.#answer(request, `${method} ${isMetadata ? WELL_KNOWN : path}`, proxy)
    return true
  }

  async #answer(request: HttpRequest, route: string, made: Promise<AuthorizationProxy>): Promise<void> {
    const issuer = this.#source.issuer()
    try {
      const proxy = await made
      switch (route) {
        case `GET ${WELL_KNOWN}`:
          return this.#json(request, 200, proxy.metadata(issuer), METADATA)
        case 'POST /oauth/register':
          return this.#read(request, (body) => this.#register(request, proxy, body))
        case 'GET /oauth/authorize':
          return await this.#ask(request, proxy, issuer)
        case 'POST /oauth/authorize':
          return this.#read(request, (body) => void this.#consent(request, proxy, issuer, body))
        case 'GET /oauth/callback':
          return await this.#callback(request, proxy, issuer)
        case 'POST /oauth/token':
          return this.#read(request, (body) => void this.#token(request, proxy, issuer, body))
        default:
          this.#denied(request, 404)
          return request.reply(404, {})
      }
    } catch (error) {
      this.#failed(request, error)
    }
  }

  #read(request: HttpRequest, done: (body: string) => void): void {
    request.readBody(MAX_FORM_BYTES, (body) => {
      if (Buffer.isBuffer(body)) return done(body.toString())
      const status = body === 'too_large' ? 413 : 503
      this.#denied(request, status, body)
      request.reply(status, {})
    })
  }

  #register(request: HttpRequest, proxy: AuthorizationProxy, body: string): void {
    const made = proxy.clients.register(parseJson(body))
    if ('error' in made) {
      this.#denied(request, 400, made.error_description)
      return this.#json(request, 400, made)
    }
    this.#json(request, 201, {
      client_id: made.id,
      client_name: made.name,
      redirect_uris: made.redirectUris,
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    })
  }

  async #ask(request: HttpRequest, proxy: AuthorizationProxy, issuer: string): Promise<void> {
    const asked = await proxy.ask(new URLSearchParams(request.query), issuer)
    if (asked.kind === 'refused') return this.#message(request, 400, `This request cannot go on: ${asked.reason}.`)
    if (asked.kind === 'redirect') return request.reply(303, { ...PAGE_HEADERS, Location: asked.url })
    const { client, request: wanted } = asked
    const browser = this.#marks.of(request) ?? this.#marks.make()
    const sealed = proxy.sealRequest(wanted, browser)
    request.addHeaders({ 'Set-Cookie': this.#marks.cookie(browser) })
    const scope = proxy.scopeOf(wanted)
    const page = consentPage({
      name: cleanMessage(client.name),
      target: shownTarget(wanted.redirectUri),
      redirectUri: wanted.redirectUri,
      scope: scope && cleanMessage(scope),
      document: client.document === undefined ? undefined : new URL(client.document).host,
      isLocal: new URL(wanted.redirectUri).protocol !== 'https:',
      sealed,
    })
    request.reply(200, PAGE_HEADERS, [Buffer.from(page)])
  }

  async #consent(request: HttpRequest, proxy: AuthorizationProxy, issuer: string, body: string): Promise<void> {
    try {
      const form = new URLSearchParams(body)
      const browser = this.#marks.of(request)
      // The sealed request names its browser, so it needs no mark, which no other replica could check.
      const wanted = browser === undefined ? undefined : proxy.openRequest(form.get('request') ?? '', browser)
      if (wanted === undefined || browser === undefined) return this.#message(request, 403, EXPIRED)
      const url = form.get('answer') === 'allow' ? await proxy.begin(wanted, browser, issuer) : proxy.refuse(wanted, issuer)
      request.reply(303, { ...PAGE_HEADERS, Location: url })
    } catch (error) {
      this.#failed(request, error)
    }
  }

  async #callback(request: HttpRequest, proxy: AuthorizationProxy, issuer: string): Promise<void> {
    const url = await proxy.finish(new URLSearchParams(request.query), this.#marks.of(request), issuer)
    if (url === undefined) return this.#message(request, 400, EXPIRED)
    request.reply(303, { ...PAGE_HEADERS, Location: url })
  }

  async #token(request: HttpRequest, proxy: AuthorizationProxy, issuer: string, body: string): Promise<void> {
    try {
      const { status, body: answer } = await proxy.token(new URLSearchParams(body), issuer)
      if (status >= 400) this.#denied(request, status, 'a token request of a host')
      this.#json(request, status, answer)
    } catch (error) {
      this.#source.context.log.warn({ reason: asError(error).message }, 'the authorization server gave no token to a host')
      this.#json(request, 503, { error: 'temporarily_unavailable' }, { ...JSON_BODY, 'Retry-After': '2' })
    }
  }

  #failed(request: HttpRequest, error: unknown): void {
    this.#source.context.log.warn({ reason: asError(error).message }, 'a host could not be authorized')
    this.#message(request, 502, UNAVAILABLE)
  }

  #json(request: HttpRequest, status: number, value: object, headers: Readonly<Record<string, string>> = JSON_BODY): void {
    request.reply(status, headers, [Buffer.from(JSON.stringify(value))])
  }

  #message(request: HttpRequest, status: number, text: string): void {
    this.#denied(request, status, text)
    request.reply(status, PAGE_HEADERS, [Buffer.from(messagePage(text))])
  }

  #denied(request: HttpRequest, status: number, detail?: string): void {
    const reason = status === 404 ? 'path' : status === 403 ? 'forbidden' : 'invalid'
    reportRefused(this.#source.context, request, reason, status, { detail })
  }
}

/** Returns the target of a redirect URI for people: a host name, or the scheme of an application on this machine. */
const shownTarget = (redirectUri: string): string => {
  const url = new URL(redirectUri)
  return /^https?:$/.test(url.protocol) ? url.host : url.protocol
}
