/**
 * The pages behind a sign-in link: who is asked to consent to what, and where the browser comes back to (BRIDGING 6.3.5, 6.4; B248,
 * T-08). Consent is bound to the browser that gave it: another person who opens the link gets no access to the sender's account.
 *
 *     GET /connect/<id>        the question, and a mark for this browser
 *     POST /connect/<id>       consent; off to the issuer of the caller where Trunkline is its client, else to the server's own
 *     GET /connect/identity    back from the issuer: the person must be the caller; off to the server's own authorization server
 *     GET /connect/callback    back from that, in the same browser, once
 *     GET /connect/client.json who we are, for authorization servers that read it
 */
import type { BrowserSignIn, IdentityJourney } from '../../../auth/inbound/browser-sign-in.ts'
import { IssuerUnreachable } from '../../../auth/inbound/issuer.ts'
import { clientMetadata } from '../../../auth/oauth/registration.ts'
import { SIGN_IN_TTL_MS } from '../../../auth/oauth/sign-ins.ts'
import type { SignIn, SignIns } from '../../../auth/oauth/sign-ins.ts'
import { SHARED_PRINCIPAL } from '../../../rpc/call.ts'
import type { DenialReason } from '../../../rpc/record.ts'
import type { HttpRequest } from '../../../transport/http1/server/request/http-request.ts'
import { cleanMessage } from '../../../wire/protocol/label.ts'
import { Failure } from '../../../wire/message/failure.ts'
import type { ListenerContext, Log } from '../../listener-context.ts'
import { BrowserMarks, isEqual } from './browser-marks.ts'
import { pageHeaders } from './page.ts'
import { notePage, otherAccountPage, questionPage } from './sign-in-html.ts'
import type { Proof } from './sign-in-html.ts'

const CALLBACK = '/connect/callback'
/** The redirect URI of Trunkline at the issuer of the callers: another one than at servers, whose answers could else be mixed up with its. */
const IDENTITY = '/connect/identity'
/** Sign-ins at the issuer that are under way; the oldest is ended first. */
const MOST_IDENTITIES = 10_000
export const MAX_FORM_BYTES = 16 * 1024
/** A form leads to the authorization server, whichever it is. */
const PAGE_HEADERS = pageHeaders('any')
/** What a status says of why, to the audit log. */
const REASONS: Readonly<Record<number, DenialReason>> = { 403: 'forbidden', 404: 'path' }
const NOT_YOURS = 'This link is not for you. Open it only if you have asked for it yourself.'
const AWAY =
  'The authorization server does not answer now. Nothing has changed: wait a moment, go back to your application and try again.'
const GONE = 'This link is not good any more. Go back to your application and try again.'

export interface ConnectSource {
  readonly signIns: SignIns
  /** `https://gateway.example.com`, where that is how browsers reach us. */
  readonly publicUrl: () => string | undefined
  /** Resolves the principal of a token; `undefined`: no token is asked for, and all callers are the shared principal. */
  readonly whose: () => ((token: string) => Promise<string | undefined>) | undefined
  /** Origin and path under which browsers reach us. */
  readonly origin: () => Promise<string>
  /** Where the owner of a principal signs in; `undefined`: the page asks for a token. */
  readonly signInOf: (principal: string) => Promise<BrowserSignIn | undefined>
  readonly log: Log
  /** Called for refused requests; `undefined`: no audit log. */
  readonly denied: () => ListenerContext['denied']
}

/** A person who is at the issuer. */
interface Identifying {
  /** Of the link. */
  readonly id: string
  readonly at: BrowserSignIn
  readonly journey: IdentityJourney
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

  /** Whatever is below `/connect/`. */
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

  /** There is no such sign-in at any replica. */
  gone(request: HttpRequest): void {
    this.#note(request, 404, GONE)
  }

  #document(request: HttpRequest): void {
    const base = this.#source.publicUrl()
    const id = base === undefined ? undefined : documentAt(base)
    if (id === undefined) return this.#refuse(request, 404)
    const document = { client_id: id, ...clientMetadata(`${base}${CALLBACK}`, 'none') }
    request.reply(200, { 'Content-Type': 'application/json' }, [Buffer.from(JSON.stringify(document))])
  }

  async #ask(request: HttpRequest, id: string): Promise<void> {
    const signIn = this.#source.signIns.find(id)
    if (signIn === undefined) return this.#note(request, 404, GONE)
    const browser = this.#marks.of(request) ?? this.#marks.make()
    const asksProof = this.#source.whose() !== undefined
    if (!asksProof && signIn.principal !== SHARED_PRINCIPAL) return this.#note(request, 403, NOT_YOURS)
    const at = asksProof ? await this.#source.signInOf(signIn.principal) : undefined
    const proof: Proof = at === undefined ? (asksProof ? 'token' : 'none') : { issuer: new URL(at.issuer).host }
    request.addHeaders({ 'Set-Cookie': this.#marks.cookie(browser) })
    const page = questionPage({ id, name: cleanMessage(signIn.displayName), mark: this.#marks.mark(id, browser), proof })
    request.reply(200, PAGE_HEADERS, [Buffer.from(page)])
  }

  #consent(request: HttpRequest, id: string): void {
    request.readBody(MAX_FORM_BYTES, (body) => {
      const signIn = this.#source.signIns.find(id)
      const browser = this.#marks.of(request)
      const form = new URLSearchParams(body?.toString())
      if (signIn === undefined) return this.#note(request, 404, GONE)
      if (browser === undefined || !this.#marks.isMark(form.get('mark') ?? '', id, browser))
        return this.#note(request, 403, 'This page was not opened in this browser. Open the link again.')
      void this.#prove(request, signIn, browser, form)
    })
  }

  /** Sends the person to the issuer of the callers, where that knows us; else a token or a code is the proof. */
  async #prove(request: HttpRequest, signIn: SignIn, browser: string, form: URLSearchParams): Promise<void> {
    try {
      const at = this.#source.whose() === undefined ? undefined : await this.#source.signInOf(signIn.principal)
      if (at === undefined)
        return await this.#depart(request, signIn, browser, () => this.#isOwner(signIn, form.get('proof') ?? ''))
      const { url, journey } = await at.begin(`${await this.#source.origin()}${IDENTITY}`, form.get('other') === '1')
      // With the id of the link, by which another replica finds this one.
      const state = `${signIn.id}.${journey.journey.state}`
      this.#remember(state, { id: signIn.id, at, journey, browser, untilMs: performance.now() + SIGN_IN_TTL_MS })
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

  /** The person is back from the issuer. Every `state` is good once, and in the browser that consented. */
  async #identified(request: HttpRequest): Promise<void> {
    if (request.method !== 'GET') return this.#refuse(request, 405, { Allow: 'GET' })
    const answer = new URLSearchParams(request.query)
    const state = answer.get('state') ?? ''
    const found = this.#identifying.get(state)
    const browser = this.#marks.of(request)
    if (found === undefined || browser === undefined || found.browser !== browser) return this.#note(request, 400, GONE)
    this.#identifying.delete(state)
    const signIn = found.untilMs > performance.now() ? this.#source.signIns.find(found.id) : undefined
    if (signIn === undefined) return this.#note(request, 400, GONE)
    try {
      const principal = await found.at.finish(found.journey, answer)
      if (principal !== signIn.principal) return this.#otherAccount(request, signIn, found)
      await this.#depart(request, signIn, browser, async () => true)
    } catch (error) {
      this.#failed(request, error, 'Signing in did not work. Go back to your application and try again.')
    }
  }

  #otherAccount(request: HttpRequest, { id }: SignIn, { at, browser }: Identifying): void {
    this.#denied(request, 403, 'another account than the one of the link')
    const page = otherAccountPage({ id, issuer: new URL(at.issuer).host, mark: this.#marks.mark(id, browser) })
    request.reply(403, PAGE_HEADERS, [Buffer.from(page)])
  }

  async #depart(request: HttpRequest, signIn: SignIn, browser: string, isOwner: () => Promise<boolean>): Promise<void> {
    const { id, displayName } = signIn
    try {
      // The link may have been forwarded: the person must be the principal it was made for (B248).
      if (!(await isOwner())) return this.#note(request, 403, NOT_YOURS)
      const url = await this.#source.signIns.depart(id, browser, documentAt)
      if (url === undefined) return this.#note(request, 404, GONE)
      request.reply(303, { ...PAGE_HEADERS, Location: url })
    } catch (error) {
      this.#failed(request, error, `The way to ${displayName} is not open: its authorization server cannot be used.`)
    }
  }

  async #callback(request: HttpRequest): Promise<void> {
    if (request.method !== 'GET') return this.#refuse(request, 405, { Allow: 'GET' })
    try {
      const signIn = await this.#source.signIns.arrive(new URLSearchParams(request.query), this.#marks.of(request))
      if (signIn === undefined) return this.#note(request, 400, GONE)
      this.#source.log.info({ server: signIn.displayName, principal: signIn.principal }, 'signed in')
      this.#note(request, 200, `Signed in to ${cleanMessage(signIn.displayName)}. You can close this window.`)
    } catch (error) {
      this.#failed(request, error, 'Signing in did not work. Go back to your application and try again.')
    }
  }

  /** What went wrong is for the log: the other side words it, and may not be who it says it is. */
  #failed(request: HttpRequest, error: unknown, text: string): void {
    const reason = error instanceof Failure || error instanceof IssuerUnreachable ? error.message : String(error)
    this.#source.log.warn({ reason }, 'a sign-in failed')
    const isAway = error instanceof IssuerUnreachable || (error instanceof Failure && error.kind === 'unreachable')
    this.#note(request, 502, isAway ? AWAY : text)
  }

  #refuse(request: HttpRequest, status: 404 | 405, headers: Readonly<Record<string, string>> = {}): void {
    this.#denied(request, status)
    request.reply(status, headers)
  }

  /** Without the id of the link, which is half of what leads through. */
  #denied({ path, client }: HttpRequest, status: number, detail?: string): void {
    this.#source.denied()?.({
      reason: REASONS[status] ?? 'invalid',
      status,
      path: path === CALLBACK || path === IDENTITY ? path : '/connect',
      client,
      ...(detail !== undefined && { detail }),
    })
  }

  #note(request: HttpRequest, status: number, text: string): void {
    if (status >= 400) this.#denied(request, status, text)
    request.reply(status, PAGE_HEADERS, [Buffer.from(notePage(text))])
  }

  /** By a credential of the principal, or the code that the command line shows the operator. */
  async #isOwner({ principal, code }: SignIn, proof: string): Promise<boolean> {
    const whose = this.#source.whose()
    if (whose === undefined) return principal === SHARED_PRINCIPAL
    if (principal === SHARED_PRINCIPAL) return isEqual(proof, code)
    return proof !== '' && (await whose(proof)) === principal
  }
}

/** Where our metadata document stands: only what the world can read over https can be named by. */
export const documentAt = (base: string): string | undefined =>
  base.startsWith('https:') ? `${base}/connect/client.json` : undefined
