/** Answers of the benchmark's fake servers over any transport: a handshake of their era, three tools, and texts with the caller's nonce. */
import {
  BIG_PIECE_BYTES,
  BIG_PIECES,
  BIG_TOOL,
  filler,
  NEIGHBOURS,
  NONCE_LENGTH,
  payloads,
  REVISION,
  type ServerKind,
  SLOW_TOOL,
  STEADY_BYTES,
  STEADY_TOOL,
  TOOLS,
} from './payload.ts'
import { payloadOf } from './payload-kinds.ts'

interface Meta {
  readonly progressToken?: number | string
}

export interface Request {
  readonly id?: number | string
  readonly method: string
  readonly params?: {
    readonly name?: string
    readonly arguments?: { readonly nonce?: string }
    readonly _meta?: Meta
    readonly protocolVersion?: string
  }
}

/** A JSON-RPC response in pieces: strings of latin1, and a shared Buffer for the text of a result. */
export type Pieces = readonly (string | Buffer)[]

export const errorPieces = (id: Request['id'], code: number, message: string): Pieces => [
  JSON.stringify({ error: { code, message }, jsonrpc: '2.0', id: id ?? null }),
]

interface Answer {
  readonly text: readonly Buffer[]
  readonly members: Buffer
}

const SERVER_INFO = { name: 'bench', version: '1.0.0' }
const INPUT_SCHEMA = { type: 'object', properties: { nonce: { type: 'string' } }, required: ['nonce'] }

/** Any revision of the legacy era that is asked for, because peers know different ones. */
const negotiated = ({ params }: Request, kind: ServerKind): string => {
  const asked = params?.protocolVersion ?? ''
  return asked <= REVISION.legacy ? asked : REVISION[kind]
}

/** About 360 bytes in a list. */
const bulkTool = (index: number) => ({
  name: `tool_${index}`,
  description: 'One of many tools, with a description of the length that people write for models to choose by. '.repeat(2),
  inputSchema: INPUT_SCHEMA,
})

/**
 * Answers requests as a server of `kind` does; undefined: there is no such method. Members stand in the order in which the official
 * SDK prints them. Beyond the tools of the bench it offers so many that `tools/list` has `toolCount`. `news`: what the description of the
 * first tool says in each list, for a server whose list changes.
 */
export const createAnswers = (
  kind: ServerKind,
  toolCount = 0,
  news?: () => string,
): ((request: Request) => Pieces | undefined) => {
  const isModern = kind === 'modern'
  const modern = isModern ? { resultType: 'complete', _meta: { 'io.modelcontextprotocol/serverInfo': SERVER_INFO } } : {}
  const cacheable = isModern ? { ttlMs: 3_600_000, cacheScope: 'public', ...modern } : {}
  const capabilities = { tools: news === undefined ? {} : { listChanged: true } }
  const answers = new Map<string, Answer>([...payloads()].map(([name, { text, members }]) => [name, { text: [text], members }]))
  answers.set(SLOW_TOOL, { text: [filler(TOOLS.t1m)], members: Buffer.alloc(0) })
  answers.set(STEADY_TOOL, { text: [filler(STEADY_BYTES)], members: Buffer.alloc(0) })
  const piece = filler(BIG_PIECE_BYTES + 2 * NONCE_LENGTH)
  answers.set(BIG_TOOL, { text: Array<Buffer>(BIG_PIECES).fill(piece), members: Buffer.alloc(0) })
  const neighbour = (name: string): Answer | undefined => {
    if (!Object.hasOwn(NEIGHBOURS, name)) return undefined
    const { kind, bytes } = NEIGHBOURS[name as keyof typeof NEIGHBOURS]
    const { text, members } = payloadOf(kind, bytes, 2 * NONCE_LENGTH)
    const made = { text: [text], members }
    answers.set(name, made)
    return made
  }
  const sizes = [
    ...[...answers].map(
      ([name, { text, members }]) => [name, text.reduce((sum, { length }) => sum + length, members.length)] as const,
    ),
    ...Object.entries(NEIGHBOURS).map(([name, { bytes }]) => [name, bytes] as const),
  ]
  const own = sizes.map(([name, size]) => ({ name, description: `Answers ${size} bytes.`, inputSchema: INPUT_SCHEMA }))
  const tools = [...own, ...Array.from({ length: Math.max(0, toolCount - own.length) }, (_, index) => bulkTool(index))]
  const results: Record<string, object> = {
    'tools/list': { tools, ...cacheable },
    ...(isModern
      ? { 'server/discover': { supportedVersions: [REVISION.modern], capabilities, ...cacheable } }
      : { initialize: { capabilities, serverInfo: SERVER_INFO }, ping: {} }),
  }
  const callTail = isModern ? `${JSON.stringify(modern).slice(1, -1)},` : ''

  const answerCall = ({ id, params }: Request): Pieces => {
    const name = params?.name ?? ''
    const nonce = params?.arguments?.nonce
    const payload = answers.get(name) ?? neighbour(name)
    if (payload === undefined || nonce === undefined) return errorPieces(id, -32602, `Unknown tool or no nonce: ${name}`)
    return [
      `{"result":{"content":[{"type":"text","text":"${nonce}`,
      ...payload.text,
      `${nonce}"}]`,
      payload.members,
      `,${callTail}"isError":false},"jsonrpc":"2.0","id":${JSON.stringify(id)}}`,
    ]
  }

  const resultOf = (request: Request): object | undefined => {
    const known = results[request.method]
    if (request.method === 'initialize') return { ...known, protocolVersion: negotiated(request, kind) }
    if (request.method !== 'tools/list' || news === undefined) return known
    const [first, ...others] = tools
    return { ...known, tools: [{ ...first, description: news() }, ...others] }
  }

  return (request) => {
    if (request.method === 'tools/call') return answerCall(request)
    const result = resultOf(request)
    return result && [JSON.stringify({ result, jsonrpc: '2.0', id: request.id })]
  }
}
