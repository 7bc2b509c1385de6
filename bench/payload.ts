/**
 * What the bench's servers answer and what its hosts expect, said once. The text of a result is `<nonce><filler><nonce>`: lines of
 * plain words with escaped line ends, as JSON text has them. Sizes are bytes on the wire.
 */

export const TOOLS = { t100: 100, t10k: 10_240, t1m: 1_048_576 } as const
export type ToolName = keyof typeof TOOLS
export const isToolName = (name: string): name is ToolName => Object.hasOwn(TOOLS, name)

export type Era = 'legacy' | 'modern'
export const REVISION: Record<Era, string> = { legacy: '2025-11-25', modern: '2026-07-28' }

/** Hexadecimal, this many characters. */
export const NONCE_LENGTH = 12

const LINE = String.raw`The quick brown fox jumps over the lazy dog and the gateway carries its words on.\n`

/** What stands between the two nonces of a text of `size` bytes. Never ends within an escape. */
export const filler = (size: number): Buffer => {
  const length = size - 2 * NONCE_LENGTH
  const text = LINE.repeat(Math.ceil(length / LINE.length)).slice(0, length)
  return Buffer.from(text.endsWith('\\') ? `${text.slice(0, -1)}.` : text, 'latin1')
}
