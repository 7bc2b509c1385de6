/**
 * The authorization server whose tokens we take, as it describes itself: fetched when a token first needs it, and then kept
 * ([RFC 8414] 3, [OpenID Connect Discovery] 4). The operator has named it, so it may stand in a private network; what its document
 * names elsewhere may not (BRIDGING 6.2.9).
 */
import { asError } from '../../values/as-error.ts'
import { memberOf, parseJsonObject } from '../../values/json-object.ts'
import type { Reach } from '../oauth/addresses.ts'
import { isLoopbackHost } from '../../transport/loopback.ts'
import { AnswerTimeout } from '../oauth/safe-fetch.ts'
import type { Fetch } from '../oauth/safe-fetch.ts'
import type { IssuerOptions } from './inbound-options.ts'

/** The authorization server cannot be asked now: nothing is said about the token. */
export class IssuerUnreachable extends Error {
  /** What an operator can do about it. */
  readonly remedy: string

  constructor(message: string, cause?: unknown, remedy = remedyOf(cause)) {
    super(message, { cause })
    this.name = 'IssuerUnreachable'
    this.remedy = remedy
  }
}

/** It answered, and not with what was asked for. */
class Unexpected extends Error {
  readonly remedy: string
  constructor(message: string, remedy: string) {
    super(message)
    this.remedy = remedy
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
      const isAway = status >= 500 || status === 429
      throw new Unexpected(`${withoutQuery(url)} answered HTTP ${status}`, isAway ? 'the issuer cannot serve requests now' : '')
    } catch (error) {
      throw new IssuerUnreachable(`the authorization server cannot be asked (${asError(error).message})`, error)
    }
  }

  /** All places are at one server: after one that does not answer in time no other is asked. */
  async #read(): Promise<IssuerMetadata> {
    this.#failure = undefined
    for (const url of wellKnowns(this.name)) {
      try {
        const text = await this.ask(url, true)
        const document = parseJsonObject(text)
        if (document === undefined) throw new Unexpected(`${url} is no JSON object`, SPELLING)
        const own = memberOf(document, 'issuer')
        if (own !== this.name)
          throw new Unexpected(
            `${url} describes the issuer ${shown(own)}`,
            'write issuer exactly as its metadata and its tokens do',
          )
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
        // A document says more than its absence elsewhere.
        if (!(this.#failure instanceof Unexpected)) this.#failure = error
        if (asError(error).cause instanceof AnswerTimeout) break
      }
    }
    if (this.#metadata !== undefined) return this.#metadata
    throw this.#unreachable()
  }

  #unreachable(): IssuerUnreachable {
    const failure = asError(this.#failure)
    const remedy = failure instanceof Unexpected || failure instanceof IssuerUnreachable ? failure.remedy : ''
    return new IssuerUnreachable(`no metadata of ${this.name}: ${failure.message}`, failure, remedy || SPELLING)
  }

  /** At the issuer's own origin is what the operator has named. */
  #reachOf(url: string): Reach {
    const own = new URL(this.name)
    if (URL.parse(url)?.origin === own.origin) return this.#ownReach
    return isLoopbackHost(own.hostname) ? 'loopback' : 'public'
  }
}

/** The text of an issuer's key set. Rejects with `IssuerUnreachable`. */
export const readKeys = async ({ jwksUri: configured }: IssuerOptions, issuer: Issuer): Promise<string> => {
  const uri = configured ?? (await issuer.metadata()).jwksUri
  if (uri === undefined)
    throw new IssuerUnreachable(`the metadata of ${issuer.name} names no jwks_uri`, undefined, 'set jwks_uri beside issuer')
  return issuer.ask(uri, configured !== undefined)
}

const SPELLING = 'write issuer exactly as its tokens do in "iss"; where it has no metadata, set jwks_uri beside issuer'

/** What can be done about a request that failed; empty: its message says it. */
const remedyOf = (error: unknown): string => {
  if (error instanceof Unexpected || error instanceof IssuerUnreachable) return error.remedy
  if (error instanceof AnswerTimeout) return 'check that the issuer runs, the network from here, and HTTPS_PROXY'
  const code = asError(asError(error).cause).code ?? ''
  if (code === 'ENOTFOUND') return 'check the name in issuer, the resolver from here, and HTTPS_PROXY'
  if (/ALTNAME/.test(code)) return 'use the name that its certificate is for'
  if (/EXPIRED|NOT_YET_VALID/.test(code)) return 'renew its certificate, or set the clock'
  if (/CERT|SELF_SIGNED|UNABLE_TO_VERIFY/.test(code)) return 'name the authority of its certificate with NODE_EXTRA_CA_CERTS'
  if (code === 'EPROTO' || code.startsWith('ERR_SSL')) return 'check that TLS is spoken at this port'
  return code === '' ? '' : 'check that the issuer runs, the network from here, and HTTPS_PROXY'
}

const withoutQuery = (url: string): string => {
  const parsed = URL.parse(url)
  return parsed === null ? 'the address' : parsed.origin + parsed.pathname
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
