/**
 * Parses headers of the PROXY protocol, versions 1 and 2 (specified by HAProxy). A proxy writes such a header before the bytes of a client;
 * it states the address of the client. Pure.
 */
import { isIP } from 'node:net'

/** `'more'`: more bytes are needed. `'none'`: the connection does not begin with a valid header. */
export type ProxyHeader =
  | 'more'
  | 'none'
  | {
      /** Bytes of the header. */
      readonly length: number
      /** The address of the client; `undefined`: the proxy is the client itself (a health check), or knows no address. */
      readonly client: string | undefined
    }

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const PREFIX = Buffer.from('PROXY ', 'latin1')
/** Bytes of the longest header of version 1, with its line end. */
const MAX_LINE_BYTES = 107
/** Bytes of the fixed part of version 2. */
const FIXED_BYTES = 16
/** Limit of a header of version 2. It may contain TLVs, which are skipped. */
const MAX_BINARY_BYTES = 4 * 1024

/** `bytes`: the beginning of a connection. */
export const readProxyHeader = (bytes: Buffer): ProxyHeader => {
  if (beginsLike(bytes, SIGNATURE)) return bytes.length < FIXED_BYTES ? 'more' : readBinary(bytes)
  if (beginsLike(bytes, PREFIX)) return readLine(bytes)
  return 'none'
}

/** Whether one begins with the other. */
const beginsLike = (bytes: Buffer, start: Buffer): boolean => {
  const length = Math.min(bytes.length, start.length)
  return bytes.compare(start, 0, length, 0, length) === 0
}

/** Version 1: `PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n`. */
const readLine = (bytes: Buffer): ProxyHeader => {
  const end = bytes.indexOf('\r\n')
  if (end === -1) return bytes.length < MAX_LINE_BYTES ? 'more' : 'none'
  if (end + 2 > MAX_LINE_BYTES) return 'none'
  const [, family = '', source = '', ...rest] = bytes.toString('latin1', 0, end).split(' ')
  if (family === 'UNKNOWN') return { length: end + 2, client: undefined }
  const version = { TCP4: 4, TCP6: 6 }[family]
  const arePorts = rest.length === 3 && rest.slice(1).every((port) => /^\d{1,5}$/.test(port))
  return version !== undefined && isIP(source) === version && arePorts ? { length: end + 2, client: source } : 'none'
}

/** Version 2: version and command, family, length, then addresses of the family. */
const readBinary = (bytes: Buffer): ProxyHeader => {
  const [command = 0, family = 0] = bytes.subarray(SIGNATURE.length)
  const size = bytes.readUInt16BE(14)
  const length = FIXED_BYTES + size
  if (command >> 4 !== 2 || (command & 15) > 1 || length > MAX_BINARY_BYTES) return 'none'
  if (bytes.length < length) return 'more'
  const isLocal = (command & 15) === 0
  if (isLocal || (family >> 4 !== 1 && family >> 4 !== 2)) return { length, client: undefined }
  if (family >> 4 === 1)
    return size < 12 ? 'none' : { length, client: [...bytes.subarray(FIXED_BYTES, FIXED_BYTES + 4)].join('.') }
  return size < 36 ? 'none' : { length, client: addressOf(bytes.subarray(FIXED_BYTES, FIXED_BYTES + 16)) }
}

/** An IPv6 address as text. `URL` shortens it. */
const addressOf = (bytes: Buffer): string => {
  const groups = Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(2 * at).toString(16))
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}
