/**
 * Hosts of the arena, lean enough for millions of calls: every request they ever send has the id 1. How a call ended is said as
 * the referee wants to hear it.
 */
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { createParser } from 'eventsource-parser'
import { header, messageReader } from '../../../bench/http.ts'
import { KEY, MODERN } from '../fakes/messages.ts'
import type { Message } from '../fakes/messages.ts'
import type { End } from '../referee.ts'
import type { Wish } from './arena.ts'

/** One host; `call` may be under way as often as `lanes` says. */
export interface Caller {
  readonly kind: CallerKind
  /** Calls that this host may have under way at one time, all with the id 1. */
  readonly lanes: number
  /** Every end that the host saw: one, unless something is wrong. Never rejects. */
  call(lane: number, tool: string, wish: Wish): Promise<readonly End[]>
  /** Ends the session in the words of the protocol (`politely`), or by closing sockets. */
  leave(politely: boolean): Promise<void>
}

export type CallerKind = 'legacy' | 'modern' | 'sse'
export const callerKinds: readonly CallerKind[] = ['legacy', 'modern', 'sse']

const LEGACY = '2025-11-25'
const CLIENT = { name: 'arena', version: '1' }
const HELLO = { protocolVersion: LEGACY, capabilities: {}, clientInfo: CLIENT }
const DESCRIBED = { [KEY.version]: MODERN, [KEY.capabilities]: {}, [KEY.clientInfo]: CLIENT }
const BROKEN: readonly End[] = [{ type: 'broken' }]

/** Rejects when the gateway cannot be reached or does not let the host in. */
export const openCaller = (kind: CallerKind, url: URL, lanes: number): Promise<Caller> =>
  kind === 'sse' ? openSse(url) : openHttp(kind, url, lanes)

const message = (method: string, params: object, id?: 1): string => JSON.stringify({ jsonrpc: '2.0', id, method, params })
const callOf = (tool: string, wish: Wish, meta: object = {}): string =>
  message(
    'tools/call',
    { name: tool, arguments: wish, _meta: { ...meta, ...(wish.progress !== undefined && { progressToken: 1 }) } },
    1,
  )

/** A whole POST. */
const post = ({ host, pathname, search }: URL, body: string, headers = ''): string =>
  `POST ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n` +
  `Accept: application/json, text/event-stream\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`

interface Answer {
  readonly head: string
  readonly body: string
}

/** A keep-alive connection with one exchange at a time that waits as long as it takes. */
interface Lane {
  /** `undefined`: the connection broke. */
  exchange(text: string): Promise<Answer | undefined>
  close(): void
}

const openLane = ({ hostname, port }: URL): Lane => {
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  let settle: (answer: Answer | undefined) => void = () => undefined
  let isClosed = false
  const read = messageReader((head, body) => settle({ head, body: body.toString() }))
  socket.on('data', read).on('error', () => undefined)
  socket.on('close', () => {
    isClosed = true
    settle(undefined)
  })
  return {
    exchange: (text) =>
      new Promise((resolve) => {
        settle = resolve
        if (isClosed) resolve(undefined)
        else socket.write(text, 'latin1')
      }),
    close: () => void socket.resetAndDestroy(),
  }
}

const openHttp = async (kind: 'legacy' | 'modern', url: URL, lanes: number): Promise<Caller> => {
  const open = Array.from({ length: lanes }, () => openLane(url))
  /** A lane whose connection broke is opened again for the next call. */
  const exchange = async (lane: number, text: string): Promise<Answer | undefined> => {
    const answer = await open[lane]!.exchange(text)
    if (answer !== undefined && !/\r\nconnection: close/i.test(answer.head)) return answer
    open[lane]!.close()
    open[lane] = openLane(url)
    return answer
  }
  let session = ''
  const legacyHeaders = (): string => `Mcp-Session-Id: ${session}\r\nMCP-Protocol-Version: ${LEGACY}\r\n`
  const headersFor = (tool: string): string =>
    kind === 'legacy' ? legacyHeaders() : `MCP-Protocol-Version: ${MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: ${tool}\r\n`
  const closeAll = (): void => open.forEach((lane) => lane.close())

  if (kind === 'legacy') {
    const answer = await exchange(0, post(url, message('initialize', HELLO, 1)))
    session = header(answer?.head ?? '', 'mcp-session-id')
    if (session === '') {
      closeAll()
      throw new Error(`no session: ${answer?.head.split('\r\n', 1)[0] ?? 'the connection broke'}`)
    }
    await exchange(0, post(url, message('notifications/initialized', {}), legacyHeaders()))
  }
  return {
    kind,
    lanes,
    call: async (lane, tool, wish) => {
      const body = callOf(tool, wish, kind === 'modern' ? DESCRIBED : {})
      return endsOf(await exchange(lane, post(url, body, headersFor(tool))))
    },
    leave: async (politely) => {
      if (politely && kind === 'legacy')
        await exchange(0, `DELETE ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\n${legacyHeaders()}\r\n`)
      closeAll()
    },
  }
}

/** HTTP+SSE: one stream for all answers, and so one call at a time. */
const openSse = async (url: URL): Promise<Caller> => {
  const endpoint = Promise.withResolvers<URL>()
  let settle: (ends: readonly End[]) => void = () => undefined
  let hear: (answer: Message | undefined) => void = () => undefined
  const parser = createParser({
    onEvent: ({ event, data }) => {
      if (event === 'endpoint') return endpoint.resolve(new URL(data, url))
      const said = JSON.parse(data) as Message
      if (said.method === undefined) hear(said)
    },
  })
  const decoder = new TextDecoder()
  const stream = httpRequest(new URL('/sse', url), { headers: { accept: 'text/event-stream' }, agent: false }, (response) => {
    response.on('data', (chunk: Buffer) => parser.feed(decoder.decode(chunk, { stream: true })))
    response.on('error', () => undefined)
    response.on('close', () => closed())
  })
  let isClosed = false
  const closed = (): void => {
    isClosed = true
    endpoint.reject(new Error('the stream was closed'))
    hear(undefined)
    settle(BROKEN)
  }
  stream.on('error', closed)
  stream.end()
  const messages = await endpoint.promise
  let lane = openLane(messages)
  const say = async (text: string): Promise<Answer | undefined> => {
    const answer = await lane.exchange(post(messages, text))
    if (answer === undefined) {
      lane.close()
      lane = openLane(messages)
    }
    return answer
  }
  const leave = (): void => {
    stream.destroy()
    lane.close()
  }
  const welcome = new Promise<Message | undefined>((resolve) => (hear = resolve))
  await say(message('initialize', HELLO, 1))
  if (isClosed || (await welcome) === undefined) {
    leave()
    throw new Error('the stream was closed')
  }
  await say(message('notifications/initialized', {}))
  return {
    kind: 'sse',
    lanes: 1,
    call: (_, tool, wish) =>
      new Promise((resolve) => {
        settle = resolve
        hear = (answer) => {
          if (answer !== undefined) resolve([endOf(answer)])
        }
        if (isClosed) return resolve(BROKEN)
        void say(callOf(tool, wish)).then((taken) => {
          if (taken === undefined) return leave()
          const status = Number(taken.head.slice(9, 12))
          if (status !== 202) resolve([{ type: 'failed', kind: `http ${status}`, executed: 'no' }])
        })
      }),
    leave: async () => leave(),
  }
}

/** What one HTTP exchange said: a body, or a stream of which everything but responses is passed over. */
const endsOf = (answer: Answer | undefined): readonly End[] => {
  if (answer === undefined) return BROKEN
  const { head, body } = answer
  const status = Number(head.slice(9, 12))
  const isStream = header(head, 'content-type').startsWith('text/event-stream')
  if (!isStream && status !== 200) return [{ type: 'failed', kind: `http ${status}`, executed: 'no' }]
  const texts = isStream ? [...body.matchAll(/^data: (\S.*)$/gm)].map(([, data]) => data) : [body]
  const responses = texts.map((text) => JSON.parse(text!) as Message).filter(({ method }) => method === undefined)
  return responses.length === 0 ? BROKEN : responses.map(endOf)
}

interface GatewaySays {
  readonly kind: string
  readonly executed: 'no' | 'unknown'
}

/** How a response ended its call. */
export const endOf = ({ result, error }: Message): End => {
  const meta = (result?.['_meta'] ?? error?.data ?? {}) as Record<string, unknown>
  const own = meta[KEY.gateway] as GatewaySays | undefined
  if (own !== undefined) return { type: 'failed', kind: own.kind, executed: own.executed }
  // A name that is not there was never sent to anybody.
  if (error !== undefined) return { type: 'failed', kind: `rpc ${error.code}`, executed: 'no' }
  const [content] = (result?.['content'] ?? []) as { readonly text?: string }[]
  return { type: 'answered', nonce: content?.text === undefined ? undefined : Number.parseInt(content.text, 10) }
}
