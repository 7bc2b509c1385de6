/**
 * The HTTP clients of one gateway. Most servers share two: one on bare sockets and one on undici. A server behind a proxy, or with TLS
 * settings of its own, gets a client that it shares only with servers of the same proxy and settings, so that no connection is used
 * with the certificate of another server.
 */
import type { BodyPool } from '../../body-pool.ts'
import { UndiciClient } from './http-client.ts'
import type { HttpClient, TlsSettings } from './http-client.ts'
import { NetClient } from './net-client.ts'
import { proxyFor } from './proxy-rules.ts'
import type { ProxyRules } from './proxy-rules.ts'

/** The client for `http://` URLs without a proxy. */
export type HttpClientChoice = 'own' | 'undici'

/** The server options that select the client. */
export interface ClientSelection {
  readonly httpClient: HttpClientChoice
  readonly proxies: ProxyRules
  readonly tls: TlsSettings | undefined
}

export class HttpClients {
  readonly #undici = new UndiciClient()
  readonly #own = new NetClient(this.#undici)
  /** By proxy and TLS settings. */
  readonly #special = new Map<string, UndiciClient>()

  /** Memory of the bodies of big replies. */
  get bodies(): BodyPool {
    return this.#own.bodies
  }

  /** The client for a server at `url`. */
  for(url: URL, { httpClient, proxies, tls }: ClientSelection): HttpClient {
    const proxy = proxyFor(url, proxies)
    if (proxy === undefined && tls === undefined) return httpClient === 'own' ? this.#own : this.#undici
    const key = JSON.stringify([proxy, tls])
    let client = this.#special.get(key)
    if (client === undefined) this.#special.set(key, (client = new UndiciClient({ proxy, tls }, this.bodies)))
    return client
  }

  /** Aborts pending requests and closes all connections. */
  async close(): Promise<void> {
    await Promise.all([this.#own, ...this.#special.values()].map((client) => client.close()))
  }
}
