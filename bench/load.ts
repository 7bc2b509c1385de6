/**
 * A raw MCP host, over any transport and of either era, that calls as fast as it gets answers and checks every reply.
 * Requests are joined from prepared strings and replies are checked at their ends, so a call costs the host a few µs.
 */
import { parseReply, type Reply } from './connection.ts'
import { TOKEN } from './credentials.ts'
import { httpLane } from './http-lane.ts'
import type { Lane, LaneConnection, Pipe } from './lane.ts'
import { argumentOf, type HostKind, NONCE_LENGTH, REVISION, type ToolName } from './payload.ts'
import type { PayloadKind } from './payload-kinds.ts'
import { openSseLane } from './sse-lane.ts'
import { stdioLane } from './stdio-lane.ts'

const FIRST_ID = 100_000_000 // nine digits for the whole run, so that the content-length of a request never changes
const CLIENT_INFO = { name: 'bench', version: '1.0.0' }
const META = {
  'io.modelcontextprotocol/protocolVersion': REVISION.modern,
  'io.modelcontextprotocol/clientInfo': CLIENT_INFO,
  'io.modelcontextprotocol/clientCapabilities': {},
}
const NONCE_PLACE = '#'.repeat(NONCE_LENGTH)
/** Stands for a character of a payload in the arguments until the parts of a request are cut. */
const PAYLOAD_PLACE = '@'
const SILENCE_MS = 30_000

/** A payload in the arguments of a call. */
export interface Carried {
  readonly tool: ToolName
  readonly kind: PayloadKind
}

/** A call of a tool by its exposed name, which answers `size` bytes of text; or the list. */
export type Ask = { readonly tool: string; readonly size: number; readonly carried?: Carried } | 'tools/list'

export interface BurstOptions {
  readonly ask: Ask
  readonly inFlight: number
  /** New calls are begun for this long; then those under way are awaited. */
  readonly forMs: number
  /** No more calls than these are begun. */
  readonly calls?: number
  /** Calls before, for so long, that are not counted: what a process has not run for half a minute is compiled anew. */
  readonly warmUpMs?: number
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

/** Connections that are open and warm. */
export interface Ready {
  /** Calls on each of them. Rejects when one is lost. */
  run(forMs: number): Promise<Omit<Burst, 'used' | 'seconds'>>
  close(): void
}

export interface Host extends AsyncDisposable {
  /** One request on a connection of its own; rejects unless the answer is a result. */
  request(method: string, params?: object): Promise<Record<string, unknown>>
  /** The bytes of one request as they go on the wire, for who reads the answer by himself. */
  frame(method: string, params: object): string
  /** Opens `inFlight` connections and warms each with one call. */
  ready(options: Pick<BurstOptions, 'ask' | 'inFlight' | 'calls'>): Promise<Ready>
  /** Opens `inFlight` connections, warms each with one call, measures, closes them. Rejects when a connection is lost. */
  burst(options: BurstOptions): Promise<Burst>
}

/** Where a host goes: an MCP URL, or a pipe of its own. */
export type Reach = URL | Pipe

const openLane = async (reach: Reach, kind: HostKind, bearer: string): Promise<Lane> => {
  if (!(reach instanceof URL)) return stdioLane(reach)
  return kind === 'http-sse' ? openSseLane(reach, bearer) : httpLane(reach, kind === 'modern' ? 'modern' : 'legacy', bearer)
}

const excerpt = (head: string, body: Buffer): string =>
  `${head}\r\n\r\n${body.toString('latin1', 0, 300)} … ${body.toString('latin1', Math.max(300, body.length - 100))}`

/** What the meter read around `work`, and how long that took. */
export const metered = async <T extends object>(meter: () => number, work: () => Promise<T>) => {
  const before = meter()
  const started = performance.now()
  const measured = await work()
  const seconds = (performance.now() - started) / 1e3
  await new Promise((resolve) => setTimeout(resolve, 10)) // what the process still does for the last calls
  return { ...measured, used: meter() - before, seconds }
}

/** A host of `kind` at `reach`; unless it is modern it has made its handshake, and ends its session when disposed. `bearer`: its token. */
export const openHost = async (reach: Reach, kind: HostKind, bearer = TOKEN): Promise<Host> => {
  const lane = await openLane(reach, kind, bearer)
  const salt = Math.floor(Math.random() * 1e12)
  let id = FIRST_ID
  let listBytes: number | undefined

  const message = (method: string, params: { name?: string }, withId?: number): string => {
    const carried = kind === 'modern' ? { ...params, _meta: { ...META, ...(params as { _meta?: object })._meta } } : params
    return lane.frame(JSON.stringify({ jsonrpc: '2.0', id: withId, method, params: carried }), method, params.name)
  }

  const exchange = async (method: string, params: object = {}): Promise<Reply> => {
    const sentAs = id++
    const connection = await lane.open()
    try {
      const replied = new Promise<Reply>((resolve) =>
        connection.send(message(method, params, sentAs), sentAs, (head, body) => resolve(parseReply(head, body))),
      )
      const reply = await Promise.race([replied, connection.lost])
      if (reply.message?.result === undefined)
        throw new Error(`${method}: ${reply.status} ${JSON.stringify(reply.message?.error)}`)
      return reply
    } finally {
      connection.close()
    }
  }

  const isRight = (head: string, body: Buffer, id: number, nonce: string, ask: Ask): boolean => {
    const ends = body.toString('latin1', 0, 512) + body.toString('latin1', Math.max(0, body.length - 512))
    const isOurs =
      (head === '' || head.startsWith('HTTP/1.1 200')) &&
      (ends.includes(`"id":${id}}`) || ends.includes(`"id":${id},`)) &&
      (kind !== 'modern' || ends.includes('"resultType":"complete"'))
    if (ask === 'tools/list') return isOurs && ends.includes('"tools":[') && body.length === (listBytes ??= body.length)
    const start = body.indexOf('"text":"', 0, 'latin1') + 8
    return (
      isOurs &&
      start >= 8 &&
      body.toString('latin1', start, start + NONCE_LENGTH) === nonce &&
      body.toString('latin1', start + ask.size - NONCE_LENGTH, start + ask.size + 1) === `${nonce}"`
    )
  }

  /** What stands before the id, before the nonce, and behind it; of a list, before and behind the id. */
  const partsOf = (ask: Ask): readonly string[] => {
    if (ask === 'tools/list') return message(ask, {}, FIRST_ID).split(`${FIRST_ID}`)
    const payload = ask.carried && argumentOf(ask.carried.tool, ask.carried.kind)
    const place = PAYLOAD_PLACE.repeat(payload?.length ?? 0)
    const args = payload === undefined ? { nonce: NONCE_PLACE } : { nonce: NONCE_PLACE, place }
    const parts = message('tools/call', { name: ask.tool, arguments: args } as object, FIRST_ID).split(/100000000|#{12}/)
    if (payload === undefined) return parts
    // The length of the request is that of the payload; its key and quotes are what stood around the place.
    return [...parts.slice(0, 2), parts[2]!.replace(place, () => payload)]
  }

  /** Calls on every connection until `forMs` have passed; 0: one call each. */
  const run = async (connections: readonly LaneConnection[], { ask, forMs, calls = Infinity }: Omit<BurstOptions, 'meter'>) => {
    const [beforeId, beforeNonce = '', rest] = partsOf(ask)
    const latencies: number[] = []
    const until = performance.now() + forMs
    let bad = 0
    let firstBad: string | undefined
    let busy = connections.length
    const { promise, resolve, reject } = Promise.withResolvers<Omit<Burst, 'used' | 'seconds'>>()
    const call = (connection: LaneConnection) => {
      const sentAs = id++
      const nonce = (sentAs * 1_000_003 + salt).toString(16).padStart(NONCE_LENGTH, '0')
      const after = rest === undefined ? beforeNonce : `${beforeNonce}${nonce}${rest}`
      const started = performance.now()
      connection.send(`${beforeId}${sentAs}${after}`, sentAs, (head, body) => {
        const now = performance.now()
        latencies.push(now - started)
        if (!isRight(head, body, sentAs, nonce, ask)) {
          bad++
          firstBad ??= excerpt(head, body)
        }
        if (now < until && latencies.length + connections.length <= calls) call(connection)
        else if (--busy === 0) resolve({ latencies, bad, firstBad })
      })
    }
    let seen = -1
    const watch = setInterval(() => {
      if (latencies.length === seen) reject(new Error(`no reply for ${SILENCE_MS} ms`))
      seen = latencies.length
    }, SILENCE_MS)
    connections.forEach(call)
    return Promise.race([promise, ...connections.map(({ lost }) => lost)]).finally(() => clearInterval(watch))
  }

  if (kind !== 'modern') {
    const { head } = await exchange('initialize', { protocolVersion: REVISION[kind], capabilities: {}, clientInfo: CLIENT_INFO })
    lane.joined(head)
    await lane.tell(message('notifications/initialized', {}))
  }

  const ready: Host['ready'] = async (options) => {
    const connections = await Promise.all(Array.from({ length: options.inFlight }, lane.open))
    const close = () => {
      for (const connection of connections) connection.close()
    }
    try {
      const warm = await run(connections, { ask: options.ask, inFlight: options.inFlight, forMs: 0 })
      const counted = async (forMs: number) => {
        const measured = await run(connections, { ...options, forMs })
        return { ...measured, bad: warm.bad + measured.bad, firstBad: warm.firstBad ?? measured.firstBad }
      }
      return { run: counted, close }
    } catch (error) {
      close()
      throw error
    }
  }

  return {
    request: async (method, params) => (await exchange(method, params)).message!.result!,
    frame: (method, params) => message(method, params, id++),
    ready,
    burst: async (options) => {
      const connections = await ready(options)
      const { warmUpMs = 0 } = options
      try {
        const warm = warmUpMs > 0 ? await connections.run(warmUpMs) : undefined
        const measured = await metered(options.meter, () => connections.run(options.forMs))
        if (warm === undefined || warm.bad === 0) return measured
        return { ...measured, bad: warm.bad + measured.bad, firstBad: warm.firstBad }
      } finally {
        connections.close()
      }
    },
    [Symbol.asyncDispose]: () => lane[Symbol.asyncDispose](),
  }
}
