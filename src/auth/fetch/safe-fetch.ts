/**
 * Fetches untrusted URLs: metadata, registrations, tokens (BRIDGING 6.2.9; B249, T-09). The address is checked when the connection is made,
 * so that it is the address that is used. IP literals are checked separately, because they are not resolved. Redirects are not followed.
 * A proxy resolves names itself; a name that the local resolver knows is checked before.
 */
import { lookup as systemLookup } from 'node:dns'
import type { LookupAddress, LookupOptions } from 'node:dns'
import { isIP } from 'node:net'
import type { Dispatcher } from 'undici'
import { readRetryAfter } from '../../transport/http1/client/http-failure.ts'
import { shownLocation } from '../../transport/http1/client/http-reply.ts'
import { NO_PROXIES, originOfProxy, proxyFor } from '../../transport/http1/client/proxy-rules.ts'
import type { ProxyRules } from '../../transport/http1/client/proxy-rules.ts'
import { asError } from '../../values/as-error.ts'
import { isReachable } from './reach.ts'
import type { Reach } from './reach.ts'

export interface FetchRequest {
  readonly url: string
  readonly reach: Reach
  /** A form or JSON to post; absent: GET. */
  readonly body?: string
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface FetchReply {
  readonly status: number
  readonly text: string
  /** `Retry-After`. */
  readonly retryAfterMs?: number | undefined
}

/** No answer in time. Another request to the same server would take as long. */
export class AnswerTimeout extends Error {}

/** Rejects with an `Error` whose message may be logged (no body, no query); `AnswerTimeout`: no answer in time. */
export type Fetch = (request: FetchRequest) => Promise<FetchReply>

/** As `dns.lookup` with `all`. */
export type Lookup = (
  name: string,
  options: LookupOptions & { readonly all: true },
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

export interface SafeFetchOptions {
  /** From sending the request to receiving the whole answer. */
  readonly timeoutMs: number
  readonly maxBytes: number
  readonly lookup: Lookup
  /** `User-Agent`: some authorization servers refuse requests without it. */
  readonly userAgent?: string
}

export const DEFAULT_SAFE_FETCH: SafeFetchOptions = { timeoutMs: 5_000, maxBytes: 256 * 1024, lookup: systemLookup }

export class SafeFetch implements AsyncDisposable {
  readonly #options: SafeFetchOptions
  /** By proxy and reach. */
  readonly #agents = new Map<string, Promise<Dispatcher>>()

  constructor(options: Partial<SafeFetchOptions> = {}) {
    this.#options = { ...DEFAULT_SAFE_FETCH, ...options }
  }

  /** Fetches without proxies. */
  readonly fetch: Fetch = (request) => this.#fetch(request, NO_PROXIES)

  /** Returns a fetch through proxies. `rules` are read for each request. */
  through(rules: () => ProxyRules): Fetch {
    return (request) => this.#fetch(request, rules())
  }

  async #fetch({ url, reach: wanted, body, headers }: FetchRequest, rules: ProxyRules): Promise<FetchReply> {
    const target = checkedUrl(url, wanted)
    // With https any address is allowed.
    const reach = wanted === 'intranet' && target.protocol === 'https:' ? 'private' : wanted
    const proxy = proxyFor(target, rules)
    if (proxy !== undefined) await this.#check(target.hostname, reach)
    const { timeoutMs, maxBytes, userAgent } = this.#options
    const { request } = await import('undici')
    const reply = await request(target, {
      dispatcher: await this.#agent(reach, proxy),
      method: body === undefined ? 'GET' : 'POST',
      headers: { accept: 'application/json', ...(userAgent !== undefined && { 'user-agent': userAgent }), ...headers },
      signal: AbortSignal.timeout(timeoutMs),
      ...(body !== undefined && { body }),
    }).catch((error: unknown) => {
      const through = proxy === undefined ? '' : `through the proxy ${originOfProxy(proxy)}: `
      throw this.#failure(`${target.origin}: ${through}`, error)
    })
    const { statusCode } = reply
    if (statusCode >= 300 && statusCode < 400) {
      reply.body.on('error', () => undefined).destroy()
      const location = [reply.headers['location']].flat()[0]
      const where = shownLocation(location, URL.parse(location ?? '', target.href))
      throw new Error(`${target.origin}: answered with a redirect (HTTP ${statusCode}) to ${where}, which is not followed`)
    }
    const chunks: Buffer[] = []
    let size = 0
    const received: AsyncIterable<Buffer> = reply.body
    try {
      for await (const chunk of received) {
        size += chunk.length
        if (size > maxBytes) throw new Error(`more than ${maxBytes} bytes`)
        chunks.push(chunk)
      }
    } catch (error) {
      throw this.#failure(`${target.origin}: `, error)
    }
    const retryAfterMs = readRetryAfter([reply.headers['retry-after']].flat()[0], Date.now())
    return { status: statusCode, text: Buffer.concat(chunks).toString(), retryAfterMs }
  }

  #failure(before: string, error: unknown): Error {
    const isLate = error instanceof Error && (error.name === 'TimeoutError' || error.name === 'ConnectTimeoutError')
    if (isLate) return new AnswerTimeout(`${before}no answer within ${this.#options.timeoutMs / 1_000} s`, { cause: error })
    const { message, code } = asError(error)
    // For a name with several addresses the message may be empty.
    return new Error(`${before}${message || (code ?? 'failed')}`, { cause: error })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const agents = await Promise.all(this.#agents.values())
    this.#agents.clear()
    await Promise.all(agents.map((agent) => agent.destroy()))
  }

  #agent(reach: Reach, proxy: URL | undefined): Promise<Dispatcher> {
    const key = `${reach} ${proxy?.href ?? ''}`
    let agent = this.#agents.get(key)
    if (agent === undefined)
      this.#agents.set(key, (agent = proxy === undefined ? this.#makeAgent(reach) : this.#makeProxyAgent(proxy)))
    return agent
  }

  /** Rejects for an IP literal, or a name of the local resolver, that `reach` does not include. */
  async #check(hostname: string, reach: Reach): Promise<void> {
    const host = withoutBrackets(hostname)
    if (isIP(host) !== 0) {
      if (!isReachable(host, reach)) throw notReachable(host, reach)
      return
    }
    const addresses = await new Promise<LookupAddress[]>((resolve) =>
      this.#options.lookup(host, { all: true }, (error, found) => resolve(error === null ? found : [])),
    )
    if (addresses.some(({ address }) => !isReachable(address, reach))) throw notReachable(host, reach)
  }

  async #makeProxyAgent(proxy: URL): Promise<Dispatcher> {
    const { ProxyAgent } = await import('undici')
    return new ProxyAgent({ uri: proxy.href, connections: 4, connectTimeout: this.#options.timeoutMs, allowH2: false })
  }

  async #makeAgent(reach: Reach): Promise<Dispatcher> {
    const { Agent: MakeAgent, buildConnector } = await import('undici')
    const { timeoutMs, lookup } = this.#options
    const connect = buildConnector({
      timeout: timeoutMs,
      allowH2: false,
      lookup: (name, options, done) =>
        lookup(name, { ...options, all: true }, (error, addresses) => {
          if (error !== null) return done(error, '', 0)
          const refused = addresses.find(({ address }) => !isReachable(address, reach))
          const [first] = addresses
          if (refused !== undefined || first === undefined) return done(notReachable(name, reach), '', 0)
          return options.all === true ? done(null, addresses) : done(null, first.address, first.family)
        }),
    })
    return new MakeAgent({
      connections: 4,
      connect: (options, done) => {
        const host = withoutBrackets(options.hostname)
        if (isIP(host) !== 0 && !isReachable(host, reach)) return done(notReachable(host, reach), null)
        return connect(options, done)
      },
    })
  }
}

/** Parses a URL. Throws unless it is https, or http to this machine or with `intranet`, as `reach` allows. */
export const checkedUrl = (text: string, reach: Reach): URL => {
  const url = URL.parse(text)
  if (url === null) throw new Error('not a URL')
  const isPlain = url.protocol === 'http:' && (reach === 'intranet' || (reach !== 'public' && isLocalName(url.hostname)))
  if (url.protocol !== 'https:' && !isPlain) throw new Error(`${url.protocol}//${url.host}: only https is spoken to`)
  if (url.username !== '' || url.password !== '') throw new Error(`${url.host}: a URL with user information is not used`)
  return url
}

const isLocalName = (host: string): boolean => {
  const bare = withoutBrackets(host)
  return bare === 'localhost' || (isIP(bare) !== 0 && isReachable(bare, 'loopback') && !isReachable(bare, 'public'))
}

const withoutBrackets = (host: string): string => host.replace(/^\[|\]$/g, '')

const notReachable = (host: string, reach: Reach): Error =>
  new Error(
    reach === 'intranet' ? `${host} is a public address: only https is spoken to` : `${host} is an address of a private network`,
  )
