/**
 * Passes a request of a host on to another process of ours, and its answer back, byte for byte, streams included. The surprise: it ends
 * with what is known of a failure, because a request may be sent elsewhere only if no byte of it was sent.
 */
import type { Agent, ClientRequest, IncomingMessage } from 'node:http'
import { JOIN_BELOW_BYTES } from '../transport/http1/server/request/http-request.ts'
import type { HttpRequest } from '../transport/http1/server/request/http-request.ts'
import { nodeHttp, nodeHttps } from '../transport/http1/server/node/node-http.ts'

/** Of one connection or one process; never passed on (RFC 9110 7.6.1). */
const HOP_HEADERS = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'content-length',
  'date',
  'expect',
  // Between replicas alone.
  'trunkline-hop',
])
const CONNECT_MS = 2_000
/** Shorter than a listener keeps an idle connection, so that a reused one is rarely about to close. */
const IDLE_MS = 20_000
const MAX_IDLE = 64

/**
 * `answered`: the host has its answer, or has disconnected. `unsent`: no byte of the request was sent. `refused`: the peer answered that
 * it is not the one that is meant. `lost`: the connection broke before an answer, and the peer may have acted.
 */
export type Forwarded = 'answered' | 'unsent' | 'refused' | 'lost'

export interface Peer {
  /** Origin and path prefix. */
  readonly url: string
  /** Headers in place of the host's, by lower-case name; `undefined`: left out. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Whether this answer is the peer's own; another is not relayed. */
  readonly isGenuine: (header: (name: string) => string | undefined) => boolean
  /** Is given what breaks the exchange off, once it has begun. */
  readonly onBegun: (breakOff: () => void) => void
}

export class Forwarder {
  /** By protocol, made by the first request: without replicas node:http is not loaded for them. */
  readonly #agents = new Map<string, Agent>()

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy()
    this.#agents.clear()
  }

  /** Asks a peer something of our own; `undefined`: there was no answer within 2 s. Rejects with the system's error of a connection. */
  ask(
    url: string,
    headers: Readonly<Record<string, string>>,
  ): Promise<{ status: number; header: (name: string) => string | undefined } | undefined> {
    return new Promise((resolve, reject) => {
      const request = this.#request(url, 'GET', headers)
      const late = (): void => {
        resolve(undefined)
        request.destroy()
      }
      // After a pause of this process what has arrived meanwhile is read first, as in `GuardedStore`.
      const timer = setTimeout(() => setImmediate(late), CONNECT_MS)
      request.on('error', (error) => {
        clearTimeout(timer)
        reject(error)
      })
      request.once('response', (answer) => {
        clearTimeout(timer)
        answer.resume()
        resolve({ status: answer.statusCode ?? 0, header: headerOf(answer) })
      })
      request.end()
    })
  }

  /** Resolves when the answer has ended. `body`: what was read of the host's request. */
  send(host: HttpRequest, body: Buffer | undefined, peer: Peer): Promise<Forwarded> {
    return new Promise((resolve) => {
      const { method, path, query } = host
      const headers = { ...withoutHops(host.headers()), ...peer.headers }
      if (body !== undefined) headers['content-length'] = String(body.length)
      const request = this.#request(peer.url + path + (query === '' ? '' : `?${query}`), method, headers)
      peer.onBegun(() => request.destroy(new Error('the replica does not answer any more')))
      let isSent = false
      let isLeft = false
      const timer = setTimeout(() => request.destroy(new Error('no connection')), CONNECT_MS)
      request.once('socket', (socket) => {
        const onConnected = (): void => {
          clearTimeout(timer)
          isSent = true
          // A stream may be silent for long; the host's side has the time-outs.
          socket.setTimeout(0)
        }
        if (socket.connecting) socket.once(peer.url.startsWith('https:') ? 'secureConnect' : 'connect', onConnected)
        else onConnected()
      })
      host.onDisconnect(() => {
        isLeft = true
        request.destroy()
      })
      request.on('error', () => {
        clearTimeout(timer)
        if (isLeft) resolve('answered')
        else resolve(isSent ? 'lost' : 'unsent')
      })
      request.once('response', (answer) => {
        if (!peer.isGenuine(headerOf(answer))) {
          answer.resume()
          return resolve('refused')
        }
        relay(answer, host, () => resolve('answered'))
      })
      request.end(body)
    })
  }

  #request(url: string, method: string, headers: Readonly<Record<string, string | undefined>>): ClientRequest {
    const { protocol } = new URL(url)
    const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined))
    const { Agent, request } = protocol === 'https:' ? nodeHttps() : nodeHttp()
    let agent = this.#agents.get(protocol)
    if (agent === undefined)
      this.#agents.set(protocol, (agent = new Agent({ keepAlive: true, timeout: IDLE_MS, maxFreeSockets: MAX_IDLE })))
    return request(url, { method, headers: given, agent })
  }
}

const relay = (answer: IncomingMessage, host: HttpRequest, onEnd: () => void): void => {
  const length = answer.headers['content-length']
  if (length !== undefined && Number(length) < JOIN_BELOW_BYTES) return relayWhole(answer, host, onEnd)
  const body = host.replyInPieces(
    answer.statusCode ?? 502,
    rawHeaders(answer),
    () => answer.pause(),
    () => answer.resume(),
  )
  body.begin()
  answer.on('data', (bytes: Buffer) => body.write(bytes))
  answer.once('end', () => {
    body.end()
    onEnd()
  })
  // Without its regular end the host must not see one either.
  answer.once('error', () => undefined)
  answer.once('close', () => {
    if (!answer.complete) body.break()
    onEnd()
  })
}

/** A small answer of known length, in one write. */
const relayWhole = (answer: IncomingMessage, host: HttpRequest, onEnd: () => void): void => {
  const pieces: Buffer[] = []
  answer.on('data', (bytes: Buffer) => pieces.push(bytes))
  answer.once('error', () => undefined)
  answer.once('close', () => {
    if (answer.complete) host.reply(answer.statusCode ?? 502, rawHeaders(answer), pieces)
    else host.fail()
    onEnd()
  })
}

/** Spelled as the peer spells them. */
const rawHeaders = ({ rawHeaders: raw }: IncomingMessage): Record<string, string> => {
  const headers: Record<string, string> = {}
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name, value] = [raw[at] ?? '', raw[at + 1] ?? '']
    if (!HOP_HEADERS.has(name.toLowerCase())) headers[name] = value
  }
  return headers
}

const headerOf =
  (answer: IncomingMessage) =>
  (name: string): string | undefined => {
    const value = answer.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }

const withoutHops = (headers: Readonly<Record<string, string>>): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_HEADERS.has(name)))
