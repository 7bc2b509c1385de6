/**
 * Posts JSON to a service that the configuration names, and reads a bounded response. No redirect is followed: the body is intended for
 * that address only.
 */
import type { Dispatcher } from 'undici'
import { originOfProxy, proxyFor } from './proxy-rules.ts'
import type { ProxyRules } from './proxy-rules.ts'

export interface JsonPosterOptions {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** From the wait for a connection to the last received byte. */
  readonly timeoutMs: number
  readonly maxAnswerBytes: number
}

/** Maximum number of connections to one service. */
const CONNECTIONS = 64

/** The response exceeds its limit. */
export class AnswerTooLarge extends Error {}

export class JsonPoster implements AsyncDisposable {
  readonly #options: JsonPosterOptions
  readonly #proxies: () => ProxyRules
  #agent: { readonly key: string; readonly dispatcher: Promise<Dispatcher> } | undefined

  constructor(options: JsonPosterOptions, proxies: () => ProxyRules) {
    this.#options = options
    this.#proxies = proxies
  }

  /** Rejects with an `Error` whose message contains the origin and the reason, but no body and no query. */
  async post(body: string): Promise<string> {
    const { url, headers, timeoutMs, maxAnswerBytes } = this.#options
    const { request } = await import('undici')
    const proxy = proxyFor(url, this.#proxies())
    try {
      const reply = await request(url, {
        dispatcher: await this.#agentFor(proxy),
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
        signal: AbortSignal.timeout(timeoutMs),
        body,
      })
      if (reply.statusCode !== 200) {
        reply.body.on('error', () => undefined).destroy()
        throw new Error(`answered with HTTP ${reply.statusCode}`)
      }
      const chunks: Buffer[] = []
      let size = 0
      const received: AsyncIterable<Buffer> = reply.body
      for await (const chunk of received) {
        size += chunk.length
        if (size > maxAnswerBytes) throw new AnswerTooLarge(`answered with more than ${maxAnswerBytes} bytes`)
        chunks.push(chunk)
      }
      return Buffer.concat(chunks).toString()
    } catch (error) {
      const through = proxy === undefined ? '' : ` through the proxy ${originOfProxy(proxy)}`
      const text = `${url.origin}${through}: ${this.#reasonOf(error)}`
      throw error instanceof AnswerTooLarge ? new AnswerTooLarge(text) : new Error(text, { cause: error })
    }
  }

  #reasonOf(error: unknown): string {
    if (!(error instanceof Error)) return 'failed'
    return error.name === 'TimeoutError' ? `no answer within ${this.#options.timeoutMs} ms` : error.message
  }

  #agentFor(proxy: URL | undefined): Promise<Dispatcher> {
    const key = proxy?.href ?? ''
    if (this.#agent?.key !== key) {
      void this.#agent?.dispatcher.then((previous) => previous.close())
      this.#agent = { key, dispatcher: this.#makeAgent(proxy) }
    }
    return this.#agent.dispatcher
  }

  async #makeAgent(proxy: URL | undefined): Promise<Dispatcher> {
    const { Agent, ProxyAgent } = await import('undici')
    const options = { connections: CONNECTIONS, connectTimeout: this.#options.timeoutMs, allowH2: false }
    return proxy === undefined ? new Agent(options) : new ProxyAgent({ uri: proxy.href, ...options })
  }

  /** Closes the connections once the requests under way have ended. */
  async close(): Promise<void> {
    await (await this.#taken())?.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.#taken())?.destroy()
  }

  #taken(): Promise<Dispatcher> | undefined {
    const agent = this.#agent
    this.#agent = undefined
    return agent?.dispatcher
  }
}
