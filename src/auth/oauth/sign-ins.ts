/**
 * Sign-ins under way: one for each credential, valid for ten minutes (BRIDGING 6.3.5, 6.4; T-08). The link names a sign-in and
 * proves nothing; a mark (cookie) binds the browser from consent to return.
 *
 *     asked ── consent of the principal's own browser ──► under way (state, verifier) ── the same browser is back ──► done
 */
import { randomBytes } from 'node:crypto'
import type { Journey } from './authorization.ts'
import type { Interactive, Return } from './credential.ts'

/** What a person must be told before leaving. */
export interface SignIn {
  /** 128 random bits: names it in the link. */
  readonly id: string
  readonly principal: string
  /** The server, as people know it. */
  readonly displayName: string
  /** 128 random bits that the operator alone is told. */
  readonly code: string
  /** Calls back once, with how the attempt since the last `ask` ends: signed in, in vain, or never made in time. */
  onEnd(callback: (end: SignInEnd) => void): void
}

export type SignInEnd = 'done' | 'failed' | 'expired'

interface Entry extends SignIn {
  readonly interactive: Interactive
  readonly expiresMs: number
  readonly waiting: Set<(end: SignInEnd) => void>
  hasFailed: boolean
}

interface UnderWay {
  readonly entry: Entry
  readonly journey: Journey
  /** The browser that consented. */
  readonly browser: string
}

export const SIGN_IN_TTL_MS = 10 * 60_000
/** Of all principals together; who asks for more ends the oldest. */
const MOST = 10_000

export class SignIns {
  readonly #now: () => number
  readonly #base: () => Promise<string>
  readonly #entries = new Map<string, Entry>()
  readonly #byCredential = new WeakMap<Interactive, Entry>()
  /** By `state`. */
  readonly #underWay = new Map<string, UnderWay>()

  readonly #announce: (name: string) => Promise<void>

  /**
   * `base`: origin under which browsers reach us, asked when the first link is made. `now`: monotonic milliseconds. `announce`: tells other
   * replicas that this one has the sign-in of this id or `state`.
   */
  constructor(
    base: () => Promise<string>,
    now: () => number = () => performance.now(),
    announce: (name: string) => Promise<void> = () => Promise.resolve(),
  ) {
    this.#base = base
    this.#announce = announce
    this.#now = now
  }

  /** The sign-in for this credential, and the link to it; the same while one is open. */
  async ask(interactive: Interactive, displayName: string): Promise<{ readonly signIn: SignIn; readonly url: string }> {
    const signIn = this.#open(interactive, displayName)
    signIn.hasFailed = false
    await this.#announce(signIn.id)
    return { signIn, url: `${await this.#base()}/connect/${signIn.id}` }
  }

  /** Whether an id or a `state` is of a sign-in here. */
  has(name: string): boolean {
    return this.#entries.has(name) || this.#underWay.has(name)
  }

  find(id: string): SignIn | undefined {
    return this.#live(id)
  }

  /** The person consents in `browser`; resolves with where to go. `undefined`: there is no such sign-in any more. Rejects with `Failure`. */
  async depart(id: string, browser: string, document: (base: string) => string | undefined): Promise<string | undefined> {
    const entry = this.#live(id)
    if (entry === undefined) return undefined
    const base = await this.#base()
    const back: Return = { redirectUri: `${base}/connect/callback`, document: document(base) }
    const { url, journey } = await entry.interactive.begin(back).catch((error: unknown) => {
      tell(entry, 'failed')
      throw error
    })
    for (const [state, { entry: other }] of this.#underWay) if (other === entry) this.#underWay.delete(state)
    this.#underWay.set(journey.state, { entry, journey, browser })
    await this.#announce(journey.state)
    return url
  }

  /**
   * Accepts the answer of the authorization server, once. `undefined`: no sign-in with this state is open, it has expired, or it
   * was begun in another browser. Rejects with `Failure` for an answer that is refused.
   */
  async arrive(answer: URLSearchParams, browser: string | undefined): Promise<SignIn | undefined> {
    const state = answer.get('state') ?? ''
    const found = this.#underWay.get(state)
    this.#underWay.delete(state)
    if (found === undefined || found.browser !== browser || this.#live(found.entry.id) === undefined) return undefined
    const { entry, journey } = found
    try {
      await entry.interactive.finish(journey, answer)
    } catch (error) {
      tell(entry, 'failed')
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
    for (const [id, other] of this.#entries) {
      if (this.#entries.size < MOST && other.expiresMs > this.#now()) break
      this.#entries.delete(id)
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
    for (const [state, { entry: other }] of this.#underWay) if (other === entry) this.#underWay.delete(state)
    tell(entry, end)
  }
}

const tell = (entry: Entry, end: SignInEnd): void => {
  const { waiting } = entry
  entry.hasFailed = end === 'failed'
  const all = [...waiting]
  waiting.clear()
  for (const callback of all) callback(end)
}
