/**
 * The authorization server whose tokens we take, as it describes itself: fetched when a token first needs it, and then kept
 * ([RFC 8414] 3, [OpenID Connect Discovery] 4). The operator has named it, so it may stand in a private network; what its document
 * names elsewhere may not (BRIDGING 6.2.9).
 */
import { asError } from '../../values/as-error.ts'
import { memberOf } from '../../values/json-object.ts'
import type { Reach } from '../oauth/addresses.ts'
import { isLoopbackHost } from '../../transport/loopback.ts'
import type { Fetch } from '../oauth/safe-fetch.ts'

/** The authorization server cannot be asked now: nothing is said about the token. */
export class IssuerUnreachable extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'IssuerUnreachable'
  }
}

export interface IssuerMetadata {
  /** As it came. */
  readonly text: string
  readonly jwksUri: string | undefined
  readonly introspectionEndpoint: string | undefined
}

/** How long its document is believed, and how soon it is asked again after it could not be read. */
const MAX_AGE_MS = 600_000
const RETRY_MS = 2_000

export class Issuer {
  readonly name: string
  readonly #fetch: Fetch
  readonly #now: () => number
  readonly #ownReach: Reach
  #metadata: IssuerMetadata | undefined
  #triedMs = -Infinity
  #failure: unknown
  #reading: Promise<IssuerMetadata> | undefined

  /** `name`: exactly as its tokens spell it. `now`: monotonic, in milliseconds. `allowsHttp`: over http at private addresses, too. */
  constructor(name: string, fetch: Fetch, now: () => number, allowsHttp = false) {
    this.name = name
    this.#ownReach = allowsHttp ? 'intranet' : 'private'
    this.#fetch = fetch
    this.#now = now
  }

  /** Rejects with `IssuerUnreachable`. An old document is better than none. */
  metadata(): Promise<IssuerMetadata> {
    const ageMs = this.#now() - this.#triedMs
    if (this.#reading !== undefined) return this.#reading
    if (this.#metadata !== undefined && ageMs < MAX_AGE_MS) return Promise.resolve(this.#metadata)
    if (this.#metadata === undefined && ageMs < RETRY_MS) return Promise.reject(this.#unreachable())
    this.#triedMs = this.#now()
    return (this.#reading = this.#read().finally(() => (this.#reading = undefined)))
  }

  /** GET or POST of what the configuration (`isConfigured`) or the document names. Rejects with `IssuerUnreachable`. */
  async ask(url: string, isConfigured: boolean, body?: string, headers?: Readonly<Record<string, string>>): Promise<string> {
    try {
      const { status, text } = await this.#fetch({
        url,
        reach: isConfigured ? this.#ownReach : this.#reachOf(url),
        ...(body !== undefined && { body }),
        ...(headers !== undefined && { headers }),
      })
      if (status === 200) return text
      throw new Error(`${URL.parse(url)?.origin}: answered ${status}`)
    } catch (error) {
      throw new IssuerUnreachable(`the authorization server cannot be asked (${asError(error).message})`, error)
    }
  }

  async #read(): Promise<IssuerMetadata> {
    for (const url of wellKnowns(this.name)) {
      try {
        const text = await this.ask(url, true)
        const document: unknown = JSON.parse(text)
        const own = memberOf(document, 'issuer')
        if (own !== this.name)
          throw new Error(`${url} describes the issuer ${shown(own)}, and auth.oauth.issuer is spelled otherwise`)
        const textAt = (key: string): string | undefined => {
          const value = memberOf(document, key)
          return typeof value === 'string' ? value : undefined
        }
        return (this.#metadata = {
          text,
          jwksUri: textAt('jwks_uri'),
          introspectionEndpoint: textAt('introspection_endpoint'),
        })
      } catch (error) {
        this.#failure = error
      }
    }
    if (this.#metadata !== undefined) return this.#metadata
    throw this.#unreachable()
  }

  #unreachable(): IssuerUnreachable {
    const { message } = asError(this.#failure)
    return new IssuerUnreachable(`no metadata of ${this.name}: ${message}`, this.#failure)
  }

  /** At the issuer's own origin is what the operator has named. */
  #reachOf(url: string): Reach {
    const own = new URL(this.name)
    if (URL.parse(url)?.origin === own.origin) return this.#ownReach
    return isLoopbackHost(own.hostname) ? 'loopback' : 'public'
  }
}

const shown = (value: unknown): string => (JSON.stringify(value) ?? 'nothing').slice(0, 200)

/** Path insertion of both documents, then OpenID's appended one; the two forms of an issuer without a path. */
const wellKnowns = (issuer: string): readonly string[] => {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  const at = (document: string): string => `${origin}/.well-known/${document}${path}`
  const both = [at('oauth-authorization-server'), at('openid-configuration')]
  return path === '' ? both : [...both, `${origin}${path}/.well-known/openid-configuration`]
}
