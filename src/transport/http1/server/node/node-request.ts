/** A request as node:http has read it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { join, latin1Of } from '../../../../wire/message/payload.ts'
import type { Parts } from '../../../../wire/message/payload.ts'
import { hasBody, HttpRequest } from '../request/http-request.ts'
import type { Headers, AnswerBody, ListenerState, OnBody, Unread } from '../request/http-request.ts'
import { closeGently, dropAll } from '../connection/lingering.ts'
import type { LingerLimits } from '../connection/lingering.ts'

const statedLength = ({ headers }: IncomingMessage): number => Number(headers['content-length'] ?? 0)

/** A target in absolute form: authority, then path and query ([RFC 9112 3.2.2]). */
const ABSOLUTE = /^https?:\/\/([^/?#]+)(.*)$/i

const LAST: Headers = { Connection: 'close' }

/** A response of node:http that takes parts, and that can end without completing its body. */
export interface NodeResponse extends ServerResponse, Pick<AnswerBody, 'takenBytes' | 'send' | 'finish' | 'breakOff'> {
  /** Closes the connection after the written bytes. Without a socket, because an earlier answer is not complete, destroys the response. */
  breakOff(): void
}

/** State that the requests of one node:http server share. */
export interface NodeShared {
  readonly limits: LingerLimits
  /** Connections whose body is being read. */
  readonly reading: Set<Socket>
  /** Called before a body is read. */
  readonly onRead: () => void
}

export class NodeRequest extends HttpRequest {
  readonly method: string
  readonly notes = undefined
  readonly #request: IncomingMessage
  readonly #response: NodeResponse
  readonly #node: NodeShared
  /** The authority of a target in absolute form, which counts in place of `Host`. */
  readonly #authority: string | undefined

  constructor(request: IncomingMessage, response: NodeResponse, shared: ListenerState, node: NodeShared) {
    const { url = '/' } = request
    const [, authority, rest = ''] = (url.startsWith('/') ? null : ABSOLUTE.exec(url)) ?? []
    super(authority === undefined ? url : rest.startsWith('/') ? rest : `/${rest}`, shared)
    this.#authority = authority
    this.#request = request
    this.#response = response
    this.#node = node
    this.method = request.method ?? ''
  }

  get peerAddress(): string | undefined {
    return this.shared.addressOf(this.#request.socket)
  }

  header(name: string): string | undefined {
    if (name === 'host' && this.#authority !== undefined) return this.#authority
    const value = this.#request.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }

  count(name: string): number {
    const { rawHeaders } = this.#request
    let count = 0
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const sent = rawHeaders[at]
      if (sent?.length === name.length && sent.toLowerCase() === name) count++
    }
    return count
  }

  headers(): Headers {
    const { headers } = this.#request
    // Cast: the value of `set-cookie` alone is a list, and requests rarely have that header.
    if (headers['set-cookie'] === undefined && this.#authority === undefined) return headers as Headers
    const found: Record<string, string> = {}
    for (const name of Object.keys(headers)) found[name] = this.header(name) ?? ''
    return found
  }

  onDisconnect(callback: () => void): void {
    const response = this.#response
    const onClose = (): void => {
      if (!response.writableFinished) callback()
    }
    if (response.closed) process.nextTick(onClose)
    else response.on('close', onClose)
  }

  readBody(maxBytes: number, done: OnBody): void {
    const request = this.#request
    if (statedLength(request) > maxBytes) {
      // Its first bytes show what is refused. A host that waits for 100 sends none.
      if (request.headers.expect === undefined) return this.#collect(null, 0, done)
      return this.#refuseBody('too_large', done)
    }
    this.#node.onRead()
    // Most bodies are received with their heads. They are complete in the next tick and are then read without listeners.
    process.nextTick(() => {
      // Cast: no encoding is set.
      const body = request.read() as Buffer | null
      if (!request.complete || request.readableLength > 0) this.#collect(body, maxBytes, done)
      else if (body !== null && body.length > maxBytes) this.#refuseBody('too_large', done, body)
      else done(body ?? Buffer.alloc(0))
    })
  }

  admitted(): void {
    this.shared.caps.proven(this.#request.socket)
  }

  fail(): void {
    if (this.#response.headersSent) this.#response.destroy()
    else this.reply(500, { Connection: 'close' })
  }

  protected get canAnswer(): boolean {
    return !this.#response.headersSent && !this.#response.destroyed
  }

  protected sendWhole(status: number, headers: Headers, body: Parts, length: number): void {
    const response = this.#response
    this.#dropBody()
    response.writeHead(status, { ...headers, ...this.#lastHeaders(), ...(hasBody(status) && { 'Content-Length': length }) })
    if (length === 0) return this.#end('')
    // node:http joins a head and latin1 text into one write, but not a head and bytes.
    const text = latin1Of(body)
    this.shared.batch.add(() => this.#end(text))
  }

  /** Ends a whole answer, which the host must take in time. */
  #end(text: string): void {
    const response = this.#response
    response.end(text, 'latin1')
    if (response.writableLength > 0) this.closeIfStalled(response)
  }

  protected begin(status: number, headers: Headers, length?: number): AnswerBody {
    const response = this.#response
    this.#dropBody()
    const all = { ...headers, ...this.#lastHeaders() }
    response.writeHead(status, length === undefined ? all : { ...all, 'Content-Length': length })
    return response
  }

  #lastHeaders(): Headers | undefined {
    const isTooLong = statedLength(this.#request) > this.#node.limits.maxUnreadBytes
    return this.shared.ending.isEnding || isTooLong ? LAST : undefined
  }

  /** Drops the rest of the body, so that the answer need not wait. After a last answer node:http alone would close at once. */
  #dropBody(): void {
    const request = this.#request
    if (request.complete || (statedLength(request) === 0 && request.headers['transfer-encoding'] === undefined)) return
    const { socket } = request
    const { limits } = this.#node
    const { events } = this.shared
    dropAll(request, limits, events)
    socket.destroySoon = () => {
      if (request.complete) Socket.prototype.destroySoon.call(socket)
      else closeGently(socket, limits, events)
    }
  }

  /** Reads the rest of a body; `first`: the bytes received so far. */
  #collect(first: Buffer | null, maxBytes: number, done: OnBody): void {
    const request = this.#request
    // The host has disconnected: no event would give the bytes back.
    if (request.destroyed) return
    const { bodies } = this.shared
    let chunks = first === null ? [] : [first]
    let size = first?.length ?? 0
    let isRefused = size > maxBytes
    if (isRefused) return this.#refuseBody('too_large', done, chunks[0])
    bodies.held.add(size)
    this.#node.reading.add(request.socket)
    const release = (): void => {
      this.#node.reading.delete(request.socket)
      bodies.held.release(size)
      size = 0
      chunks = []
    }
    request.on('data', (chunk: Buffer) => {
      if (isRefused) return
      const isTooLarge = size + chunk.length > maxBytes
      isRefused = isTooLarge || bodies.held.isFull
      if (isRefused) {
        const start = chunks[0] ?? chunk
        release()
        return this.#refuseBody(isTooLarge ? 'too_large' : 'overloaded', done, start)
      }
      size += chunk.length
      bodies.held.add(chunk.length)
      chunks.push(chunk)
    })
    request.on('end', () => {
      if (isRefused) return
      const body = join(chunks)
      release()
      done(body)
    })
    request.on('error', () => undefined)
    request.once('close', release)
  }

  #refuseBody(reason: Unread, done: OnBody, start?: Buffer): void {
    this.addHeaders({ Connection: 'close' })
    this.#request.resume()
    done(reason, start)
  }
}
