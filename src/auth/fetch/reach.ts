/**
 * The addresses that may be reached for an untrusted URL (T-09): hostile metadata may name endpoints in our own network. Checks apply to
 * addresses, not to names, since a name may resolve differently each time.
 */
import { BlockList, isIP, isIPv4 } from 'node:net'
import { isLoopback, isLoopbackHost } from '../../transport/loopback.ts'

/**
 * `public`: https at public addresses. `loopback`: also http and https on this machine, for servers that run on it. `private`: https at any
 * address, for authorization servers in a private network, by configuration. `intranet`: also http at addresses that are not public.
 */
export type Reach = 'public' | 'loopback' | 'private' | 'intranet'

/** Returns the reach for a configured issuer. */
export const reachOfIssuer = ({ allowsHttp, issuer }: { readonly allowsHttp: boolean; readonly issuer: string }): Reach =>
  allowsHttp && issuer.startsWith('http:') ? 'intranet' : 'private'

/** Returns the reach for URLs that a server names: this machine only if the server is on it. */
export const reachOf = (server: URL, isPrivate: boolean): Reach =>
  isPrivate ? 'private' : isLoopbackHost(server.hostname) ? 'loopback' : 'public'

const V4_SPECIAL = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const
/** Within the global unicast range: protocol assignments, documentation, and 6to4, which carries an IPv4 address. */
const V6_SPECIAL = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const

/** Whether a connection to an IP address (without brackets) is allowed; with `intranet` a connection for http. */
export const isReachable = (address: string, reach: Reach): boolean => {
  const kind = isIP(address)
  if (kind === 0) return false
  if (reach === 'private') return true
  if (reach === 'intranet') return !isPublic(address)
  return (reach === 'loopback' && isLoopback(address)) || isPublic(address)
}

const isPublic = (address: string): boolean => {
  const { special, unicast } = lists()
  const family = familyOf(address)
  if (special.check(address, family)) return false
  return family === 'ipv4' || unicast.check(address, 'ipv6')
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv4(address) ? 'ipv4' : 'ipv6')

/** Built per check, since checks are rare. IPv4 ranges also apply to IPv4-mapped addresses. */
const lists = (): Readonly<Record<'special' | 'unicast', BlockList>> => {
  const special = new BlockList()
  for (const [net, bits] of V4_SPECIAL) special.addSubnet(net, bits, 'ipv4')
  for (const [net, bits] of V6_SPECIAL) special.addSubnet(net, bits, 'ipv6')
  const unicast = new BlockList()
  unicast.addSubnet('2000::', 3, 'ipv6')
  return { special, unicast }
}
