/**
 * The answers of the benchmark's servers, which its hosts expect, defined once. The text of a result is `<nonce><payload><nonce>`, in one of the
 * kinds of `payload-kinds.ts`. Sizes are bytes on the wire.
 */
import { PAYLOAD_KINDS, type Payload, type PayloadKind, payloadOf } from './payload-kinds.ts'

export const TOOLS = { t100: 100, t10k: 10_240, t1m: 1_048_576 } as const
export type ToolName = keyof typeof TOOLS

export type Era = 'legacy' | 'modern'
/** How a host speaks: Streamable HTTP of an era (`legacy` with sessions), HTTP+SSE, a pipe. */
export type HostKind = Era | 'http-sse' | 'stdio'
/** How a server speaks: `sse-reply` is `legacy` with an event stream for every answer. */
export type ServerKind = HostKind | 'sse-reply'
export const REVISION: Record<ServerKind, string> = {
  legacy: '2025-11-25',
  modern: '2026-07-28',
  'sse-reply': '2025-11-25',
  'http-sse': '2024-11-05',
  stdio: '2025-11-25',
}

/** Answers 1 MB in two halves, this long apart; with event streams a word of progress first, and the result so much later. */
export const SLOW_TOOL = 'slow'
export const SLOW_MS = 50

/** Answers 3.9 MB in pieces of 64 KB, one every few ms, as a server does that is not faster. */
export const STEADY_TOOL = 'steady'
export const STEADY_BYTES = 3_900_000
export const STEADY_PIECE_BYTES = 65_536
export const STEADY_MS = 4

/** What a neighbour has answered to it, made when it is first asked for: kind and bytes by tool. */
export const NEIGHBOURS = {
  objects3m: { kind: 'objects', bytes: 3 * TOOLS.t1m },
  k8s3m: { kind: 'k8s', bytes: 3 * TOOLS.t1m },
  dense15m: { kind: 'dense', bytes: 15 * TOOLS.t1m },
} as const satisfies Readonly<Record<string, { readonly kind: PayloadKind; readonly bytes: number }>>

/** Answers 100 MB: one piece so many times, so that no side need hold it. */
export const BIG_TOOL = 'big'
export const BIG_PIECES = 100
export const BIG_PIECE_BYTES = TOOLS.t1m

/** Hexadecimal, this many characters. */
export const NONCE_LENGTH = 12

/** The name of the tool that answers `size` bytes of a kind; prose has the bare names. */
export const toolOf = (tool: ToolName, kind: PayloadKind): string => (kind === 'prose' ? tool : `${tool}_${kind}`)

/** The tools by name, each with its payload. */
export const payloads = (): ReadonlyMap<string, Payload> =>
  new Map(
    PAYLOAD_KINDS.flatMap((kind) =>
      (Object.keys(TOOLS) as ToolName[]).map((tool) => [toolOf(tool, kind), payloadOf(kind, TOOLS[tool], 2 * NONCE_LENGTH)]),
    ),
  )

/** Bytes of the text that a tool answers, its nonces counted. */
export const textSize = (tool: ToolName, kind: PayloadKind): number => (kind === 'objects' ? 2 * NONCE_LENGTH : TOOLS[tool])

/** A payload as the value of an argument, without the quotes around it: JSON text as latin1, so that its length is that in bytes. */
export const argumentOf = (tool: ToolName, kind: PayloadKind): string => {
  if (kind !== 'objects') return payloadOf(kind, TOOLS[tool], 0).text.toString('latin1')
  const { members } = payloadOf(kind, TOOLS[tool], 0)
  // A member of its own: what stands before it ends a short text.
  return `","data":${members.toString('latin1', members.indexOf('{'))},"end":"`
}

/** What stands between the two nonces of a text of `size` bytes of prose. */
export const filler = (size: number): Buffer => payloadOf('prose', size, 2 * NONCE_LENGTH).text
