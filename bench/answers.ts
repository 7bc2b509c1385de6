/** What the bench's fake servers answer, over any transport: a handshake of their era, three tools, and texts that carry the caller's nonce. */
import { type Era, filler, isToolName, REVISION, TOOLS } from './payload.ts'

export interface Request {
  readonly id?: number | string
  readonly method: string
  readonly params?: { readonly name?: string; readonly arguments?: { readonly nonce?: string } }
}

/** A JSON-RPC response in pieces: strings of latin1, and a shared Buffer for the text of a result. */
export type Pieces = readonly (string | Buffer)[]

export const errorPieces = (id: Request['id'], code: number, message: string): Pieces => [
  JSON.stringify({ error: { code, message }, jsonrpc: '2.0', id: id ?? null }),
]

const SERVER_INFO = { name: 'bench', version: '1.0.0' }
const CAPABILITIES = { tools: {} }
const INPUT_SCHEMA = { type: 'object', properties: { nonce: { type: 'string' } }, required: ['nonce'] }

/** Answers requests of `era`; undefined: there is no such method. Members stand in the order in which the official SDK prints them. */
export const createAnswers = (era: Era): ((request: Request) => Pieces | undefined) => {
  const isModern = era === 'modern'
  const modern = isModern ? { resultType: 'complete', _meta: { 'io.modelcontextprotocol/serverInfo': SERVER_INFO } } : {}
  const cacheable = isModern ? { ttlMs: 3_600_000, cacheScope: 'public', ...modern } : {}
  const tools = Object.keys(TOOLS).map((name) => ({
    name,
    description: `Answers ${name.slice(1)} of text.`,
    inputSchema: INPUT_SCHEMA,
  }))
  const results: Record<string, object> = {
    'tools/list': { tools, ...cacheable },
    ...(isModern
      ? { 'server/discover': { supportedVersions: [REVISION.modern], capabilities: CAPABILITIES, ...cacheable } }
      : { initialize: { protocolVersion: REVISION.legacy, capabilities: CAPABILITIES, serverInfo: SERVER_INFO }, ping: {} }),
  }
  const texts = new Map<string, Buffer>(Object.entries(TOOLS).map(([name, size]) => [name, filler(size)]))
  const callTail = isModern ? `${JSON.stringify(modern).slice(1, -1)},` : ''

  const answerCall = ({ id, params }: Request): Pieces => {
    const name = params?.name ?? ''
    const nonce = params?.arguments?.nonce
    if (!isToolName(name) || nonce === undefined) return errorPieces(id, -32602, `Unknown tool or no nonce: ${name}`)
    return [
      `{"result":{"content":[{"type":"text","text":"${nonce}`,
      texts.get(name)!,
      `${nonce}"}],${callTail}"isError":false},"jsonrpc":"2.0","id":${JSON.stringify(id)}}`,
    ]
  }

  return (request) => {
    if (request.method === 'tools/call') return answerCall(request)
    const result = results[request.method]
    return result && [JSON.stringify({ result, jsonrpc: '2.0', id: request.id })]
  }
}
