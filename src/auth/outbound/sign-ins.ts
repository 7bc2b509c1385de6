/**
 * Pending sign-ins: one for each credential, valid for ten minutes (BRIDGING 6.3.5, 6.4; T-08). The link names a sign-in and proves
 * nothing; a cookie binds the browser from consent to return.
 *
 *     open ── consent in the principal's browser ──► authorizing (state, verifier) ── return of the same browser ──► done
 */
import { randomBytes } from 'node:crypto'
import type { PendingAuthorization } from '../authorization-server/authorization.ts'
import type { Interactive, Return } from './credential.ts'

/** A pending sign-in. */
export interface SignIn {
  /** 128 random bits; part of the link. */
  readonly id: string
  readonly principal: string
  /** Display name of the server. */
  readonly displayName: string
  /** 128 random bits that only the operator gets. */
  readonly code: string
  /** Calls back once with the end of the attempt since the last `ask`: signed in, failed, or expired. */
  onEnd(callback: (end: SignInEnd) => void): void
}

export type SignInEnd = 'done' | 'failed' | 'expired'

interface Entry extends SignIn {
  readonly interactive: Interactive
  readonly expiresMs: number
  readonly waiting: Set<(end: SignInEnd) => void>
  hasFailed: boolean
}

interface Authorizing {
  readonly entry: Entry
  readonly pending: PendingAuthorization
  /** The browser that consented. */
  readonly browser: string
}

export const SIGN_IN_TTL_MS = 10 * 60_000
/** Limit of all principals together; a further sign-in removes the oldest. */
const MOST = 10_000

export class SignIns {
  readonly #now: () => number
  readonly #base: () => Promise<string>
  readonly #entries = new Map<string, Entry>()
  readonly #byCredential = new WeakMap<Interactive, Entry>()
  /** By `state`. */
  readonly #authorizing = new Map<string, Authorizing>()
  readonly #announce: (name: string) => Promise<void>

  /** `base`: the URL for browsers. `now`: monotonic. `announce` tells replicas that a sign-in (id or `state`) is here. */
  constructor(
    base: () => Promise<string>,
    now: () => number = () => performance.now(),
    announce: (name: string) => Promise<void> = () => Promise.resolve(),
  ) {
    this.#base = base
    this.#announce = announce
    this.#now = now
  }

  /** Returns the sign-in of a credential and its link; the same until it ends. */
  async ask(interactive: Interactive, displayName: string): Promise<{ readonly signIn: SignIn; readonly url: string }> {
    const signIn = this.#open(interactive, displayName)
    signIn.hasFailed = false
    await this.#announce(signIn.id)
    return { signIn, url: `${await this.#base()}/connect/${signIn.id}` }
  }

  /** Whether an id or a `state` is of a sign-in at this process. */
  has(name: string): boolean {
    return this.#entries.has(name) || this.#authorizing.has(name)
  }

  find(id: string): SignIn | undefined {
    return this.#live(id)
  }

  /** Begins authorization after consent in `browser`; resolves with the redirect. `undefined`: no such sign-in. Rejects with `Failure`. */
  async begin(id: string, browser: string, document: (base: string) => string | undefined): Promise<string | undefined> {
    const entry = this.#live(id)
    if (entry === undefined) return undefined
    const base = await this.#base()
    const back: Return = { redirectUri: `${base}/connect/callback`, document: document(base) }
    const { url, pending } = await entry.interactive.begin(back).catch((error: unknown) => {
      report(entry, 'failed')
      throw error
    })
    // It may have ended meanwhile, and would not take the answer.
    if (this.#live(id) === undefined) return undefined
    for (const [state, { entry: other }] of this.#authorizing) if (other === entry) this.#authorizing.delete(state)
    this.#authorizing.set(pending.state, { entry, pending, browser })
    await this.#announce(pending.state)
    return url
  }

  /** Handles an authorization response, once. `undefined`: no such sign-in in this browser. Rejects with `Failure`. */
  async finish(answer: URLSearchParams, browser: string | undefined): Promise<SignIn | undefined> {
    const state = answer.get('state') ?? ''
    const found = this.#authorizing.get(state)
    this.#authorizing.delete(state)
    if (found === undefined || found.browser !== browser || this.#live(found.entry.id) === undefined) return undefined
    const { entry, pending } = found
    try {
      await entry.interactive.finish(pending, answer)
    } catch (error) {
      report(entry, 'failed')
      throw error
    }
    this.#close(entry, 'done')
    return entry
  }

  #open(interactive: Interactive, displayName: string): Entry {
    const known = this.#byCredential.get(interactive)
    if (known !== undefined && this.#live(known.id) !== undefined) return known
    const waiting = new Set<(end: SignInEnd) => void>()
    const entry: Entry = {
      id: randomBytes(16).toString('base64url'),
      principal: interactive.principal,
      displayName,
      code: randomBytes(16).toString('base64url'),
      interactive,
      expiresMs: this.#now() + SIGN_IN_TTL_MS,
      waiting,
      hasFailed: false,
      onEnd: (callback) => {
        if (entry.hasFailed) callback('failed')
        else waiting.add(callback)
      },
    }
    for (const other of this.#entries.values()) {
      if (this.#entries.size < MOST && other.expiresMs > this.#now()) break
      this.#close(other, 'expired')
    }
    this.#entries.set(entry.id, entry)
    this.#byCredential.set(interactive, entry)
    return entry
  }

  #live(id: string): Entry | undefined {
    const entry = this.#entries.get(id)
    if (entry === undefined || entry.expiresMs > this.#now()) return entry
    this.#close(entry, 'expired')
    return undefined
  }

  #close(entry: Entry, end: SignInEnd): void {
    this.#entries.delete(entry.id)
    for (const [state, { entry: other }] of this.#authorizing) if (other === entry) this.#authorizing.delete(state)
    report(entry, end)
  }
}

const report = (entry: Entry, end: SignInEnd): void => {
  entry.hasFailed = end === 'failed'
  const callbacks = [...entry.waiting]
  entry.waiting.clear()
  for (const callback of callbacks) callback(end)
}
