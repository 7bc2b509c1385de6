/**
 * The pages behind a sign-in link: who is asked to consent to what, and where the browser comes back to (BRIDGING 6.3.5, 6.4; B248,
 * T-08). Consent is bound to the browser that gave it: a link that was sent to somebody else leads to nothing of the sender's.
 *
 *     GET /connect/<id>        the question, and a mark for this browser
 *     POST /connect/<id>       consent; off to the authorization server
 *     GET /connect/callback    back, in the same browser, once
 *     GET /connect/client.json who we are, for authorization servers that read it
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { clientMetadata } from '../auth/oauth/registration.ts'
import type { SignIn, SignIns } from '../auth/oauth/sign-ins.ts'
import type { HttpRequest } from '../transport/http-server.ts'
import { cleanMessage } from '../wire/label.ts'
import { Failure } from '../wire/failure.ts'
import type { Log } from './hub.ts'
import { notePage, questionPage } from './pages.ts'

const MAX_FORM_BYTES = 16 * 1024
const MARK = /^[\w-]{43}$/
const PAGE_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
  'X-Frame-Options': 'DENY',
  'X-Content-Type-Options': 'nosniff',
  // With "no-referrer" a browser would post the form as from nowhere.
  'Referrer-Policy': 'same-origin',
  'Cache-Control': 'no-store',
}
const GONE = 'This link is not good any more. Go back to your application and try again.'

export interface ConnectSource {
  readonly signIns: SignIns
  /** `https://gateway.example.com`, where that is how browsers reach us. */
  readonly publicUrl: () => string | undefined
  /** Who the person in this browser is, as far as it has proved it; everybody where nobody is asked to. */
  readonly principalOf: (browser: string) => string | undefined
  readonly log: Log
}

export class ConnectPages {
  readonly #source: ConnectSource
  readonly #key = randomBytes(32)

  constructor(source: ConnectSource) {
    this.#source = source
  }

  /** False: none of our paths. */
  handle(request: HttpRequest): boolean {
    const [, rest] = /^\/connect\/([\w.-]{1,64})$/.exec(request.path) ?? []
    if (rest === undefined) return false
    if (rest === 'client.json') this.#document(request)
    else if (rest === 'callback') void this.#callback(request)
    else if (request.method === 'GET') this.#ask(request, rest)
    else if (request.method === 'POST') this.#consent(request, rest)
    else request.reply(405, { Allow: 'GET, POST' })
    return true
  }

  #document(request: HttpRequest): void {
    const base = this.#source.publicUrl()
    const id = base === undefined ? undefined : documentAt(base)
    if (id === undefined) return request.reply(404, {})
    const document = { client_id: id, ...clientMetadata(`${base}/connect/callback`, 'none') }
    request.reply(200, { 'Content-Type': 'application/json' }, [Buffer.from(JSON.stringify(document))])
  }

  #ask(request: HttpRequest, id: string): void {
    const signIn = this.#source.signIns.find(id)
    if (signIn === undefined) return this.#note(request, 404, GONE)
    const browser = this.#browserOf(request) ?? randomBytes(32).toString('base64url')
    if (!this.#isOwner(signIn, browser)) return this.#note(request, 403, 'This link belongs to somebody else.')
    request.addHeaders({ 'Set-Cookie': this.#cookie(browser) })
    const page = questionPage({
      id,
      name: cleanMessage(signIn.displayName),
      principal: signIn.principal,
      mark: this.#mark(id, browser),
    })
    request.reply(200, PAGE_HEADERS, [Buffer.from(page)])
  }

  #consent(request: HttpRequest, id: string): void {
    request.readBody(MAX_FORM_BYTES, (body) => {
      const signIn = this.#source.signIns.find(id)
      const browser = this.#browserOf(request)
      const mark = new URLSearchParams(body?.toString()).get('mark') ?? ''
      if (signIn === undefined) return this.#note(request, 404, GONE)
      if (browser === undefined || !this.#isMark(id, browser, mark) || !this.#isOwner(signIn, browser))
        return this.#note(request, 403, 'This page was not opened in this browser. Open the link again.')
      void this.#depart(request, signIn, browser)
    })
  }

  async #depart(request: HttpRequest, { id, displayName }: SignIn, browser: string): Promise<void> {
    try {
      const url = await this.#source.signIns.depart(id, browser, documentAt)
      if (url === undefined) return this.#note(request, 404, GONE)
      request.reply(303, { ...PAGE_HEADERS, Location: url })
    } catch (error) {
      this.#failed(request, error, `The way to ${displayName} is not open: its authorization server cannot be used.`)
    }
  }

  async #callback(request: HttpRequest): Promise<void> {
    if (request.method !== 'GET') return request.reply(405, { Allow: 'GET' })
    try {
      const signIn = await this.#source.signIns.arrive(new URLSearchParams(request.query), this.#browserOf(request))
      if (signIn === undefined) return this.#note(request, 400, GONE)
      this.#source.log.info({ server: signIn.displayName, principal: signIn.principal }, 'signed in')
      this.#note(request, 200, `Signed in to ${cleanMessage(signIn.displayName)}. You can close this window.`)
    } catch (error) {
      this.#failed(request, error, 'Signing in did not work. Go back to your application and try again.')
    }
  }

  /** What went wrong is for the log: the other side words it, and may not be who it says it is. */
  #failed(request: HttpRequest, error: unknown, text: string): void {
    const reason = error instanceof Failure ? error.message : String(error)
    this.#source.log.warn({ reason }, 'a sign-in failed')
    this.#note(request, 502, text)
  }

  #note(request: HttpRequest, status: number, text: string): void {
    request.reply(status, PAGE_HEADERS, [Buffer.from(notePage(text))])
  }

  #isOwner({ principal }: SignIn, browser: string): boolean {
    return this.#source.principalOf(browser) === principal
  }

  get #isSecure(): boolean {
    return this.#source.publicUrl()?.startsWith('https:') === true
  }

  get #cookieName(): string {
    return this.#isSecure ? '__Host-trunkline-browser' : 'trunkline-browser'
  }

  #cookie(browser: string): string {
    return `${this.#cookieName}=${browser}; Path=/; HttpOnly; SameSite=Lax${this.#isSecure ? '; Secure' : ''}`
  }

  #browserOf(request: HttpRequest): string | undefined {
    const name = `${this.#cookieName}=`
    const values = (request.header('cookie') ?? '').split(';').flatMap((pair) => {
      const text = pair.trim()
      return text.startsWith(name) ? text.slice(name.length) : []
    })
    return values.length === 1 && MARK.test(values[0]) ? values[0] : undefined
  }

  /** What only a page of ours, opened in this browser, can bring back. */
  #mark(id: string, browser: string): string {
    return createHmac('sha256', this.#key).update(`${id} ${browser}`).digest('base64url')
  }

  #isMark(id: string, browser: string, mark: string): boolean {
    const given = Buffer.from(mark)
    const own = Buffer.from(this.#mark(id, browser))
    return given.length === own.length && timingSafeEqual(given, own)
  }
}

/** Where our metadata document stands: only what the world can read over https can be named by. */
export const documentAt = (base: string): string | undefined =>
  base.startsWith('https:') ? `${base}/connect/client.json` : undefined
