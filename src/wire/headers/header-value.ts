/**
 * Values of `Mcp-Name` and `Mcp-Param-*` headers: plain text if HTTP can carry it, else `=?base64?…?=`
 * ([2026-07-28 basic/transports/streamable-http], Value Encoding).
 */
import { isUtf8 } from 'node:buffer'

const OPENING = '=?base64?'
const CLOSING = '?='

/** The name of a header: a token of HTTP ([RFC 9110 5.6.2]). */
export const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** Encodes any text as a header value. */
export const encodeHeaderValue = (text: string): string =>
  isPlain(text) && !isSentinel(text) ? text : `${OPENING}${Buffer.from(text).toString('base64')}${CLOSING}`

/** Decodes a header value; `undefined` for characters that are not allowed, and for anything but Base64 of UTF-8. */
export const decodeHeaderValue = (value: string): string | undefined => {
  if (!isSentinel(value)) return isPlain(value) ? value : undefined
  if (value.length < OPENING.length + CLOSING.length) return undefined
  const base64 = value.slice(OPENING.length, -CLOSING.length)
  const bytes = Buffer.from(base64, 'base64')
  return bytes.toString('base64') === base64 && isUtf8(bytes) ? bytes.toString() : undefined
}

/** Whether the text has the form of an encoded value, even if opening and closing overlap. */
const isSentinel = (text: string): boolean => text.startsWith(OPENING) && text.endsWith(CLOSING)

/** Whether the text is visible ASCII, with spaces and tabs only inside. */
const isPlain = (text: string): boolean => /^[\t\x20-\x7e]*$/.test(text) && !/^[\t ]|[\t ]$/.test(text)
