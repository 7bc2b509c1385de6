/**
 * What the bench's servers answer and what its hosts expect, said once. The text of a result is `<nonce><filler><nonce>`: lines of
 * plain words with escaped line ends, as JSON text has them. Sizes are bytes on the wire.
 */

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

const LINE = String.raw`The quick brown fox jumps over the lazy dog and the gateway carries its words on.\n`

/** What stands between the two nonces of a text of `size` bytes. Never ends within an escape. */
export const filler = (size: number): Buffer => {
  const length = size - 2 * NONCE_LENGTH
  const text = LINE.repeat(Math.ceil(length / LINE.length)).slice(0, length)
  return Buffer.from(text.endsWith('\\') ? `${text.slice(0, -1)}.` : text, 'latin1')
}
