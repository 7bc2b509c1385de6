/**
 * Forwards a host's request to another replica, and relays its answer byte for byte, streams included. The result tells whether the peer may
 * have acted, because a request may be sent to another replica only if it was not served.
 */
import type { Agent, ClientRequest, IncomingMessage } from 'node:http'
import { JOIN_BELOW_BYTES } from '../transport/http1/server/request/http-request.ts'
import type { HttpRequest } from '../transport/http1/server/request/http-request.ts'
import { nodeHttp, nodeHttps } from '../transport/http1/server/node/node-http.ts'

/** Headers of one connection or one process, which are not forwarded (RFC 9110 7.6.1). */
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
  // Only between replicas.
  'trunkline-hop',
])
const CONNECT_MS = 2_000
/** Shorter than the keep-alive time of a listener, so that a reused connection is rarely about to close. */
const IDLE_MS = 20_000
const MAX_IDLE = 64

/**
 * `answered`: the host has its answer, or has disconnected. `unsent`: no byte of the request was sent. `refused`: another process answered,
 * or the peer does not have the state. `lost`: the connection broke before an answer, and the peer may have acted.
 */
export type Forwarded = 'answered' | 'unsent' | 'refused' | 'lost'

export interface Peer {
  /** Origin and path prefix. */
  readonly url: string
  /** Headers that replace the host's, by lower-case name; `undefined`: omitted. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Whether the answer is of the peer itself; any other answer is not relayed. */
  readonly isGenuine: (header: (name: string) => string | undefined) => boolean
  /** Called at the start of the exchange with a function that breaks it off. */
  readonly onBegun: (breakOff: () => void) => void
}

export class Forwarder {
  /** By protocol; created by the first request, since node:http is loaded only then. */
  readonly #agents = new Map<string, Agent>()

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy()
    this.#agents.clear()
  }

  /** Sends a GET of our own to a peer; `undefined`: no answer within 2 s. Rejects with the system's error of the connection. */
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
      // `setImmediate` lets an answer count that arrived during a pause of this process, as in `GuardedStore`.
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

  /** Forwards a request. Resolves when the answer has ended. `body`: of the host's request. */
  send(host: HttpRequest, body: Buffer | undefined, peer: Peer): Promise<Forwarded> {
    return new Promise((resolve) => {
      const { method, path, query } = host
      const headers = { ...withoutHops(host.headers()), ...peer.headers }
      if (body !== undefined) headers['content-length'] = String(body.length)
      const request = this.#request(peer.url + path + (query === '' ? '' : `?${query}`), method, headers)
      let isSent = false
      let isDisconnected = false
      let relayed: IncomingMessage | undefined
      // A request that is destroyed reads its answer to the end and drops it: the host would get a part of it as the whole.
      peer.onBegun(() => (relayed ?? request).destroy(new Error('the replica no longer answers')))
      const timer = setTimeout(() => request.destroy(new Error('no connection')), CONNECT_MS)
      request.once('socket', (socket) => {
        const onConnected = (): void => {
          clearTimeout(timer)
          isSent = true
          // A stream may be silent for a long time; the timeouts of the host's side apply.
          socket.setTimeout(0)
        }
        if (socket.connecting) socket.once(peer.url.startsWith('https:') ? 'secureConnect' : 'connect', onConnected)
        else onConnected()
      })
      host.onDisconnect(() => {
        isDisconnected = true
        request.destroy()
      })
      request.on('error', () => {
        clearTimeout(timer)
        // The end of the answer ends the exchange.
        if (relayed !== undefined) return
        if (isDisconnected) resolve('answered')
        else resolve(isSent ? 'lost' : 'unsent')
      })
      request.once('response', (answer) => {
        if (!peer.isGenuine(headerOf(answer))) {
          answer.resume()
          return resolve('refused')
        }
        relayed = answer
        relay(answer, host, () => resolve('answered'))
      })
      // A replica never changes the protocol.
      request.once('upgrade', (_, socket) => {
        socket.destroy()
        resolve('refused')
      })
      request.end(body)
    })
  }

  #request(url: string, method: string, headers: Readonly<Record<string, string | undefined>>): ClientRequest {
    const { protocol } = new URL(url)
    const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined))
    const { Agent, request } = protocol === 'https:' ? nodeHttps() : nodeHttp()
    const agent = this.#agents.get(protocol) ?? new Agent({ keepAlive: true, timeout: IDLE_MS, maxFreeSockets: MAX_IDLE })
    this.#agents.set(protocol, agent)
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
  answer.once('error', () => undefined)
  answer.once('close', () => {
    // Without a regular end of the peer's answer, the host's answer must not end regularly.
    if (answer.readableEnded) body.end()
    else body.break()
    onEnd()
  })
}

/** Relays a small answer of known length in one write. */
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

/** Returns the headers in the peer's spelling. */
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
