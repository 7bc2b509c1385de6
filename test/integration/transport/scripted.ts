/** Servers whose every byte a test decides, and a listener that remembers what a channel told. No code of `src/` runs here. */
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import type { Server, Socket } from 'node:net'
import type { Channel, ChannelEvents } from '../../../src/transport/channel/channel.ts'
import type { Envelope } from '../../../src/wire/message/envelope.ts'
import type { Failure } from '../../../src/wire/message/failure.ts'
import { listening } from '../../support/listening.ts'

export interface Message {
  readonly jsonrpc: '2.0'
  readonly id?: number | string
  readonly method?: string
}

export interface Seen {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly text: string
  /** The body, where it is JSON. */
  readonly message: Message
  /** Settles when the connection is gone. */
  readonly closed: Promise<unknown>
}

export type Script = (seen: Seen, response: ServerResponse) => void

export interface Scripted extends AsyncDisposable {
  readonly url: URL
  readonly seen: Seen[]
  /** The next time the server sees something that `matches`, past requests included. */
  until(matches: (seen: Seen) => boolean): Promise<Seen>
}

/** A node:http server on the loopback that answers as `script` says. */
export const scripted = async (script: Script): Promise<Scripted> => {
  const seen: Seen[] = []
  const waiting = new Set<() => void>()
  const server = createHttpServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const message = text === '' ? { jsonrpc: '2.0' } : JSON.parse(text)
      const closed = once(response, 'close')
      const one: Seen = { method: request.method ?? '', path: request.url ?? '', headers: request.headers, text, message, closed }
      seen.push(one)
      for (const wake of waiting) wake()
      script(one, response)
    })
  })
  return { ...(await listen(server)), seen, until: (matches) => eventually(waiting, () => seen.find(matches)) }
}

/** A TCP server that calls `answer` with each connection once a whole request (head and `content-length` body) has come. */
export const rawScripted = async (answer: (socket: Socket, request: string) => void): Promise<{ url: URL } & AsyncDisposable> => {
  const server = createTcpServer((socket) => {
    let text = ''
    socket.on('error', () => socket.destroy())
    socket.on('data', (chunk) => {
      text += chunk.toString()
      const head = text.indexOf('\r\n\r\n')
      const length = Number(/content-length: *(\d+)/i.exec(text)?.[1] ?? 0)
      if (head === -1 || text.length < head + 4 + length) return
      const request = text
      text = ''
      answer(socket, request)
    })
  })
  return listen(server)
}

const listen = async (server: Server): Promise<{ url: URL } & AsyncDisposable> => {
  const opened = await listening(server)
  return { ...opened, url: new URL('/mcp', opened.url) }
}

const eventually = async <T>(waiting: Set<() => void>, find: () => T | undefined): Promise<T> => {
  for (;;) {
    const found = find()
    if (found !== undefined) return found
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.add(resolve)
    await promise
    waiting.delete(resolve)
  }
}

/** Everything a channel told, in order. */
export class Recorder implements ChannelEvents {
  readonly received: { message: Record<string, unknown>; id: string | undefined; during: number | undefined }[] = []
  readonly losses: { id: number; failure: Failure }[] = []
  readonly refused: { reason: string; sample: string }[] = []
  readonly #waiting = new Set<() => void>()

  receive({ bytes, id }: Envelope, during?: number): void {
    this.received.push({ message: JSON.parse(bytes.toString()), id, during })
    this.#wake()
  }

  lost(id: number, failure: Failure): void {
    this.losses.push({ id, failure })
    this.#wake()
  }

  unparsable(reason: string, sample: string): void {
    this.refused.push({ reason, sample })
    this.#wake()
  }

  get messages(): Record<string, unknown>[] {
    return this.received.map(({ message }) => message)
  }

  until<T>(find: () => T | undefined): Promise<T> {
    return eventually(this.#waiting, find)
  }

  /** How request `id` ended: its response, or its failure. */
  end(id: number): Promise<Record<string, unknown> | Failure> {
    const ours = String(id)
    return this.until(
      () =>
        this.losses.find((loss) => loss.id === id)?.failure ??
        this.received.find(({ message, id }) => id === ours && message['method'] === undefined)?.message,
    )
  }

  #wake(): void {
    for (const wake of this.#waiting) wake()
  }
}

export const request = (id: number, method = 'tools/call'): { id: number; parts: Buffer[] } => {
  const text = JSON.stringify({ jsonrpc: '2.0', id, method, params: {} })
  return { id, parts: [Buffer.from(text.slice(0, 10)), Buffer.from(text.slice(10))] }
}
export const notification = (method: string): { parts: Buffer[] } => ({
  parts: [Buffer.from(JSON.stringify({ jsonrpc: '2.0', method }))],
})
export const result = (id: unknown, more: object = {}): string => JSON.stringify({ jsonrpc: '2.0', id, result: more })
export const error = (id: unknown, code: number): string => JSON.stringify({ jsonrpc: '2.0', id, error: { code, message: 'no' } })

export const json = (response: ServerResponse, status: number, body: string, headers: Record<string, string> = {}): void => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
}
/** Opens an event stream; write events to it as they stand on the wire. */
export const sse = (response: ServerResponse, events = '', headers: Record<string, string> = {}): ServerResponse => {
  response.writeHead(200, { 'content-type': 'text/event-stream', ...headers })
  response.flushHeaders()
  if (events !== '') response.write(events)
  return response
}

/**
 * Answers three pings: before the first notification, while it waits for its response, and behind a request that waits for it, too.
 * Resolves once the server has seen all three, with whether the request still waits.
 */
export const overtakenByAnswers = async (channel: Channel, server: Pick<Scripted, 'until'>): Promise<boolean> => {
  const answer = (id: number) => ({ parts: [Buffer.from(`{"jsonrpc":"2.0","id":"ping-${id}","result":{}}`)], isAnswer: true })
  channel.send(answer(1))
  await server.until(({ message }) => message.id === 'ping-1')
  channel.send(notification('notifications/initialized'))
  channel.send(answer(2))
  await server.until(({ message }) => message.id === 'ping-2')
  await server.until(({ message }) => message.method === 'notifications/initialized')
  channel.send(request(1))
  channel.send(answer(3))
  await server.until(({ message }) => message.id === 'ping-3')
  return channel.withdraw?.(1) === true
}
