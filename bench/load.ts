/**
 * A raw MCP host over Streamable HTTP, of either era, that makes calls as fast as they are answered and looks at every reply.
 * Requests are joined from prepared strings and replies are checked at their ends, so a call costs the host a few µs.
 */
import { openConnection, parseReply, type Connection, type Reply } from './connection.ts'
import { header } from './http.ts'
import { type Era, NONCE_LENGTH, REVISION } from './payload.ts'

const FIRST_ID = 100_000_000 // nine digits for the whole run, so that the content-length of a request never changes
const CLIENT_INFO = { name: 'bench', version: '1.0.0' }

export interface BurstOptions {
  /** Exposed name of the tool. */
  readonly tool: string
  /** Bytes of text that it answers. */
  readonly size: number
  readonly inFlight: number
  /** New calls are begun for this long; then those under way are awaited. */
  readonly forMs: number
  /** Read when all connections are warm, and again when the last call has ended: such as the CPU a process has used. */
  readonly meter: () => number
}

export interface Burst {
  /** Time of each call, ms. */
  readonly latencies: readonly number[]
  readonly bad: number
  /** Beginning and end of the first bad reply. */
  readonly firstBad: string | undefined
  /** How far the meter went. */
  readonly used: number
  readonly seconds: number
}

export interface Host extends AsyncDisposable {
  /** One request on a connection of its own; rejects unless the answer is a result. */
  request(method: string, params?: object): Promise<Record<string, unknown>>
  /** Opens `inFlight` connections, warms each with one call, measures, closes them. Rejects when a connection is lost. */
  burst(options: BurstOptions): Promise<Burst>
}

/** A host of `era` at `url`; a legacy one has made its handshake and ends its session when disposed. */
export const openHost = async (url: URL, era: Era): Promise<Host> => {
  let session = ''
  const salt = Math.floor(Math.random() * 1e12)
  let id = FIRST_ID

  const meta = {
    'io.modelcontextprotocol/protocolVersion': REVISION.modern,
    'io.modelcontextprotocol/clientInfo': CLIENT_INFO,
    'io.modelcontextprotocol/clientCapabilities': {},
  }

  /** A whole POST. Legacy: the session once there is one. Modern: the envelope of the request repeated in headers. */
  const post = (method: string, params: { name?: string }, withId?: number): string => {
    const carried = era === 'modern' ? { _meta: meta, ...params } : params
    const body = JSON.stringify({ jsonrpc: '2.0', id: withId, method, params: carried })
    const name = params.name === undefined ? '' : `Mcp-Name: ${params.name}\r\n`
    const sessionLines = session === '' ? '' : `MCP-Protocol-Version: ${REVISION.legacy}\r\nMcp-Session-Id: ${session}\r\n`
    const modernLines = `MCP-Protocol-Version: ${REVISION.modern}\r\nMcp-Method: ${method}\r\n${name}`
    return (
      `POST ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nUser-Agent: bench\r\nContent-Type: application/json\r\n` +
      `Accept: application/json, text/event-stream\r\n${era === 'modern' ? modernLines : sessionLines}` +
      `Content-Length: ${body.length}\r\n\r\n${body}`
    )
  }

  const once = async (message: string): Promise<Reply> => {
    const connection = await openConnection(url)
    try {
      const reply = new Promise<Reply>((resolve) => connection.send(message, (head, body) => resolve(parseReply(head, body))))
      return await Promise.race([reply, connection.lost])
    } finally {
      connection.close()
    }
  }

  const exchange = async (method: string, params: object = {}): Promise<Reply> => {
    const reply = await once(post(method, params, id++))
    if (reply.message?.result === undefined) throw new Error(`${method}: ${reply.status} ${JSON.stringify(reply.message?.error)}`)
    return reply
  }

  const isRight = (head: string, body: Buffer, id: number, nonce: string, size: number): boolean => {
    const ends = body.toString('latin1', 0, 512) + body.toString('latin1', Math.max(0, body.length - 512))
    const start = body.indexOf('"text":"', 0, 'latin1') + 8
    return (
      head.startsWith('HTTP/1.1 200') &&
      start >= 8 &&
      body.toString('latin1', start, start + NONCE_LENGTH) === nonce &&
      body.toString('latin1', start + size - NONCE_LENGTH, start + size + 1) === `${nonce}"` &&
      (ends.includes(`"id":${id}}`) || ends.includes(`"id":${id},`)) &&
      (era === 'legacy' || ends.includes('"resultType":"complete"'))
    )
  }

  /** Calls on every connection until `forMs` have passed; 0: one call each. */
  const run = (
    connections: readonly Connection[],
    { tool, size, forMs }: BurstOptions,
  ): Promise<Omit<Burst, 'used' | 'seconds'>> => {
    const template = post('tools/call', { name: tool, arguments: { nonce: '#'.repeat(NONCE_LENGTH) } } as object, FIRST_ID)
    const [beforeId, beforeNonce, rest] = template.split(/100000000|#{12}/)
    const latencies: number[] = []
    const until = performance.now() + forMs
    let bad = 0
    let firstBad: string | undefined
    let busy = connections.length
    const { promise, resolve } = Promise.withResolvers<Omit<Burst, 'used' | 'seconds'>>()
    const call = (connection: Connection) => {
      const sentAs = id++
      const nonce = (sentAs * 1_000_003 + salt).toString(16).padStart(NONCE_LENGTH, '0')
      const started = performance.now()
      connection.send(`${beforeId}${sentAs}${beforeNonce}${nonce}${rest}`, (head, body) => {
        const now = performance.now()
        latencies.push(now - started)
        if (!isRight(head, body, sentAs, nonce, size)) {
          bad++
          firstBad ??= `${head}\r\n\r\n${body.toString('latin1', 0, 300)} … ${body.toString('latin1', Math.max(300, body.length - 100))}`
        }
        if (now < until) call(connection)
        else if (--busy === 0) resolve({ latencies, bad, firstBad })
      })
    }
    connections.forEach(call)
    return Promise.race([promise, ...connections.map(({ lost }) => lost)])
  }

  if (era === 'legacy') {
    const { head } = await exchange('initialize', { protocolVersion: REVISION.legacy, capabilities: {}, clientInfo: CLIENT_INFO })
    session = header(head, 'mcp-session-id')
    await once(post('notifications/initialized', {}))
  }

  return {
    request: async (method, params) => (await exchange(method, params)).message!.result!,
    burst: async (options) => {
      const connections = await Promise.all(Array.from({ length: options.inFlight }, () => openConnection(url)))
      try {
        const warm = await run(connections, { ...options, forMs: 0 })
        const before = options.meter()
        const started = performance.now()
        const measured = await run(connections, options)
        const seconds = (performance.now() - started) / 1e3
        await new Promise((resolve) => setTimeout(resolve, 10)) // what the process still does for the last calls
        const used = options.meter() - before
        return { ...measured, bad: warm.bad + measured.bad, firstBad: warm.firstBad ?? measured.firstBad, used, seconds }
      } finally {
        for (const connection of connections) connection.close()
      }
    },
    async [Symbol.asyncDispose]() {
      if (session === '') return
      const ended = once(`DELETE ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nMcp-Session-Id: ${session}\r\n\r\n`)
      await ended.catch(() => {}) // the other side may be gone, which whoever called has heard by then
    },
  }
}
