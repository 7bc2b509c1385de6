/** HTTP as fake hosts speak it: every header as the test says, answers read as text or as events. */
import { request as httpRequest } from 'node:http'
import type { Agent, IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { createParser } from 'eventsource-parser'
import { Journal } from './journal.ts'
import type { Message } from './messages.ts'

export interface RawEvent {
  readonly id: string | undefined
  readonly event: string | undefined
  readonly data: string
}

/** An answer whose head has come. */
export interface RawReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Events so far, of a stream. */
  readonly events: Journal<RawEvent>
  /** Comments so far, of a stream. */
  readonly comments: Journal<string>
  /** The value of the last `retry:` field. */
  retryMs: number | undefined
  /** What has come of a stream, letter for letter. */
  text: string
  /** The whole body, once it has ended; rejects if the connection broke. */
  readonly body: Promise<string>
  /** Settles when nothing more will come, for whatever reason. */
  readonly closed: Promise<void>
  /** Closes the connection, as a host does that gives up. */
  close(): void
}

export interface RawOptions {
  readonly method?: string
  /** `undefined` leaves a header out that would be there by default. */
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly body?: string | Buffer | undefined
  /** Keeps connections; without one each request has its own, and says so. */
  readonly agent?: Agent
  /** Called with how to give the request up, before any answer has come. */
  readonly started?: (abort: () => void) => void
}

/** Sends one request; resolves with the head of its answer. */
export const send = (url: URL, options: RawOptions = {}): Promise<RawReply> =>
  new Promise((resolve, reject) => {
    const { method = 'POST', body, agent = false } = options
    const defaults =
      method === 'POST' ? { 'content-type': 'application/json', accept: 'application/json, text/event-stream' } : {}
    const headers: OutgoingHttpHeaders = { ...defaults, ...options.headers }
    for (const [name, value] of Object.entries(headers)) if (value === undefined) delete headers[name]
    const request = httpRequest(url, { method, headers, agent }, (response) => resolve(readReply(response)))
    options.started?.(() => request.destroy())
    request.on('error', reject)
    request.end(body)
  })

const readReply = (response: IncomingMessage): RawReply => {
  const events = new Journal<RawEvent>()
  const comments = new Journal<string>()
  const reply = {
    status: response.statusCode ?? 0,
    headers: response.headers,
    events,
    comments,
    retryMs: undefined as number | undefined,
    text: '',
  }
  const parser = createParser({
    onEvent: ({ id, event, data }) => events.push({ id, event, data }),
    onComment: (comment) => comments.push(comment),
    onRetry: (retryMs) => (reply.retryMs = retryMs),
  })
  const isStream = response.headers['content-type'] === 'text/event-stream'
  const chunks: Buffer[] = []
  const { promise: closed, resolve: close } = Promise.withResolvers<void>()
  const body = new Promise<string>((resolve, reject) => {
    const decoder = new TextDecoder()
    response.on('data', (chunk: Buffer) => {
      if (!isStream) return void chunks.push(chunk)
      const text = decoder.decode(chunk, { stream: true })
      reply.text += text
      parser.feed(text)
    })
    response.on('end', () => resolve(Buffer.concat(chunks).toString()))
    response.on('error', reject)
    response.on('close', () => {
      close()
      reject(new Error('the connection was closed'))
    })
  })
  body.catch(() => undefined)
  return Object.assign(reply, { body, closed, close: () => void response.destroy() })
}

/** The messages of an answer that is over: of a stream its events, of anything else its body. */
export const messagesOf = async (reply: RawReply): Promise<Message[]> => {
  const text = await reply.body
  if (reply.headers['content-type'] === 'text/event-stream')
    return reply.events.entries.filter(({ data }) => data !== '').map(({ data }) => JSON.parse(data) as Message)
  return text === '' ? [] : [JSON.parse(text) as Message]
}

/** The one message of an answer that is one JSON body. */
export const messageOf = async (reply: RawReply): Promise<Message> => JSON.parse(await reply.body) as Message
