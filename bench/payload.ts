/**
 * What the bench's servers answer and what its hosts expect, said once. The text of a result is `<nonce><payload><nonce>`, in one of the
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

/** What stands between the two nonces of a text of `size` bytes of prose. */
export const filler = (size: number): Buffer => payloadOf('prose', size, 2 * NONCE_LENGTH).text
