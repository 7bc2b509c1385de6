/** The headers of every request to one server: the configured ones, the current credential, and those of the protocol. */
import type { Bearer } from './channel.ts'

type Headers = Readonly<Record<string, string>>

const POSTED: Headers = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }

export class RequestHeaders {
  readonly #configured: Headers
  readonly #bearer: Bearer | undefined
  #protocol: Headers = {}
  /** Headers of every POST: built again when a header of the protocol or the credential changes. */
  #post: Headers | undefined
  #postCredential: string | undefined

  /** `configured`: names in any case; headers of the protocol and the credential replace them. */
  constructor(configured: Headers, bearer: Bearer | undefined) {
    this.#configured = lowerCased(configured)
    this.#bearer = bearer
  }

  /** Sets a header of the protocol; `name`: in lower case. */
  set(name: string, value: string): void {
    this.#protocol = { ...this.#protocol, [name]: value }
    this.#post = undefined
  }

  /** The headers of a request without a body. */
  get bodiless(): Headers {
    return this.#with(this.#bearer?.value)
  }

  /** The headers of a POST: the same object until one of them changes. */
  get post(): Headers {
    const credential = this.#bearer?.value
    if (this.#post === undefined || credential !== this.#postCredential) this.#post = { ...this.#with(credential), ...POSTED }
    this.#postCredential = credential
    return this.#post
  }

  #with(credential: string | undefined): Headers {
    return { ...this.#configured, ...(credential !== undefined && { authorization: credential }), ...this.#protocol }
  }
}

/** HTTP header names are case-insensitive; keys of a record are not. */
const lowerCased = (headers: Headers): Headers => {
  const lower: Record<string, string> = {}
  for (const name in headers) lower[name.toLowerCase()] = headers[name] ?? ''
  return lower
}
