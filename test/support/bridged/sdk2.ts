/** Clients and servers of the official SDK 2, in either era. */
import { Client } from '@modelcontextprotocol/client'
import type { Transport } from '@modelcontextprotocol/client'
import { Server } from '@modelcontextprotocol/server'
import type { ServerContext } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { JsonMap } from '../fakes/messages.ts'
import { Journal } from '../fakes/journal.ts'
import { asked, ownMeta } from './peers.ts'
import type { ClientPeer, Handle, Identity, Notice, Peer, ServerPeer } from './peers.ts'
import type { ClientSetup } from './sdk1.ts'

const ANY = z.looseObject({})
const SPEC =
  /^(?:ping|(?:tools|resources|prompts|completion|logging|roots|sampling|elicitation)\/.*|notifications\/(?:initialized|cancelled|progress|message|(?:tools|resources|prompts|roots|elicitation|subscriptions)\/.*))$/

interface Protocol {
  request(request: object, schema: object, options?: object): Promise<unknown>
  notification(notification: object): Promise<void>
  setRequestHandler(...parameters: unknown[]): void
  setNotificationHandler(...parameters: unknown[]): void
}

const peerOf = (protocol: Protocol): Peer => ({
  handle: (method, handle) => {
    if (SPEC.test(method))
      protocol.setRequestHandler(method, ({ params }: { params?: JsonMap }, context: ServerContext) =>
        run(handle, params, context),
      )
    else
      protocol.setRequestHandler(method, { params: ANY }, (params: JsonMap, context: ServerContext) =>
        run(handle, params, context),
      )
  },
  on: (method, listener) => {
    if (SPEC.test(method)) protocol.setNotificationHandler(method, ({ params }: { params?: JsonMap }) => listener(params))
    else protocol.setNotificationHandler(method, { params: ANY }, (params: JsonMap) => listener(params))
  },
  notify: (method, params) => protocol.notification({ method, ...(params && { params }) }),
  request: (method, params, options) => asked(() => protocol.request({ method, ...(params && { params }) }, ANY, options)),
})

const run = (handle: Handle, params: JsonMap | undefined, { mcpReq }: ServerContext) => {
  const { _meta, ...rest } = params ?? {}
  const meta = (mcpReq._meta ?? _meta) as JsonMap | undefined
  const token = meta?.['progressToken']
  const send = mcpReq.notify as (notification: object) => Promise<void>
  return handle({
    params: rest,
    meta: ownMeta(meta),
    signal: mcpReq.signal,
    envelope: mcpReq.envelope,
    notify: (method, sent) => send({ method, params: sent }),
    progress: async (sent) =>
      token === undefined ? undefined : send({ method: 'notifications/progress', params: { progressToken: token, ...sent } }),
    request: (method, sent, options) =>
      asked(() => (mcpReq.send as unknown as Protocol['request'])({ method, params: sent }, ANY, options)),
    responses: mcpReq.inputResponses,
  })
}

export interface Sdk2Server {
  readonly peer: ServerPeer
  readonly server: Server
}

export const sdk2Peer = (
  info: Identity,
  options: { capabilities: JsonMap; instructions?: string | undefined },
  era: 'legacy' | 'modern',
): Sdk2Server => {
  const { capabilities, instructions } = options
  const server = new Server(info, { capabilities, ...(instructions !== undefined && { instructions }) })
  return {
    server,
    peer: {
      ...peerOf(server),
      era,
      sdk: server,
      client: () => ({ capabilities: server.getClientCapabilities(), info: server.getClientVersion() }),
    },
  }
}

/** `revision`: the one to settle on. */
export const sdk2Client = async (
  { info, capabilities, prepare }: ClientSetup,
  transport: object,
  revision: string,
): Promise<ClientPeer> => {
  const isModern = revision === '2026-07-28'
  const client = new Client(info, {
    capabilities,
    ...(isModern
      ? { versionNegotiation: { mode: { pin: revision } } }
      : { versionNegotiation: { mode: 'legacy' }, supportedProtocolVersions: [revision] }),
  })
  const notices = new Journal<Notice>()
  client.fallbackNotificationHandler = async ({ method, params }) => notices.push({ method, params: params })
  const peer = peerOf(client)
  prepare?.(peer)
  await client.connect(transport as Transport)
  return {
    ...peer,
    era: isModern ? 'modern' : 'legacy',
    notices,
    sdk: client,
    server: () => ({
      info: client.getServerVersion(),
      capabilities: client.getServerCapabilities(),
      instructions: client.getInstructions(),
      version: client.getNegotiatedProtocolVersion(),
    }),
    follow: async ({ lists = [], uris = [] }) => {
      if (isModern) {
        const flags = Object.fromEntries(lists.map((list) => [`${list}ListChanged`, true]))
        await client.listen({ ...flags, ...(uris.length > 0 && { resourceSubscriptions: [...uris] }) })
      } else for (const uri of uris) await client.subscribeResource({ uri })
    },
    [Symbol.asyncDispose]: () => client.close(),
  }
}
