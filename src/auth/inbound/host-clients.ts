/**
 * Hosts as clients of the registration proxy: the name and redirect URIs of a client id. Nothing is stored. The id of a registered client
 * contains its sealed registration; any other id is the URL of a client metadata document
 * ([2026-07-28 basic/authorization/client-registration]).
 */
import { isLoopbackHost } from '../../transport/loopback.ts'
import { setBounded } from '../../values/bounded-map.ts'
import { isJsonObject, isList, parseJsonObject } from '../../values/json-object.ts'
import type { UnknownObject } from '../../values/json-object.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { Reach } from '../fetch/reach.ts'
import type { Fetch } from '../fetch/safe-fetch.ts'
import type { Purpose, Seal } from '../seal.ts'

export interface HostClient {
  readonly id: string
  /** Self-reported, for display only. */
  readonly name: string
  readonly redirectUris: readonly string[]
  /** URL of its metadata document; `undefined`: a registered client. */
  readonly document: string | undefined
}

/** The response to a refused registration ([RFC 7591] 3.2.2). */
export interface RegistrationRefused {
  readonly error: 'invalid_redirect_uri' | 'invalid_client_metadata'
  readonly error_description: string
}

const PURPOSE: Purpose<{ n: string; r: readonly string[] }> = 'oauth client'
const MAX_REDIRECTS = 10
const MAX_URI = 512
const MAX_NAME = 100
/** How long a document is cached. */
const DOCUMENT_MS = 300_000
const MAX_DOCUMENTS = 1_000
const MAX_DOCUMENT_CHARACTERS = 16 * 1_024
/** Documents that are fetched at the same time: anyone can name any URL. */
const MAX_PENDING = 64

export class HostClients {
  readonly #seal: Seal
  readonly #fetch: Fetch
  readonly #reach: Reach
  readonly #now: () => number
  /** By URL; oldest first. */
  readonly #documents = new Map<string, { readonly client: HostClient; readonly untilMs: number }>()

  /** By URL: requests of the same client share one fetch. */
  readonly #pending = new Map<string, Promise<HostClient | undefined>>()

  /** `reach`: allowed addresses of metadata documents. `now`: monotonic, in milliseconds. */
  constructor(seal: Seal, fetch: Fetch, reach: Reach, now: () => number) {
    this.#seal = seal
    this.#fetch = fetch
    this.#reach = reach
    this.#now = now
  }

  /** Registers a client. `metadata`: the parsed body of the request. */
  register(metadata: unknown): HostClient | RegistrationRefused {
    const read = readMetadata(metadata)
    if ('error' in read) return read
    const id = this.#seal.seal(PURPOSE, { n: read.name, r: read.redirectUris })
    return { id, ...read, document: undefined }
  }

  /** Resolves with the client of an id; `undefined`: unknown, or its document is invalid. Rejects with `Failure` if too many are fetched. */
  async find(id: string): Promise<HostClient | undefined> {
    if (isDocument(id)) return this.#fromDocument(id)
    const opened = this.#seal.open(PURPOSE, id)
    return opened && { id, name: opened.n, redirectUris: opened.r, document: undefined }
  }

  /** False: no client has this id. A document is not fetched for the answer. */
  mayKnow(id: string): boolean {
    return isDocument(id) || this.#seal.open(PURPOSE, id) !== undefined
  }

  async #fromDocument(id: string): Promise<HostClient | undefined> {
    const known = this.#documents.get(id)
    if (known !== undefined && known.untilMs > this.#now()) return known.client
    const pending = this.#pending.get(id)
    if (pending !== undefined) return pending
    const url = URL.parse(id)
    // The URL needs a path and no fragment, in normal form ([draft-ietf-oauth-client-id-metadata-document] 3).
    if (url === null || id.length > MAX_URI || url.href !== id || url.pathname === '/' || url.hash !== '') return undefined
    if (this.#pending.size >= MAX_PENDING)
      throw new Failure('overloaded', 'too many documents of applications are being fetched', { executed: 'no', retryable: true })
    const fetched = this.#fetched(id).finally(() => this.#pending.delete(id))
    this.#pending.set(id, fetched)
    return fetched
  }

  async #fetched(id: string): Promise<HostClient | undefined> {
    const nowMs = this.#now()
    const document = await this.#read(id)
    // A document must have a name ([2026-07-28 basic/authorization/client-registration]); for a registration it is optional.
    const isOwn = document?.['client_id'] === id && nameOf(document) !== undefined
    const read = isOwn ? readMetadata(document) : undefined
    if (read === undefined || 'error' in read) return undefined
    const client: HostClient = { id, ...read, document: id }
    setBounded(this.#documents, id, { client, untilMs: nowMs + DOCUMENT_MS }, MAX_DOCUMENTS)
    return client
  }

  async #read(url: string): Promise<UnknownObject | undefined> {
    try {
      const { status, text } = await this.#fetch({ url, reach: this.#reach })
      if (status !== 200 || text.length > MAX_DOCUMENT_CHARACTERS) return undefined
      return parseJsonObject(text)
    } catch {
      return undefined
    }
  }
}

/** Whether `uri` is one of the client's redirect URIs. A loopback address may have another port ([RFC 8252] 7.3). */
export const isRedirectOf = ({ redirectUris }: HostClient, uri: string): boolean => {
  if (redirectUris.includes(uri)) return true
  const wanted = withoutPort(uri)
  return wanted !== undefined && redirectUris.some((own) => withoutPort(own) === wanted)
}

const withoutPort = (uri: string): string | undefined => {
  const url = URL.parse(uri)
  if (url === null || url.protocol !== 'http:' || !isLoopbackHost(url.hostname) || url.href !== uri) return undefined
  url.port = ''
  return url.href
}

/** Whether a client id is the URL of a metadata document. */
export const isDocument = (id: string): boolean => id.startsWith('https:') || id.startsWith('http:')

const readMetadata = (metadata: unknown): Pick<HostClient, 'name' | 'redirectUris'> | RegistrationRefused => {
  if (!isJsonObject(metadata)) return { error: 'invalid_client_metadata', error_description: 'expected a JSON object' }
  const { redirect_uris: uris, token_endpoint_auth_method: auth } = metadata
  if (!isList(uris) || uris.length === 0 || uris.length > MAX_REDIRECTS)
    return { error: 'invalid_redirect_uri', error_description: `expected 1 to ${MAX_REDIRECTS} redirect_uris` }
  if (!uris.every(isRedirectUri))
    return {
      error: 'invalid_redirect_uri',
      error_description:
        'a redirect URI is https, http on a loopback address, or of the scheme of an application, without a user and a fragment',
    }
  if (auth !== undefined && typeof auth !== 'string')
    return { error: 'invalid_client_metadata', error_description: 'token_endpoint_auth_method is not a text' }
  return { name: nameOf(metadata) ?? 'An application', redirectUris: uris }
}

const nameOf = ({ client_name: name }: UnknownObject): string | undefined =>
  typeof name === 'string' && name.trim() !== '' ? name.trim().slice(0, MAX_NAME) : undefined

/** Schemes that the browser runs itself, or that read files. */
const FORBIDDEN = new Set(['javascript:', 'data:', 'vbscript:', 'file:', 'blob:', 'about:', 'filesystem:', 'ws:', 'wss:', 'ftp:'])

const isRedirectUri = (uri: unknown): uri is string => {
  const url = typeof uri === 'string' && uri.length <= MAX_URI && /^[\x21-\x7e]+$/.test(uri) ? URL.parse(uri) : null
  if (url === null || url.hash !== '' || url.username !== '' || url.password !== '' || FORBIDDEN.has(url.protocol)) return false
  if (url.protocol === 'https:') return url.hostname !== ''
  // A scheme of an application, such as cursor://, reaches only this machine.
  return url.protocol === 'http:' ? isLoopbackHost(url.hostname) : true
}
