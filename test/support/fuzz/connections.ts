/** Connections of hosts on which we read plain requests: however a stream is cut, the same requests are carried out as with node:http. */
import { HTTPParser, methods } from 'node:_http_common'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { FastConnection } from '../../../src/transport/http1/server/fast/fast-connection.ts'
import { fastShared } from '../fast-shared.ts'
import { same } from './target.ts'
import type { Target } from './target.ts'

/** Method, target and body of each whole request. */
type Read = string[]

const readByNode = (bytes: Buffer): Read => {
  const read: Read = []
  let [head, body] = ['', '']
  const parser = new HTTPParser()
  parser.initialize(HTTPParser.REQUEST, {})
  let split = ''
  parser[HTTPParser.kOnHeaders] = (_headers, url) => void (split += url)
  parser[HTTPParser.kOnHeadersComplete] = (_major, _minor, _headers, method, url) => {
    head = `${methods[method]} ${(split + (url ?? '')).replace(/^([^?]*)[?]$/, '$1')} `
    body = split = ''
    return 0
  }
  parser[HTTPParser.kOnBody] = (piece) => void (body += piece.toString('latin1'))
  parser[HTTPParser.kOnMessageComplete] = () => void read.push(head + body)
  parser.execute(bytes)
  parser.close()
  return read
}

/** Of what its host says in these pieces: what is carried out by us, and by node:http once the connection is its. */
const readByUs = (pieces: readonly Buffer[]): Read => {
  const read: Read = []
  let handed: Buffer | undefined
  const shared = fastShared({
    listener: {
      events: {
        request: (request) =>
          request.readBody(1_000_000, (body) => {
            read.push(
              `${request.method} ${request.path}${request.query === '' ? '' : `?${request.query}`} ${body.toString('latin1')}`,
            )
            request.reply(202, {})
          }),
        trouble: () => undefined,
        reached: () => undefined,
      },
    },
    handOver: (_connection, _socket, early) => void (handed = early),
  })
  const socket = new Duplex({ read: () => undefined, write: (_piece, _encoding, done) => done() })
  // oxlint-disable-next-line no-new
  new FastConnection(Object.assign(socket, { destroySoon: () => undefined }) as unknown as Socket, shared)
  for (const piece of pieces) {
    if (handed === undefined) socket.emit('data', piece)
    else handed = Buffer.concat([handed, piece])
    shared.listener.batch.flush()
  }
  same(shared.listener.bodies.held.bytes >= 0, true)
  return handed === undefined ? read : [...read, ...readByNode(handed)]
}

/** Where the stream is cut is told by its own bytes, so that a failure can be repeated. */
const cut = (bytes: Buffer, size: number): Buffer[] => {
  const pieces: Buffer[] = []
  let hash = size
  for (let at = 0; at < bytes.length;) {
    hash = (Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193) >>> 0) ^ at
    const end = at + 1 + ((hash >>> 7) % size)
    // As a socket does: each piece has memory of its own.
    pieces.push(Buffer.from(bytes.subarray(at, end)))
    at = end
  }
  return pieces
}

const SIZES = [3, 24, 120, 1_000]
/** Beyond this a piece at a time says nothing new. */
const MAX_BYTES = 8 * 1024
const POST = 'POST /a HTTP/1.1\r\nHost: localhost\r\n'

export const connectionTargets: readonly Target[] = [
  {
    name: 'connections of hosts',
    words: [
      `${POST}Content-Length: 0\r\n\r\n`,
      `${POST}Content-Length: 5\r\n\r\nhello`,
      `${POST}Content-Length: 200\r\n\r\n${'x'.repeat(200)}`,
      `${POST}Content-Length: 90\r\n\r\n`,
      `${POST}Transfer-Encoding: chunked\r\n\r\n`,
      '5\r\nhello\r\n0\r\n\r\n',
      '1F\r\n0123456789012345678901234567890\r\n',
      '0\r\n\r\n',
      '0\r\nX: y\r\n\r\n',
      'OPTIONS /a?b HTTP/1.1\r\nHost: localhost\r\nOrigin: http://a\r\n\r\n',
      'GET /b HTTP/1.1\r\nHost: localhost\r\n\r\n',
      'DELETE /c HTTP/1.1\r\nHost: localhost\r\n\r\n',
      'PUT /d HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}',
      'X: y\r\n',
      '\r\n',
      'x',
      '0',
    ],
    check: (input) => {
      const bytes = Buffer.concat([Buffer.from(`${POST}Content-Length: 40\r\n\r\n`), input]).subarray(0, MAX_BYTES)
      const size = SIZES[input.length % SIZES.length]
      for (const stream of [bytes, input.subarray(0, MAX_BYTES)]) same(readByUs(cut(stream, size!)), readByNode(stream))
    },
  },
]
