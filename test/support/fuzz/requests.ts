/** Plain requests of hosts, which we read ourselves: whatever is taken for one, node:http's own parser reads as the same. */
import { HTTPParser, methods } from 'node:_http_common'
import { FastHead } from '../../../src/transport/http1/server/fast/fast-head.ts'
import type { FastBody } from '../../../src/transport/http1/server/fast/fast-head.ts'
import { must, same } from './target.ts'
import type { Target } from './target.ts'

interface NodeRead {
  method: string
  url: string
  /** Names and values in turn. */
  headers: string[]
  body: Buffer[]
  /** Messages of which a byte has come, and whole ones. */
  begun: number
  ended: number
  /** HTTP/1.1, with a connection that is kept and stays HTTP. */
  isUsual: boolean
}

const readByNode = (bytes: Buffer): NodeRead => {
  const read: NodeRead = { method: '', url: '', headers: [], body: [], begun: 0, ended: 0, isUsual: false }
  const parser = new HTTPParser()
  parser.initialize(HTTPParser.REQUEST, {})
  parser[HTTPParser.kOnMessageBegin] = () => void read.begun++
  parser[HTTPParser.kOnHeaders] = (headers, url) => {
    read.headers.push(...headers)
    read.url += url
  }
  parser[HTTPParser.kOnHeadersComplete] = (major, minor, headers, method, url, _code, _message, isUpgrade, isKeptAlive) => {
    read.headers.push(...(headers ?? []))
    read.url += url ?? ''
    read.method = methods[method] ?? ''
    read.isUsual = major === 1 && minor === 1 && !isUpgrade && isKeptAlive
    return 0
  }
  parser[HTTPParser.kOnBody] = (piece) => void read.body.push(Buffer.from(piece))
  parser[HTTPParser.kOnMessageComplete] = () => void read.ended++
  same(parser.execute(bytes), bytes.length)
  parser.close()
  return read
}

const verdict = (bytes: Buffer): FastBody | undefined => {
  const head = FastHead.read(bytes)
  return head instanceof FastHead ? head.bodyIn(bytes) : head
}

/** A whole plain request, as both must read it. */
const compare = (head: FastHead, request: Buffer, body: Buffer): void => {
  const theirs = readByNode(request)
  same({ ...theirs, headers: [], body: [] }, {
    method: head.method,
    url: head.target,
    headers: [],
    body: [],
    begun: 1,
    ended: 1,
    isUsual: true,
  } satisfies NodeRead)
  same(Buffer.concat(theirs.body), body)
  const names = theirs.headers.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase())
  same(new Set(names).size, names.length)
  same(names.length, head.lines)
  const pairs = names.map((name, at) => [name, theirs.headers[2 * at + 1]] as const)
  same({ ...head.headers }, Object.fromEntries(pairs.filter(([name]) => name !== 'content-length')))
  const length = new Map(pairs).get('content-length')
  if (length !== undefined) same(Number(length), body.length)
  else same(head.method !== 'POST' && body.length === 0, head.headers['transfer-encoding'] === undefined)
}

const LENGTH = /\r\ncontent-length: (\d+)\r\n/i
const BIG_BYTES = 64 * 1024
/** Of a long request, prefixes here and there. */
const PREFIXES = 48

/** Without a stated length: chunks, or no body. What is taken for whole is so by node:http as well, with the same body. */
const examineUnstated = (head: FastHead, bytes: Buffer, start: number): void => {
  same(head.size, start)
  const body = head.bodyIn(bytes)
  same(body, verdict(bytes))
  if (head.method !== 'POST') {
    const top = bytes.subarray(0, start)
    same(body, bytes.length === start ? Buffer.alloc(0) : 'beyond')
    same(verdict(top), Buffer.alloc(0))
    return compare(head, top, Buffer.alloc(0))
  }
  must(body === 'more' || body === 'beyond' || Buffer.isBuffer(body), 'chunks are whole, or not yet, or something else')
  if (!Buffer.isBuffer(body)) return
  compare(head, bytes, body)
  same(verdict(Buffer.concat([bytes, Buffer.from('P')])), 'beyond')
  const step = Math.ceil((bytes.length - start) / PREFIXES)
  for (let at = start; at < bytes.length; at += step) same(verdict(bytes.subarray(0, at)), 'more')
}

/** What holds for the request that `bytes` begin with, if it is plain: with just its body, with less, and with a body of another length. */
const examine = (bytes: Buffer, other: FastHead): void => {
  const head = FastHead.read(bytes)
  const told = other.bodyIn(bytes)
  if (!(head instanceof FastHead)) {
    same(told, undefined)
    return
  }
  if (told !== undefined) same(told, head.bodyIn(bytes))
  const start = bytes.indexOf('\r\n\r\n') + 4
  const top = bytes.toString('latin1', 0, start)
  if (!LENGTH.test(top)) return examineUnstated(head, bytes, start)
  const digits = LENGTH.exec(top)?.[1] ?? ''
  same(head.size, start - digits.length)
  const length = Number(digits)
  if (length > BIG_BYTES) return
  const rest = Buffer.concat([bytes.subarray(start), Buffer.alloc(length, 'x')]).subarray(0, length)
  const whole = Buffer.concat([bytes.subarray(0, start), rest])
  for (const body of [head.bodyIn(whole), verdict(whole)]) {
    must(Buffer.isBuffer(body), 'a plain head and its body are a plain request')
    compare(head, whole, body)
  }
  same(verdict(Buffer.concat([whole, Buffer.from('P')])), 'beyond')
  const step = Math.ceil(whole.length / PREFIXES)
  for (let at = 0; at < whole.length; at += step) {
    const prefix = whole.subarray(0, at)
    const part = { part: whole.subarray(start, at), length }
    same(verdict(prefix), at < start ? 'more' : part)
    same(head.bodyIn(prefix), at < start ? undefined : part)
  }
  const longer = Buffer.from(
    `${top.replace(LENGTH, (text) => text.replace(/\d+/, String(length + 1)))}${'y'.repeat(length + 1)}`,
    'latin1',
  )
  const next = head.bodyIn(longer)
  must(Buffer.isBuffer(next), 'the next request has the same head, and a body of its own')
  same(next, verdict(longer))
  compare(head, longer, next)
}

const START = 'POST /mcp HTTP/1.1\r\nHost: localhost\r\n'
/** What stands before and behind the input, so that much of it becomes plain. */
const FRAMES: readonly (readonly [before: string, behind: string])[] = [
  ['', ''],
  [`${START}Content-Length: 5\r\n`, ''],
  [`${START}Content-Length: 5\r\n`, '\r\nhello'],
  [`${START}X-A: `, '\r\nContent-Length: 5\r\n\r\nhello'],
  [`${START}Content-Length: `, '\r\n\r\nhello'],
  ['POST /', ' HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}'],
  [`${START}Transfer-Encoding: chunked\r\n\r\n`, ''],
  [`${START}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`, '0\r\n\r\n'],
  [`${START}Transfer-Encoding: chunked\r\n`, '\r\n5\r\nhello\r\n0\r\n\r\n'],
  ['OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\n', '\r\n'],
]

const headOf = (text: string): FastHead => {
  const head = FastHead.read(Buffer.from(text))
  must(head instanceof FastHead, `${text} is plain`)
  return head
}
const KNOWN = headOf(`${START}Content-Length: 2\r\n\r\n`)

export const requestTargets: readonly Target[] = [
  {
    name: 'plain requests',
    words: [
      START,
      'POST /mcp?a=b HTTP/1.1\r\n',
      'POST / HTTP/1.0\r\n',
      'GET / HTTP/1.1\r\n',
      'Content-Length: 5\r\n',
      'content-length: 0\r\n',
      'Content-Length: 05\r\n',
      'Host: b\r\n',
      'Accept: application/json, text/event-stream\r\n',
      'Connection: keep-alive\r\n',
      'Connection: close\r\n',
      'Transfer-Encoding: chunked\r\n',
      'Expect: 100-continue\r\n',
      'X: y\r\n',
      'Mcp-Method: tools/call\r\n',
      'User-Agent: a b/1.0 (c; d)\r\n',
      '17',
      'X-B: ',
      'X_C: y\r\n',
      'z',
      '\r\n',
      '\r\n\r\n',
      '\n',
      ' ',
      '\t',
      ':',
      '{"a":1}',
      '5\r\nhello\r\n0\r\n\r\n',
      '5\r\nhello\r\n',
      'A\r\n0123456789\r\n',
      '0\r\n\r\n',
      '0\r\n',
      'a',
      ';x=y',
      'OPTIONS /mcp HTTP/1.1\r\n',
      '\0',
      'é',
    ],
    check: (input) => {
      for (const [before, behind] of FRAMES) examine(Buffer.concat([Buffer.from(before), input, Buffer.from(behind)]), KNOWN)
    },
  },
]
