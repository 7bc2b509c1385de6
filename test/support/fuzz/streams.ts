/** Parsers of byte streams: lines, events both ways, HTTP answers. How the bytes are cut must never show. */
import { createParser } from 'eventsource-parser'
import { ResponseError } from '../../../src/transport/http1/client/response-head.ts'
import { ResponseReader } from '../../../src/transport/http1/client/response-reader.ts'
import { LineFramer } from '../../../src/wire/framing/lines.ts'
import { encodeEvent, SseDecoder } from '../../../src/wire/framing/sse.ts'
import { chunkSizes, inChunks, must, same } from './target.ts'
import type { Target } from './target.ts'

const frame = (chunks: readonly Buffer[], maxBytes: number): string[] => {
  const seen: string[] = []
  const framer = new LineFramer(
    {
      line: (bytes) => seen.push(`line ${bytes.toString('latin1')}`),
      overflow: (head) => seen.push(`overflow ${head.toString('latin1')}`),
      discarded: (head, tail) => seen.push(`discarded ${head.toString('latin1')} … ${tail.toString('latin1')}`),
    },
    { maxBytes, headBytes: 8 },
  )
  for (const chunk of chunks) framer.push(chunk)
  framer.end()
  return seen
}
/** The same by cutting the whole at its LFs. */
const splitLines = (input: Buffer): string[] =>
  input
    .toString('latin1')
    .split('\n')
    .map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line))
    .filter((line) => line !== '')
    .map((line) => `line ${line}`)

const lines: Target = {
  name: 'stdio framer',
  words: ['\n', '\r\n', '\r', '\n\n', '{"jsonrpc":"2.0"}', 'x'.repeat(40), '\0', 'é', '\u2028', ' '],
  check: (input) => {
    same(frame([input], Number.MAX_SAFE_INTEGER), splitLines(input))
    for (const maxBytes of [16, Number.MAX_SAFE_INTEGER]) {
      const whole = frame([input], maxBytes)
      for (const size of chunkSizes(input)) same(frame(inChunks(input, size), maxBytes), whole)
    }
  },
}

const decode = (chunks: readonly Buffer[], maxEventBytes: number): unknown[] => {
  const seen: unknown[] = []
  const decoder = new SseDecoder({
    maxEventBytes,
    onEvent: ({ event, data, id, retry }) => seen.push({ event, data: data.toString('latin1'), id, retry }),
    onOversize: () => seen.push('oversize'),
  })
  for (const chunk of chunks) decoder.push(chunk)
  return seen
}
const byTheirs = (text: string): { data: string; event: string }[] => {
  const seen: { data: string; event: string }[] = []
  const parser = createParser({ onEvent: ({ data, event = 'message' }) => seen.push({ data, event }) })
  parser.feed(text)
  return seen.filter(({ data }) => data !== '')
}
const utf8 = (latin1: string): string => Buffer.from(latin1, 'latin1').toString()

const decoder: Target = {
  name: 'SSE decoder',
  words: [
    'data:',
    'data: ',
    'event: ',
    'id: ',
    'retry: ',
    ':',
    '\n',
    '\r',
    '\r\n',
    '\n\n',
    '\ufeff',
    '{"a":1}',
    'endpoint',
    '500',
    '\0',
    'data\n',
  ],
  check: (input) => {
    // A byte order mark in latin1 is none to the other decoder; it has its own test.
    const bytes = Buffer.concat([Buffer.from(':\n'), input, Buffer.from('\n\n')])
    const ours = decode([bytes], Infinity) as { data: string; event: string }[]
    const theirs = byTheirs(bytes.toString('latin1'))
    same(
      ours.filter(({ data }) => data !== '').map(({ data, event }) => ({ data, event })),
      theirs.map(({ data, event }) => ({ data, event: utf8(event) })),
    )
    for (const maxEventBytes of [24, Infinity]) {
      const whole = decode([input], maxEventBytes)
      for (const size of chunkSizes(input)) same(decode(inChunks(input, size), maxEventBytes), whole)
    }
  },
}

const encoder: Target = {
  name: 'SSE encoder',
  words: ['\n', '\r', '\r\n', 'data: ', '\n\ndata: forged\n\n', 'id: 1', ':', ' ', '{"a":', '}', '\u2028', '\0'],
  check: (input) => {
    const half = Math.floor(input.length / 2)
    const parts = [input.subarray(0, half), input.subarray(half)]
    const text = Buffer.concat(encodeEvent({ data: parts, id: 'x-1', event: 'message', retry: 5 })).toString('latin1')
    const plain = input.toString('latin1').replaceAll(/[\r\n]/g, ' ')
    const seen: unknown[] = []
    createParser({ onEvent: ({ data, id }) => seen.push({ data, id }) }).feed(text)
    same(seen, [{ data: plain, id: 'x-1' }])
    same(decode([Buffer.from(text, 'latin1')], Infinity), [{ event: 'message', data: plain, id: 'x-1', retry: 5 }])
  },
}

/** The reader of a connection that has carried `answer`; a new one, if it cannot go on behind that. */
const readerBehind = (answer: Buffer): ResponseReader => {
  const reader = new ResponseReader()
  reader.begin({ onHead: () => undefined, onData: () => undefined })
  try {
    reader.push(answer)
  } catch {
    return new ResponseReader()
  }
  return reader.isDone ? reader : new ResponseReader()
}

const readAnswer = (chunks: readonly Buffer[], reader = new ResponseReader()): unknown => {
  const seen = { status: 0, headers: {}, body: '', error: '', isDone: false }
  reader.begin({
    onHead: ({ status, headers }) => Object.assign(seen, { status, headers: { ...headers } }),
    onData: (bytes) => (seen.body += bytes.toString('latin1')),
  })
  try {
    for (const chunk of chunks) reader.push(chunk)
    reader.finish()
  } catch (error) {
    must(error instanceof ResponseError, 'throws ResponseError and nothing else')
    seen.error = 'refused'
  }
  return { ...seen, isDone: reader.isDone, body: seen.error === '' ? seen.body : '' }
}

const EARLIER = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\nConnection: close\r\n\r\nhello')

const answers: Target = {
  name: 'HTTP answers',
  words: [
    'HTTP/1.1 200 OK\r\n',
    'HTTP/1.0 404\r\n',
    'HTTP/1.1 100 Continue\r\n\r\n',
    'Content-Length: 5\r\n',
    'content-length: 2\r\n',
    'Transfer-Encoding: chunked\r\n',
    'Connection: close\r\n',
    'X: y\r\n',
    '\r\n',
    '\n',
    '5\r\nhello\r\n',
    '0\r\n\r\n',
    'hello',
    '{}',
    ';x=y',
    ' ',
    ':',
    '\0',
  ],
  check: (input) => {
    const whole = readAnswer([Buffer.from(input)])
    for (const size of chunkSizes(input)) same(readAnswer(inChunks(input, size)), whole)
    for (const before of [input, EARLIER]) same(readAnswer([Buffer.from(input)], readerBehind(Buffer.from(before))), whole)
  },
}

export const streamTargets: readonly Target[] = [lines, decoder, encoder, answers]
