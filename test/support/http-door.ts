/** The HTTP listener by itself, whoever reads its plain requests, and a host that is a socket. */
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { vi } from 'vitest'
import { BodyPool } from '../../src/transport/body-pool.ts'
import { ConnectionCaps } from '../../src/transport/http1/server/connection/connection-caps.ts'
import type { ListenAddress } from '../../src/transport/http1/server/connection/listen-address.ts'
import type { HttpRequest } from '../../src/transport/http1/server/request/http-request.ts'
import { listenHttp } from '../../src/transport/http1/server/http-server.ts'
import type { HttpServerChoice, HttpServerOptions, Listening } from '../../src/transport/http1/server/http-server.ts'
import { Journal } from './fakes/journal.ts'

const OPTIONS: Omit<HttpServerOptions, 'httpServer'> = {
  maxHeaderBytes: 16 * 1024,
  maxHeaderLines: 100,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 10_000,
  maxUnreadBytes: 8 * 1024 * 1024,
  keepAliveTimeoutMs: 5_000,
  writeStallMs: 10_000,
}
const LIMITS = { ...OPTIONS, maxConnections: 1_000, maxConnectionsPerAddress: 1_000, maxConnectionsPerLoopback: 1_000 }

/** Remembers our ends of the connections. */
class Watched extends ConnectionCaps {
  readonly sockets = new Journal<Socket>()

  override admit(socket: Socket): boolean {
    this.sockets.push(socket)
    return super.admit(socket)
  }
}

export interface Door extends AsyncDisposable {
  readonly listening: Listening
  readonly bodies: BodyPool
  readonly requests: Journal<HttpRequest>
  readonly sockets: Journal<Socket>
  /** Options of limits that were reached. */
  readonly reached: Journal<string>
  open(text?: string): Wire
}

/** Listens at `address`, or on a port of its own; each request goes to `serve`. */
export const openDoor = async (
  httpServer: HttpServerChoice,
  serve: (request: HttpRequest) => void,
  options: Partial<HttpServerOptions> = {},
  address: ListenAddress = { host: '127.0.0.1', port: 0 },
): Promise<Door> => {
  const [bodies, caps] = [
    new BodyPool(),
    new Watched(
      () => LIMITS,
      () => undefined,
    ),
  ]
  const [requests, reached] = [new Journal<HttpRequest>(), new Journal<string>()]
  const listening = await listenHttp(address, { ...OPTIONS, httpServer, ...options }, bodies, caps, {
    request: (request) => {
      serve(request)
      requests.push(request)
    },
    trouble: () => undefined,
    reached: (option) => reached.push(option),
  })
  const wires: Wire[] = []
  return {
    listening,
    bodies,
    requests,
    sockets: caps.sockets,
    reached,
    open: (text = '') => {
      const wire = new Wire(listening.tcp?.port ?? 0)
      wires.push(wire)
      if (text !== '') wire.send(text)
      return wire
    },
    async [Symbol.asyncDispose]() {
      for (const wire of wires) wire.socket.destroy()
      await listening.close()
    },
  }
}

/** Whether node:http reads a connection. */
export const isNodes = (socket: Socket): boolean => ((socket as { parser?: unknown }).parser ?? undefined) !== undefined

/** Resolves once the other end has taken so many bytes in all. */
export const taken = (socket: Socket, bytes: number): Promise<unknown> =>
  vi.waitUntil(() => socket.bytesRead >= bytes || socket.destroyed, { interval: 1, timeout: 5_000 })

/** A host that says bytes and keeps what comes back. */
export class Wire {
  readonly socket: Socket
  /** Resolves with all that came once the connection is closed. */
  readonly closed: Promise<string>
  readonly #parts = new Journal<string>()
  #isClosed = false

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
    this.socket.setEncoding('latin1')
    this.socket.on('data', (text: string) => this.#parts.push(text))
    this.socket.on('end', () => this.socket.end())
    this.socket.on('error', () => undefined)
    this.closed = new Promise((resolve) => {
      this.socket.on('close', () => {
        this.#isClosed = true
        this.#parts.push('')
        resolve(this.text)
      })
    })
  }

  /** All that came, with nothing in its dates. */
  get text(): string {
    return this.#parts.entries.join('').replaceAll(/^Date: .*\r\n/gm, 'Date: \r\n')
  }

  send(text: string): this {
    this.socket.write(text, 'latin1')
    return this
  }

  /** Whole answers, once there are so many or no more can come. */
  answers(count: number): Promise<string[]> {
    return this.until((text) => answersIn(text).length >= count).then(answersIn)
  }

  /** What came, once it is enough or no more can come. */
  until(isEnough: (text: string) => boolean): Promise<string> {
    return this.#parts.when(() => (this.#isClosed || isEnough(this.text) ? this.text : undefined))
  }
}

/** The whole answers in what came back, each as it stands. */
const answersIn = (text: string): string[] => {
  const found: string[] = []
  for (let at = 0, end = 0; at < text.length; at = end) {
    const start = text.indexOf('\r\n\r\n', at) + 4
    if (start < 4) break
    const hasBody = !text.startsWith('HTTP/1.1 204 ', at)
    const length = hasBody ? /\r\ncontent-length: (\d+)\r\n/i.exec(text.slice(at, start))?.[1] : '0'
    end = length === undefined ? text.indexOf('\r\n0\r\n\r\n', start - 2) + 7 : start + Number(length)
    if (end < start || end > text.length) break
    found.push(text.slice(at, end))
  }
  return found
}
