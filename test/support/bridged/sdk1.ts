/** Clients and servers of the official SDK 1. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { z } from 'zod'
import type { JsonMap } from '../fakes/messages.ts'
import { Journal } from '../fakes/journal.ts'
import { asked, ownMeta } from './peers.ts'
import type { AskOptions, ClientPeer, Handle, Identity, Notice, Peer, ServerPeer } from './peers.ts'

const ANY = z.looseObject({})
const requestSchema = (method: string) => z.object({ method: z.literal(method), params: ANY.optional() })

interface Protocol {
  request(request: object, schema: object, options?: object): Promise<unknown>
  notification(notification: object): Promise<void>
  setRequestHandler(schema: object, handler: (request: { params?: JsonMap }, extra: Extra) => unknown): void
  setNotificationHandler(schema: object, handler: (notification: { params?: JsonMap }) => void): void
}
type Extra = RequestHandlerExtra<never, never>

const peerOf = (protocol: Protocol): Peer => ({
  handle: (method, handle) => protocol.setRequestHandler(requestSchema(method), (request, extra) => run(handle, request, extra)),
  on: (method, listener) => protocol.setNotificationHandler(requestSchema(method), ({ params }) => listener(params)),
  notify: (method, params) => protocol.notification({ method, ...(params && { params }) }),
  request: (method, params, options) => asked(() => protocol.request({ method, ...(params && { params }) }, ANY, options)),
})

const run = (handle: Handle, { params = {} }: { params?: JsonMap }, extra: Extra) => {
  const { _meta, ...rest } = params
  const send = extra.sendNotification as (notification: object) => Promise<void>
  const token = (_meta as { progressToken?: string } | undefined)?.progressToken
  return handle({
    params: rest,
    meta: ownMeta(_meta),
    signal: extra.signal,
    notify: (method, sent) => send({ method, params: sent }),
    progress: async (sent) =>
      token === undefined ? undefined : send({ method: 'notifications/progress', params: { progressToken: token, ...sent } }),
    request: (method, sent, options) =>
      asked(() => (extra.sendRequest as unknown as Protocol['request'])({ method, params: sent }, ANY, options)),
    responses: undefined,
  })
}

export interface Sdk1Server {
  readonly peer: ServerPeer
  connect(transport: object): Promise<void>
}

export const sdk1Peer = (info: Identity, options: { capabilities: JsonMap; instructions?: string | undefined }): Sdk1Server => {
  const { capabilities, instructions } = options
  const server = new Server(info, { capabilities, ...(instructions !== undefined && { instructions }) })
  return {
    peer: {
      ...peerOf(server),
      era: 'legacy',
      sdk: server,
      client: () => ({ capabilities: server.getClientCapabilities(), info: server.getClientVersion() }),
    },
    connect: (transport) => server.connect(transport as Transport),
  }
}

export interface ClientSetup {
  readonly info: Identity
  readonly capabilities: JsonMap
  /** Called before the client connects. */
  readonly prepare?: ((client: Peer) => void) | undefined
}

export const sdk1Client = async ({ info, capabilities, prepare }: ClientSetup, transport: object): Promise<ClientPeer> => {
  const client = new Client(info, { capabilities })
  const notices = new Journal<Notice>()
  client.fallbackNotificationHandler = async ({ method, params }) => notices.push({ method, params: params })
  const peer = peerOf(client)
  prepare?.(peer)
  await client.connect(transport as Transport)
  return {
    ...peer,
    era: 'legacy',
    notices,
    sdk: client,
    server: () => ({
      info: client.getServerVersion(),
      capabilities: client.getServerCapabilities(),
      instructions: client.getInstructions(),
      version: 'kept by the transport',
    }),
    follow: async ({ uris = [] }) => {
      for (const uri of uris) await client.subscribeResource({ uri })
    },
    [Symbol.asyncDispose]: () => client.close(),
  }
}
export type { AskOptions }
