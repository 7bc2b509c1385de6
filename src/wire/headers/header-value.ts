/**
 * Values of `Mcp-Name` and `Mcp-Param-*` headers: plain where HTTP can carry them, else the Base64 sentinel
 * `=?base64?…?=` ([2026-07-28 basic/transports/streamable-http], Value Encoding).
 */
import { isUtf8 } from 'node:buffer'

const OPENING = '=?base64?'
const CLOSING = '?='

/** The header value for any text. */
export const encodeHeaderValue = (text: string): string =>
  isPlain(text) && !isSentinel(text) ? text : `${OPENING}${Buffer.from(text).toString('base64')}${CLOSING}`

/** The text a header value stands for; `undefined` if it holds characters it must not, or its Base64 is not Base64 of UTF-8. */
export const decodeHeaderValue = (value: string): string | undefined => {
  if (!isSentinel(value)) return isPlain(value) ? value : undefined
  if (value.length < OPENING.length + CLOSING.length) return undefined
  const base64 = value.slice(OPENING.length, -CLOSING.length)
  const bytes = Buffer.from(base64, 'base64')
  return bytes.toString('base64') === base64 && isUtf8(bytes) ? bytes.toString() : undefined
}

/** Also true where opening and closing overlap. */
const isSentinel = (text: string): boolean => text.startsWith(OPENING) && text.endsWith(CLOSING)

/** Only visible ASCII, with spaces and tabs inside. */
const isPlain = (text: string): boolean => /^[\t\x20-\x7e]*$/.test(text) && !/^[\t ]|[\t ]$/.test(text)
