/** The ways in to a fake server: a child's pipes, Streamable HTTP of either era, HTTP+SSE. They carry text and decide nothing. */
import { createServer as createHttpServer } from 'node:http'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { FakeConnection } from './connection.ts'
import type { TurnCarrier } from './turn.ts'
import { listening } from '../listening.ts'

type Era = 'legacy' | 'modern'

/** What a carrier hands over. */
export interface Arrivals {
  connected(connection: FakeConnection): void
  /** One body or line. */
  text(
    text: string,
    connection: FakeConnection,
    headers: IncomingHttpHeaders,
    carrier: TurnCarrier,
    response?: ServerResponse,
  ): void
  /** May answer an HTTP request itself, before anything is made of it; true if it did. */
  intercept(request: IncomingMessage, response: ServerResponse, body: string): boolean
}

export interface Carrier extends AsyncDisposable {
  readonly port: number
}

/** Children connect here (`children/relay.mjs`): one TCP connection is one process. */
export const openPipes = async (era: Era, arrivals: Arrivals): Promise<Carrier> => {
  const server = createTcpServer((socket) => {
    const frame = (letter: string, content: string | Buffer): void => {
      const bytes = Buffer.from(content)
      const head = Buffer.alloc(5)
      head.write(letter)
      head.writeUInt32BE(bytes.length, 1)
      if (!socket.destroyed) socket.write(Buffer.concat([head, bytes]))
    }
    const say = (text: string): void => frame('o', `${text}\n`)
    const connection = new FakeConnection(era, { say, drop: () => frame('x', '1') })
    const rest: Buffer[] = []
    let isIntroduced = false
    socket.on('error', () => socket.destroy())
    socket.on('close', () => connection.ended())
    socket.on('data', (chunk) => {
      let from = 0
      for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
        const line = Buffer.concat([...rest.splice(0), chunk.subarray(from, end)]).toString()
        from = end + 1
        if (isIntroduced) arrivals.text(line, connection, {}, { say, finish: say })
        // Somebody else's client, whose own server had this port before.
        else if (!/^\d+$/.test(line)) return void socket.destroy()
        else {
          isIntroduced = true
          connection.pid = Number(line)
          connection.stderr = (text) => frame('e', text)
          connection.stdout = (bytes) => frame('o', bytes)
          arrivals.connected(connection)
        }
      }
      if (from < chunk.length) rest.push(chunk.subarray(from))
    })
  })
  return listening(server)
}

interface HttpSession {
  readonly connection: FakeConnection
  /** Standalone streams; the newest is written to. */
  readonly streams: Set<ServerResponse>
  /** What was said while no stream was open. */
  readonly waiting: string[]
}

/** Streamable HTTP at every path: with sessions (legacy) or without (modern). */
export const openHttp = async (era: Era, arrivals: Arrivals): Promise<Carrier> => {
  const sessions = new Map<string, HttpSession>()
  let minted = 0
  const makeConnection = (id: string): FakeConnection => {
    const streams = new Set<ServerResponse>()
    const waiting: string[] = []
    const connection = new FakeConnection(era, {
      say: (text) => {
        const stream = [...streams].at(-1)
        if (stream === undefined) waiting.push(text)
        else stream.write(event(text))
      },
      drop: () => {
        sessions.delete(id)
        connection.ended()
        for (const stream of streams) stream.destroy()
      },
    })
    sessions.set(id, { connection, streams, waiting })
    arrivals.connected(connection)
    return connection
  }
  if (era === 'modern') makeConnection('')
  const server = createHttpServer((request, response) => {
    whenRead(request, (body) => {
      if (arrivals.intercept(request, response, body)) return
      const id = String(request.headers['mcp-session-id'] ?? '')
      const known = era === 'modern' ? sessions.get('') : sessions.get(id)
      if (era === 'modern' && request.method !== 'POST') return response.writeHead(405, { allow: 'POST' }).end()
      if (request.method === 'DELETE') {
        known?.connection.drop()
        return response.writeHead(known === undefined ? 404 : 200).end()
      }
      if (request.method === 'GET') {
        if (known === undefined) return response.writeHead(id === '' ? 400 : 404).end()
        known.streams.add(response)
        response.once('close', () => known.streams.delete(response))
        openStream(response)
        for (const text of known.waiting.splice(0)) response.write(event(text))
        return
      }
      // A program of another test that has lost its collector of traces may send them to this port.
      if (request.headers['content-type'] !== 'application/json') return response.writeHead(415).end()
      const isOpening = era === 'legacy' && /"method":"initialize"/.test(body) && id === ''
      if (known === undefined && !isOpening) return response.writeHead(id === '' ? 400 : 404).end()
      const session = isOpening ? `fake-session-${++minted}` : ''
      const connection = known?.connection ?? makeConnection(session)
      arrivals.text(body, connection, request.headers, answering(response, session), response)
    })
  })
  return listening(server)
}

const openStream = (response: ServerResponse, headers: Record<string, string> = {}): void => {
  response.writeHead(200, { 'content-type': 'text/event-stream', ...headers })
  response.flushHeaders()
}

/** JSON as long as nothing is said before the answer; then a stream. */
const answering = (response: ServerResponse, session: string): TurnCarrier => {
  const headers: Record<string, string> = session === '' ? {} : { 'mcp-session-id': session }
  return {
    say: (text) => {
      if (response.destroyed) return
      if (!response.headersSent) openStream(response, headers)
      response.write(event(text))
    },
    finish: (text) => {
      if (response.destroyed || response.writableEnded) return
      if (response.headersSent) response.end(event(text))
      else if (text === '') response.writeHead(202, headers).end()
      else response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(text)
    },
  }
}

/** HTTP+SSE: `GET /sse`, then posts to the path it names. */
export const openSse = async (arrivals: Arrivals): Promise<Carrier> => {
  const streams = new Map<string, { connection: FakeConnection; say: (text: string) => void }>()
  let minted = 0
  const server = createHttpServer((request, response) => {
    whenRead(request, (body) => {
      if (arrivals.intercept(request, response, body)) return
      const url = new URL(request.url ?? '/', 'http://fake')
      if (request.method === 'GET') {
        const id = String(++minted)
        const say = (text: string): void => void response.write(event(text))
        const connection = new FakeConnection('legacy', { say, drop: () => response.destroy() })
        streams.set(id, { connection, say })
        response.once('close', () => {
          streams.delete(id)
          connection.ended()
        })
        arrivals.connected(connection)
        openStream(response)
        return response.write(`event: endpoint\ndata: /messages?c=${id}\n\n`)
      }
      const known = streams.get(url.searchParams.get('c') ?? '')
      if (known === undefined) return response.writeHead(url.pathname === '/messages' ? 404 : 405).end()
      response.writeHead(202).end()
      const finish = (text: string): void => {
        if (text !== '') known.say(text)
      }
      arrivals.text(body, known.connection, request.headers, { say: known.say, finish })
    })
  })
  return listening(server)
}

const event = (text: string): string => `data: ${text}\n\n`

/** Nothing happens with a request whose connection broke before it was there. */
const whenRead = (request: IncomingMessage, take: (body: string) => unknown): void => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => take(Buffer.concat(chunks).toString()))
  request.on('error', () => undefined)
}
