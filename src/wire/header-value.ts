/**
 * Text as an HTTP field value and back ([2026-07-28 basic/transports/streamable-http], Value Encoding): what is not plain
 * ASCII travels as `=?base64?…?=`.
 */
import { isUtf8 } from 'node:buffer'

const PREFIX = '=?base64?'
const SUFFIX = '?='
/** Visible ASCII, with spaces and tabs only inside. */
const PLAIN = /^(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?$/
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** A decoded value, or what is wrong with it. */
export type Decoded = { readonly text: string } | { readonly error: string }

/** `text` itself where it is a safe field value that does not look encoded, else its Base64 form. */
export const encodeHeaderValue = (text: string): string =>
  PLAIN.test(text) && !(text.startsWith(PREFIX) && text.endsWith(SUFFIX))
    ? text
    : `${PREFIX}${Buffer.from(text).toString('base64')}${SUFFIX}`

/** Reads a field value; strict: canonical padded Base64 of valid UTF-8, or plain visible ASCII. */
export const decodeHeaderValue = (value: string): Decoded => {
  if (!PLAIN.test(value)) return { error: 'the value has characters that must be Base64-encoded' }
  if (!value.startsWith(PREFIX) || !value.endsWith(SUFFIX)) return { text: value }
  const base64 = value.slice(PREFIX.length, -SUFFIX.length)
  const bytes = Buffer.from(base64, 'base64')
  const isCanonical = value.length >= PREFIX.length + SUFFIX.length && BASE64.test(base64) && bytes.toString('base64') === base64
  if (!isCanonical) return { error: 'the value is not valid Base64' }
  return isUtf8(bytes) ? { text: bytes.toString() } : { error: 'the Base64 value is not UTF-8' }
}
