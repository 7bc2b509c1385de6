/**
 * Binds what a person began on a page of ours to the browser it was begun in: a cookie names the browser, and a mark in a form proves that the
 * form was opened in it. Both are worth nothing elsewhere (BRIDGING 6.3.5).
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { HttpRequest } from '../../../transport/http1/server/request/http-request.ts'

const BROWSER = /^[\w-]{43}$/

export class BrowserMarks {
  readonly #key = randomBytes(32)
  readonly #name: string
  readonly #isSecure: () => boolean

  /** `name`: of the cookie. `isSecure`: browsers reach us over https. */
  constructor(name: string, isSecure: () => boolean) {
    this.#name = name
    this.#isSecure = isSecure
  }

  /** A name for a browser that has none yet: 32 random bytes. */
  make(): string {
    return randomBytes(32).toString('base64url')
  }

  /** The value of `Set-Cookie` that names a browser. */
  cookie(browser: string): string {
    return `${this.#cookieName}=${browser}; Path=/; HttpOnly; SameSite=Lax${this.#isSecure() ? '; Secure' : ''}`
  }

  /** The browser of a request; `undefined`: it has no name, or several. */
  of(request: HttpRequest): string | undefined {
    const name = `${this.#cookieName}=`
    const [value, ...others] = (request.header('cookie') ?? '').split(';').flatMap((pair) => {
      const text = pair.trim()
      return text.startsWith(name) ? text.slice(name.length) : []
    })
    return value !== undefined && others.length === 0 && BROWSER.test(value) ? value : undefined
  }

  /** What only a page of ours about `id`, opened in this browser, can bring back. */
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

/** In a time that does not tell how much was right. */
export const isEqual = (given: string, own: string): boolean => {
  const [a, b] = [Buffer.from(given), Buffer.from(own)]
  return a.length === b.length && timingSafeEqual(a, b)
}
