/**
 * Binds a sign-in or consent to the browser in which it began (BRIDGING 6.3.5): a cookie names the browser, and a mark in a form (a CSRF
 * token) proves that the form was opened in that browser.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { HttpRequest } from '../../../transport/http1/server/request/http-request.ts'

const BROWSER = /^[\w-]{43}$/

export class BrowserMarks {
  readonly #key = randomBytes(32)
  readonly #name: string
  readonly #isSecure: () => boolean

  /** `name`: of the cookie. `isSecure`: whether browsers reach the gateway over https. */
  constructor(name: string, isSecure: () => boolean) {
    this.#name = name
    this.#isSecure = isSecure
  }

  /** Returns a name for a new browser: 32 random bytes. */
  make(): string {
    return randomBytes(32).toString('base64url')
  }

  /** Returns the value of `Set-Cookie` for a browser. */
  cookie(browser: string): string {
    return `${this.#cookieName}=${browser}; Path=/; HttpOnly; SameSite=Lax${this.#isSecure() ? '; Secure' : ''}`
  }

  /** Returns the browser of a request; `undefined`: it sends no name, or several. */
  of(request: HttpRequest): string | undefined {
    const name = `${this.#cookieName}=`
    const [value, ...others] = (request.header('cookie') ?? '').split(';').flatMap((pair) => {
      const text = pair.trim()
      return text.startsWith(name) ? text.slice(name.length) : []
    })
    return value !== undefined && others.length === 0 && BROWSER.test(value) ? value : undefined
  }

  /** Returns the mark for a form about `id` in this browser. */
  mark(id: string, browser: string): string {
    return createHmac('sha256', this.#key).update(`${id} ${browser}`).digest('base64url')
  }

  isMark(given: string, id: string, browser: string): boolean {
    return isEqual(given, this.mark(id, browser))
  }

  get #cookieName(): string {
    return this.#isSecure() ? `__Host-${this.#name}` : this.#name
  }
}

/** Compares in constant time. */
export const isEqual = (given: string, own: string): boolean => {
  const [a, b] = [Buffer.from(given), Buffer.from(own)]
  return a.length === b.length && timingSafeEqual(a, b)
}
