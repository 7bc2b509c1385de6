/**
 * The pages of a sign-in link (BRIDGING 6.3.5, 6.4; B248, T-08). Consent is bound to the browser that gave it: a person who opens another
 * person's link gets no access to that person's account.
 *
 *     GET /connect/<id>        asks for consent, and sets a mark for this browser
 *     POST /connect/<id>       takes consent; redirects to the callers' issuer if Trunkline is its client, else to the server's issuer
 *     GET /connect/identity    redirect of the callers' issuer: the person must be the caller; redirects to the server's issuer
 *     GET /connect/callback    redirect of the server's issuer, in the same browser, once
 *     GET /connect/client.json our client metadata document
 */
import type { BrowserSignIn, PendingIdentity } from '../../../auth/inbound/browser-sign-in.ts'
import { IssuerUnreachable } from '../../../auth/inbound/verify/issuer.ts'
import { clientMetadata } from '../../../auth/authorization-server/registration.ts'
import { SIGN_IN_TTL_MS } from '../../../auth/outbound/sign-ins.ts'
import type { SignIn } from '../../../auth/outbound/sign-ins.ts'
import { SHARED_PRINCIPAL } from '../../../rpc/call.ts'
import type { DenialReason } from '../../../rpc/record.ts'
import type { HttpRequest } from '../../../transport/http1/server/request/http-request.ts'
import { cleanMessage } from '../../../wire/protocol/label.ts'
import { Failure } from '../../../wire/message/failure.ts'
import { reportRefused } from '../../denials.ts'
import type { ListenerContext } from '../../listener-context.ts'
import { BrowserMarks, isEqual } from './browser-marks.ts'
import { pageHeaders } from './page.ts'
import { messagePage, otherAccountPage, questionPage } from './sign-in-html.ts'
import type { Proof } from './sign-in-html.ts'

const CALLBACK = '/connect/callback'
/** Redirect URI at the callers' issuer. Differs from `CALLBACK`, so that the answers of servers' issuers cannot be mixed up with its. */
const IDENTITY = '/connect/identity'
/** Pending sign-ins at the callers' issuer; the oldest is removed first. */
const MOST_IDENTITIES = 10_000
export const MAX_FORM_BYTES = 16 * 1024
/** A form redirects to any authorization server. */
const PAGE_HEADERS = pageHeaders('any')
/** Audit reasons by status. */
const REASONS: Readonly<Record<number, DenialReason>> = { 403: 'forbidden', 404: 'path' }
const NOT_YOURS = 'This link is not for you. Open it only if you have asked for it yourself.'
const UNAVAILABLE =
  'The authorization server does not answer now. Nothing has changed: wait a moment, go back to your application and try again.'
const GONE = 'This link has expired. Go back to your application and try again.'

export interface ConnectSource {
  readonly context: Pick<ListenerContext, 'denied' | 'log' | 'signIns'>
  /** `undefined`: browsers reach the gateway at a bound address. */
  readonly publicUrl: () => string | undefined
  /** Resolves with the principal of a token; `undefined`: no authentication, and all callers are the shared principal. */
  readonly principalOf: () => ((token: string) => Promise<string | undefined>) | undefined
  /** Origin and path prefix under which browsers reach the gateway. */
  readonly origin: () => Promise<string>
  /** Resolves with the issuer at which the owner of a principal signs in; `undefined`: the page asks for a token. */
  readonly signInOf: (principal: string) => Promise<BrowserSignIn | undefined>
}

/** A pending sign-in at the callers' issuer. */
interface Identifying {
  /** Id of the link. */
  readonly id: string
  readonly at: BrowserSignIn
  readonly pending: PendingIdentity
  /** The browser that consented. */
  readonly browser: string
  /** Monotonic milliseconds. */
  readonly untilMs: number
}

export class ConnectPages {
  readonly #source: ConnectSource
  readonly #marks: BrowserMarks
  /** By `state`; oldest first. */
  readonly #identifying = new Map<string, Identifying>()

  constructor(source: ConnectSource) {
    this.#source = source
    this.#marks = new BrowserMarks('trunkline-browser', () => source.publicUrl()?.startsWith('https:') === true)
  }

  /** Serves all paths below `/connect/`. */
  handle(request: HttpRequest): void {
    const [, rest] = /^\/connect\/([\w.-]{1,64})$/.exec(request.path) ?? []
    if (rest === undefined) this.#refuse(request, 404)
    else if (rest === 'client.json') this.#document(request)
    else if (rest === 'callback') void this.#callback(request)
    else if (rest === 'identity') void this.#identified(request)
    else if (request.method === 'GET') void this.#ask(request, rest)
    else if (request.method === 'POST') this.#consent(request, rest)
    else this.#refuse(request, 405, { Allow: 'GET, POST' })
  }

  /** Answers a request whose sign-in no replica has. */
  gone(request: HttpRequest): void {
    this.#message(request, 404, GONE)
  }

  #document(request: HttpRequest): void {
    const base = this.#source.publicUrl()
    const id = base === undefined ? undefined : documentAt(base)
    if (id === undefined) return this.#refuse(request, 404)
    const document = { client_id: id, ...clientMetadata(`${base}${CALLBACK}`, 'none') }
    request.reply(200, { 'Content-Type': 'application/json' }, [Buffer.from(JSON.stringify(document))])
  }

  async #ask(request: HttpRequest, id: string): Promise<void> {
    const signIn = this.#source.context.signIns.find(id)
    if (signIn === undefined) return this.#message(request, 404, GONE)
    const browser = this.#marks.of(request) ?? this.#marks.make()
    const asksProof = this.#source.principalOf() !== undefined
    if (!asksProof && signIn.principal !== SHARED_PRINCIPAL) return this.#message(request, 403, NOT_YOURS)
    const at = asksProof ? await this.#source.signInOf(signIn.principal) : undefined
    const proof: Proof = at === undefined ? (asksProof ? 'token' : 'none') : { issuer: new URL(at.issuer).host }
    request.addHeaders({ 'Set-Cookie': this.#marks.cookie(browser) })
    const page = questionPage({ id, name: cleanMessage(signIn.displayName), mark: this.#marks.mark(id, browser), proof })
    request.reply(200, PAGE_HEADERS, [Buffer.from(page)])
  }

  #consent(request: HttpRequest, id: string): void {
    request.readBody(MAX_FORM_BYTES, (body) => {
      const signIn = this.#source.context.signIns.find(id)
      const browser = this.#marks.of(request)
      const form = new URLSearchParams(body?.toString())
      if (signIn === undefined) return this.#message(request, 404, GONE)
      if (browser === undefined || !this.#marks.isMark(form.get('mark') ?? '', id, browser))
        return this.#message(request, 403, 'This page was not opened in this browser. Open the link again.')
      void this.#prove(request, signIn, browser, form)
    })
  }

  /** Redirects to the callers' issuer if Trunkline is its client; else checks the token or code of the form. */
  async #prove(request: HttpRequest, signIn: SignIn, browser: string, form: URLSearchParams): Promise<void> {
    try {
      const at = this.#source.principalOf() === undefined ? undefined : await this.#source.signInOf(signIn.principal)
      if (at === undefined)
        return await this.#redirect(request, signIn, browser, () => this.#isOwner(signIn, form.get('proof') ?? ''))
      const { url, pending } = await at.begin(`${await this.#source.origin()}${IDENTITY}`, form.get('other') === '1')
      // Begins with the id of the link, by which another replica finds this one.
      const state = `${signIn.id}.${pending.authorization.state}`
      this.#remember(state, { id: signIn.id, at, pending, browser, untilMs: performance.now() + SIGN_IN_TTL_MS })
      const target = new URL(url)
      target.searchParams.set('state', state)
      request.reply(303, { ...PAGE_HEADERS, Location: target.href })
    } catch (error) {
      this.#failed(request, error, 'You cannot be signed in now: the authorization server of Trunkline cannot be used.')
    }
  }

  #remember(state: string, identifying: Identifying): void {
    const nowMs = performance.now()
    for (const [oldest, { untilMs }] of this.#identifying) {
      if (this.#identifying.size < MOST_IDENTITIES && untilMs > nowMs) break
      this.#identifying.delete(oldest)
    }
    this.#identifying.set(state, identifying)
  }

  /** Handles the redirect of the callers' issuer. A `state` is accepted once, and only in the browser that consented. */
  async #identified(request: HttpRequest): Promise<void> {
    if (request.method !== 'GET') return this.#refuse(request, 405, { Allow: 'GET' })
    const answer = new URLSearchParams(request.query)
    const state = answer.get('state') ?? ''
    const found = this.#identifying.get(state)
    const browser = this.#marks.of(request)
    if (found === undefined || browser === undefined || found.browser !== browser) return this.#message(request, 400, GONE)
    this.#identifying.delete(state)
    const signIn = found.untilMs > performance.now() ? this.#source.context.signIns.find(found.id) : undefined
    if (signIn === undefined) return this.#message(request, 400, GONE)
    try {
      const principal = await found.at.finish(found.pending, answer)
      if (principal !== signIn.principal) return this.#otherAccount(request, signIn, found)
      await this.#redirect(request, signIn, browser, async () => true)
    } catch (error) {
      this.#failed(request, error, 'Signing in did not work. Go back to your application and try again.')
    }
  }

  #otherAccount(request: HttpRequest, { id }: SignIn, { at, browser }: Identifying): void {
    this.#denied(request, 403, 'another account than the one of the link')
    const page = otherAccountPage({ id, issuer: new URL(at.issuer).host, mark: this.#marks.mark(id, browser) })
    request.reply(403, PAGE_HEADERS, [Buffer.from(page)])
  }

  async #redirect(request: HttpRequest, signIn: SignIn, browser: string, isOwner: () => Promise<boolean>): Promise<void> {
    const { id, displayName } = signIn
    try {
      // The link may have been forwarded: the person must be its principal (B248).
      if (!(await isOwner())) return this.#message(request, 403, NOT_YOURS)
      const url = await this.#source.context.signIns.begin(id, browser, documentAt)
      if (url === undefined) return this.#message(request, 404, GONE)
      request.reply(303, { ...PAGE_HEADERS, Location: url })
    } catch (error) {
      this.#failed(request, error, `You cannot sign in to ${displayName} now: its authorization server cannot be used.`)
    }
  }

  async #callback(request: HttpRequest): Promise<void> {
    if (request.method !== 'GET') return this.#refuse(request, 405, { Allow: 'GET' })
    try {
      const signIn = await this.#source.context.signIns.finish(new URLSearchParams(request.query), this.#marks.of(request))
      if (signIn === undefined) return this.#message(request, 400, GONE)
      this.#source.context.log.info({ server: signIn.displayName, principal: signIn.principal }, 'signed in')
      this.#message(request, 200, `Signed in to ${cleanMessage(signIn.displayName)}. You can close this window.`)
    } catch (error) {
      this.#failed(request, error, 'Signing in did not work. Go back to your application and try again.')
    }
  }

  /** Logs the reason and shows `text`: the reason contains texts of an authorization server that is not trusted. */
  #failed(request: HttpRequest, error: unknown, text: string): void {
    const reason = error instanceof Failure || error instanceof IssuerUnreachable ? error.message : String(error)
    this.#source.context.log.warn({ reason }, 'a sign-in failed')
    const isUnavailable = error instanceof IssuerUnreachable || (error instanceof Failure && error.kind === 'unreachable')
    this.#message(request, 502, isUnavailable ? UNAVAILABLE : text)
  }

  #refuse(request: HttpRequest, status: 404 | 405, headers: Readonly<Record<string, string>> = {}): void {
    this.#denied(request, status)
    request.reply(status, headers)
  }

  /** Reports a denial without the id of the link, which must stay secret. */
  #denied({ path, client }: HttpRequest, status: number, detail?: string): void {
    const shown = path === CALLBACK || path === IDENTITY ? path : '/connect'
    reportRefused(this.#source.context, { path: shown, client }, REASONS[status] ?? 'invalid', status, { detail })
  }

  #message(request: HttpRequest, status: number, text: string): void {
    if (status >= 400) this.#denied(request, status, text)
    request.reply(status, PAGE_HEADERS, [Buffer.from(messagePage(text))])
  }

  /** Whether `proof` is a token of the principal, or the code that the command line shows to the operator. */
  async #isOwner({ principal, code }: SignIn, proof: string): Promise<boolean> {
    const principalOf = this.#source.principalOf()
    if (principalOf === undefined) return principal === SHARED_PRINCIPAL
    if (principal === SHARED_PRINCIPAL) return isEqual(proof, code)
    return proof !== '' && (await principalOf(proof)) === principal
  }
}

/** Returns the URL of our client metadata document; `undefined`: not reachable over https. */
export const documentAt = (base: string): string | undefined =>
  base.startsWith('https:') ? `${base}/connect/client.json` : undefined
