/**
 * The metadata of an authorization server whose tokens are accepted: fetched when a token first needs it, then cached ([RFC 8414] 3,
 * [OpenID Connect Discovery] 4). The issuer may be in a private network, since the operator has configured it; URLs of other origins in its
 * metadata may not (BRIDGING 6.2.9).
 */
import { asError } from '../../../values/as-error.ts'
import { memberOf, parseJsonObject } from '../../../values/json-object.ts'
import { issuerMetadataUrls } from '../../authorization-server/discovery.ts'
import type { Reach } from '../../fetch/reach.ts'
import { isLoopbackHost } from '../../../transport/loopback.ts'
import { AnswerTimeout } from '../../fetch/safe-fetch.ts'
import type { Fetch } from '../../fetch/safe-fetch.ts'
import type { IssuerOptions } from './inbound-options.ts'

/** The authorization server cannot be reached, so the token could not be verified. */
export class IssuerUnreachable extends Error {
  /** What the operator can do; may be empty. */
  readonly remedy: string

  constructor(message: string, cause?: unknown, remedy = remedyOf(cause)) {
    super(message, { cause })
    this.name = 'IssuerUnreachable'
    this.remedy = remedy
  }
}

/** The authorization server sent an unexpected answer. */
class UnexpectedAnswer extends Error {
  readonly remedy: string
  constructor(message: string, remedy: string) {
    super(message)
    this.remedy = remedy
  }
}

export interface IssuerMetadata {
  /** The whole document, unchanged. */
  readonly text: string
  readonly jwksUri: string | undefined
  readonly introspectionEndpoint: string | undefined
}

/** How long metadata is cached, and the pause after a failed attempt. */
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

  /** `name`: exactly as in its tokens. `now`: monotonic, in milliseconds. `allowsHttp`: http is allowed at private addresses. */
  constructor(name: string, fetch: Fetch, now: () => number, allowsHttp = false) {
    this.name = name
    this.#ownReach = allowsHttp ? 'intranet' : 'private'
    this.#fetch = fetch
    this.#now = now
  }

  /** Resolves with the metadata; with an old document if a new one cannot be fetched. Rejects with `IssuerUnreachable`. */
  metadata(): Promise<IssuerMetadata> {
    const ageMs = this.#now() - this.#triedMs
    if (this.#reading !== undefined) return this.#reading
    if (this.#metadata !== undefined && ageMs < MAX_AGE_MS) return Promise.resolve(this.#metadata)
    if (this.#metadata === undefined && ageMs < RETRY_MS) return Promise.reject(this.#unreachable())
    this.#triedMs = this.#now()
    return (this.#reading = this.#read().finally(() => (this.#reading = undefined)))
  }

  /** Sends a GET, or a POST with `body`. `isConfigured`: the URL is of the configuration. Rejects with `IssuerUnreachable`. */
  async request(url: string, isConfigured: boolean, body?: string, headers?: Readonly<Record<string, string>>): Promise<string> {
    try {
      const { status, text } = await this.#fetch({
        url,
        reach: isConfigured ? this.#ownReach : this.#reachOf(url),
        ...(body !== undefined && { body }),
        ...(headers !== undefined && { headers }),
      })
      if (status === 200) return text
      const isUnavailable = status >= 500 || status === 429
      const remedy = isUnavailable ? 'the issuer cannot serve requests now' : ''
      throw new UnexpectedAnswer(`${withoutQuery(url)} answered HTTP ${status}`, remedy)
    } catch (error) {
      throw new IssuerUnreachable(`the authorization server cannot be asked (${asError(error).message})`, error)
    }
  }

  /** Tries the well-known URLs in order. A timeout ends the search, since all URLs are at one server. */
  async #read(): Promise<IssuerMetadata> {
    this.#failure = undefined
    for (const url of issuerMetadataUrls(new URL(this.name))) {
      try {
        const text = await this.request(url, true)
        const document = parseJsonObject(text)
        if (document === undefined) throw new UnexpectedAnswer(`${url} is no JSON object`, SPELLING)
        const own = memberOf(document, 'issuer')
        if (own !== this.name)
          throw new UnexpectedAnswer(
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
        // A wrong document tells more than a missing one.
        if (!(this.#failure instanceof UnexpectedAnswer)) this.#failure = error
        if (asError(error).cause instanceof AnswerTimeout) break
      }
    }
    if (this.#metadata !== undefined) return this.#metadata
    throw this.#unreachable()
  }

  #unreachable(): IssuerUnreachable {
    const failure = asError(this.#failure)
    const remedy = failure instanceof UnexpectedAnswer || failure instanceof IssuerUnreachable ? failure.remedy : ''
    return new IssuerUnreachable(`no metadata of ${this.name}: ${failure.message}`, failure, remedy || SPELLING)
  }

  /** Allows for the issuer's own origin what is allowed for the issuer. */
  #reachOf(url: string): Reach {
    const own = new URL(this.name)
    if (URL.parse(url)?.origin === own.origin) return this.#ownReach
    return isLoopbackHost(own.hostname) ? 'loopback' : 'public'
  }
}

/** Resolves with the text of an issuer's key set. Rejects with `IssuerUnreachable`. */
export const readKeys = async ({ jwksUri: configured }: IssuerOptions, issuer: Issuer): Promise<string> => {
  const uri = configured ?? (await issuer.metadata()).jwksUri
  if (uri === undefined)
    throw new IssuerUnreachable(`the metadata of ${issuer.name} names no jwks_uri`, undefined, 'set jwks_uri beside issuer')
  return issuer.request(uri, configured !== undefined)
}

const SPELLING = 'write issuer exactly as its tokens do in "iss"; where it has no metadata, set jwks_uri beside issuer'

/** Returns the remedy for a failed request; empty: none beyond its message. */
const remedyOf = (error: unknown): string => {
  if (error instanceof UnexpectedAnswer || error instanceof IssuerUnreachable) return error.remedy
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
