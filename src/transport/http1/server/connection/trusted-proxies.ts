/** Decides which peers are proxies that may state the address of their client (`listen.http.trusted_proxies`). */
import { BlockList, isIP, isIPv6 } from 'node:net'

/** Whether a peer is trusted; `undefined`: the peer of a unix socket. */
export type TrustedProxies = (address: string | undefined) => boolean

/** Whether this is an address, a network (`10.0.0.0/8`), `loopback`, or `unix` for all peers of unix sockets. */
export const isProxyEntry = (entry: string): boolean => {
  const [address = '', bits, ...rest] = entry.split('/')
  if (entry === 'loopback' || entry === 'unix') return true
  const width = { 4: 32, 6: 128 }[isIP(address)]
  return width !== undefined && rest.length === 0 && (bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= width))
}

/** `entries`: as `isProxyEntry` accepts them. Returns `undefined` if no peer is trusted. */
export const trustedProxies = (entries: readonly string[]): TrustedProxies | undefined => {
  if (entries.length === 0) return undefined
  const list = new BlockList()
  for (const entry of entries.flatMap((one) => (one === 'loopback' ? ['127.0.0.0/8', '::1'] : one === 'unix' ? [] : [one]))) {
    const [address = '', bits] = entry.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    list.addSubnet(address, bits === undefined ? (family === 'ipv6' ? 128 : 32) : Number(bits), family)
  }
  const trustsUnix = entries.includes('unix')
  return (address) => {
    if (address === undefined) return trustsUnix
    return isIP(address) !== 0 && list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
  }
}
