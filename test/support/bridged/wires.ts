/**
 * Connects one client to one server, both of an official SDK and in this process: directly, or through a gateway as a bridge. What a
 * scenario sees must not depend on which.
 */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import { createServer as createTcp } from 'node:net'
import { PassThrough } from 'node:stream'
import type { Duplex } from 'node:stream'
import type { Readable, Writable } from 'node:stream'
import { StreamableHTTPClientTransport as Http2 } from '@modelcontextprotocol/client'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { StdioServerTransport as Pipe1 } from '@modelcontextprotocol/sdk/server/stdio.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { createMcpHandler } from '@modelcontextprotocol/server'
import { StdioServerTransport as Pipe2, serveStdio } from '@modelcontextprotocol/server/stdio'
import { LOCAL } from '../../../src/auth/identity.ts'
import { startGateway } from '../gateway.ts'
import { fake } from '../fake-downstream.ts'
import type { FakeDownstream } from '../fake-downstream.ts'
import { listening } from '../listening.ts'
import { Journal } from '../fakes/journal.ts'
import type { JsonMap } from '../fakes/messages.ts'
import { watchStream } from '../hosts/stream-watch.ts'
import { relayCommand } from '../relay.ts'
import { legacySessions } from '../reference/http.ts'
import { sseListener } from '../sse-listener.ts'
import type { ClientPeer, Handle, Identity, Peer, ServerPeer } from './peers.ts'
import type { Row } from './rows.ts'
import { sdk1Client, sdk1Peer } from './sdk1.ts'
import { sdk2Client, sdk2Peer } from './sdk2.ts'

export type List = 'tools' | 'prompts' | 'resources'

/** What a scenario needs of both sides before they meet. */
export interface Setup {
  readonly server: {
    readonly info?: Identity
    readonly capabilities: JsonMap
    readonly instructions?: string
    /** Makes one connection's server; over modern HTTP each request has its own. */
    readonly serve?: (server: ServerPeer, stage: Stage) => void
  }
  readonly client?: {
    readonly info?: Identity
    readonly capabilities?: JsonMap
    /** What the client answers. */
    readonly answers?: Readonly<Record<string, Handle>>
    readonly prepare?: (client: Peer) => void
  }
}

/** What a server's handlers share with the scenario. */
export interface Stage {
  /** What handlers have seen. */
  readonly notes: Journal<unknown>
  /** Every server object there is, oldest first. */
  readonly servers: ServerPeer[]
  /** Tells every client that a list changed, or a resource, whatever asked for it. */
  readonly announce: (list: List) => void
  readonly update: (uri: string) => void
}

export interface Scene extends Stage, AsyncDisposable {
  readonly row: Row
  readonly client: ClientPeer
  /** What the client was asked so far, with `_meta`. A scenario is played twice at a time: what it has seen belongs to its scene. */
  readonly asked: readonly Asked[]
}

interface Asked {
  readonly params: unknown
  readonly meta: unknown
}

const SERVER: Identity = { name: 'bridged-server', version: '1.2.3' }
const CLIENT: Identity = { name: 'bridged-client', version: '4.5.6' }

/** Makes connected servers, and ends with them. */
class Stand implements Stage {
  readonly notes = new Journal<unknown>()
  readonly servers: ServerPeer[] = []
  readonly #row: Row
  readonly #setup: Setup['server']
  readonly opened = new AsyncDisposableStack()
  #modern: ReturnType<typeof createMcpHandler> | undefined

  constructor(row: Row, setup: Setup['server']) {
    this.#row = row
    this.#setup = setup
  }

  readonly announce = (list: List): void => {
    if (this.#modern !== undefined) return this.#modern.notify[`${list}Changed`]()
    for (const server of this.servers) server.notify(`notifications/${list}/list_changed`).catch(() => undefined)
  }

  readonly update = (uri: string): void => {
    if (this.#modern !== undefined) return this.#modern.notify.resourceUpdated(uri)
    for (const server of this.servers) server.notify('notifications/resources/updated', { uri }).catch(() => undefined)
  }

  #serve<Server extends { peer: ServerPeer }>(made: Server): Server {
    this.servers.push(made.peer)
    this.#setup.serve?.(made.peer, this)
    return made
  }

  /** A server of this row's SDK on a pair of streams. */
  onStreams(input: Readable, output: Writable): void {
    const { sdk, era } = this.#row
    if (sdk === 1) return void this.#sdk1().connect(new Pipe1(input, output))
    const transport = new Pipe2(input, output)
    if (era === 'legacy') return void this.#sdk2().connect(transport)
    const handle = serveStdio(() => this.#sdk2(), { legacy: 'reject', transport })
    this.opened.defer(() => handle.close())
  }

  #sdk1() {
    const { info = SERVER, capabilities, instructions } = this.#setup
    return this.#serve(sdk1Peer(info, { capabilities, instructions }))
  }

  #sdk2() {
    const { info = SERVER, capabilities, instructions } = this.#setup
    return this.#serve(sdk2Peer(info, { capabilities, instructions }, this.#row.era)).server
  }

  /** Where it listens, over HTTP. */
  async overHttp(kind: 'http' | 'sse'): Promise<string> {
    const server = createServer(kind === 'sse' ? sseListener((transport) => this.#sdk1().connect(transport)) : this.#listener())
    return `${this.opened.use(await listening(server)).url}/${kind === 'sse' ? 'sse' : 'mcp'}`
  }

  #listener(): RequestListener {
    const { sdk, era } = this.#row
    if (sdk === 1) return this.#sessions()
    if (era === 'legacy') return served(legacySessions(() => this.#sdk2()))
    this.#modern = createMcpHandler(() => this.#sdk2(), { legacy: 'reject' })
    return served(this.#modern.fetch)
  }

  #sessions(): RequestListener {
    const sessions = new Map<string, StreamableHTTPServerTransport>()
    return async (request, response) => {
      const id = request.headers['mcp-session-id']
      if (typeof id === 'string') return sessions.get(id)?.handleRequest(request, response) ?? void response.writeHead(404).end()
      const transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (started) => void sessions.set(started, transport),
      })
      await this.#sdk1().connect(transport)
      return transport.handleRequest(request, response)
    }
  }

  /** The port of a server that a child process pipes its stdin and stdout to. */
  async overSockets(): Promise<number> {
    const server = createTcp((socket) => {
      socket.on('error', () => undefined)
      // A process that was started last may connect when all is over.
      if (this.opened.disposed) socket.destroy()
      else this.onStreams(socket, socket)
    })
    return this.opened.use(await listening(server)).port
  }
}

/** The SDK's types of requests are stricter than Node's. */
const served = (fetch: (request: Request) => Promise<Response>): RequestListener =>
  toNodeHandler({ fetch }) as unknown as RequestListener

/** Where a client goes. */
type Target = { readonly url: string } | { readonly input: Duplex; readonly output: Duplex }

const connect = async (row: Row, target: Target, asked: Asked[], setup: Setup['client'] = {}): Promise<ClientPeer> => {
  const stream = watchStream()
  const transport = transportTo(row, target, stream.fetch)
  const { info = CLIENT, capabilities = {}, answers = {}, prepare } = setup
  const client = {
    info,
    capabilities,
    prepare: (peer: Peer): void => {
      for (const [method, answer] of Object.entries(answers)) {
        peer.handle(method, (turn) => {
          asked.push({ params: turn.params, meta: turn.meta })
          return answer(turn)
        })
      }
      prepare?.(peer)
    },
  }
  const connected = row.sdk === 1 ? await sdk1Client(client, transport) : await sdk2Client(client, transport, row.revision)
  if (row.era === 'legacy' && (row.host === 'http' || row.host === 'sole')) await stream.opened
  return connected
}

const transportTo = ({ sdk, host }: Row, target: Target, fetch: typeof globalThis.fetch): object => {
  if ('url' in target) {
    const url = new URL(target.url)
    if (host === 'sse') return new SSEClientTransport(url)
    return sdk === 1 ? new Http1(url, { fetch }) : new Http2(url, { fetch })
  }
  // Both ends of a pipe are alike, and the one for servers takes any streams.
  return sdk === 1 ? new Pipe1(target.output, target.input) : new Pipe2(target.output, target.input)
}

const scene = async (row: Row, setup: Setup, reach: (stand: Stand) => Promise<Target>): Promise<Scene> => {
  const stand = new Stand(row, setup.server)
  const { opened, notes, servers } = stand
  try {
    const asked: Asked[] = []
    const client = opened.use(await connect(row, await reach(stand), asked, setup.client))
    return {
      row,
      client,
      asked,
      notes,
      servers,
      announce: (list) => stand.announce(list),
      update: (uri) => stand.update(uri),
      [Symbol.asyncDispose]: () => opened.disposeAsync(),
    }
  } catch (error) {
    await opened.disposeAsync()
    throw error
  }
}

/** Client and server with nothing between. */
export const directly = (row: Row, setup: Setup): Promise<Scene> =>
  scene(row, setup, async (stand) => {
    if (row.host === 'sse') return { url: await stand.overHttp('sse') }
    if (row.host === 'http' || row.host === 'sole') return { url: await stand.overHttp('http') }
    const streams = { input: new PassThrough(), output: new PassThrough() }
    stand.onStreams(streams.input, streams.output)
    return streams
  })

/** Client, gateway, server. */
export const through = (row: Row, setup: Setup): Promise<Scene> =>
  scene(row, setup, async (stand) => {
    const address =
      row.server === 'http' ? { url: new URL(await stand.overHttp('http')) } : relayCommand(await stand.overSockets(), '--plain')
    const standIn = { address, kind: `${row.era} ${row.server}`, forget: () => undefined }
    const gateway = stand.opened.use(
      await startGateway({
        servers: row.host === 'sole' ? {} : { b: fake.offering('other') },
        fakes: new Map([['a', standIn as unknown as FakeDownstream]]),
        ...(row.host === 'stdio' && { pipe: { server: 'a' } }),
        ...(row.host === 'sole' && { gateway: { prefix: 'never' } }),
      }),
    )
    if (row.host === 'sole') return { url: gateway.url.href }
    if (row.host === 'http' || row.host === 'sse')
      return { url: new URL(`/servers/a/${row.host === 'sse' ? 'sse' : 'mcp'}`, gateway.url).href }
    return gateway.openPipe(LOCAL, { server: 'a' })
  })
