/**
 * Finds the client of a request that passed trusted proxies, from `Forwarded` (RFC 7239) or `X-Forwarded-For`. The header is read from its
 * end, because each proxy appends the address of its peer. Entries before the last untrusted address are not reliable.
 */
import { isIP } from 'node:net'
import type { TrustedProxies } from './trusted-proxies.ts'

/** Which header names the client. */
export type ForwardedHeader = 'x-forwarded-for' | 'forwarded'

/** Only this many bytes at the end of a header are read. */
const MAX_BYTES = 4 * 1024

/** `peer`: address of the connection; `value`: of the header. Returns the address of the client, or `peer` if no proxy states it. */
export const clientBehind = (
  peer: string | undefined,
  value: string | undefined,
  header: ForwardedHeader,
  trusted: TrustedProxies,
): string | undefined => {
  if (value === undefined || !trusted(peer)) return peer
  const hops = value.slice(-MAX_BYTES).split(',')
  let client = peer
  for (const hop of hops.toReversed()) {
    const address = addressIn(header === 'forwarded' ? forOf(hop) : hop)
    // Entries before an unknown hop (`for=_hidden`) are not used.
    if (address === undefined) return client
    client = address
    if (!trusted(address)) return client
  }
  return client
}

/** The `for` parameter of one hop, as in `for="[2001:db8::1]:4711";proto=https`; `''`: none. */
const forOf = (hop: string): string => {
  for (const pair of hop.split(';')) {
    const equals = pair.indexOf('=')
    if (pair.slice(0, Math.max(0, equals)).trim().toLowerCase() === 'for') return pair.slice(equals + 1)
  }
  return ''
}

/** Reads an address with or without quotes, brackets and a port; `undefined`: not an IP address. */
const addressIn = (text: string): string | undefined => {
  const bare = text.trim().replaceAll('"', '')
  const end = bare.startsWith('[') ? bare.indexOf(']') : -1
  const address = end > 0 ? bare.slice(1, end) : bare.split(':').length === 2 ? bare.slice(0, bare.indexOf(':')) : bare
  return isIP(address) === 0 ? undefined : address
}
