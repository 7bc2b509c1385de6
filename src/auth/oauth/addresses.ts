/**
 * Which addresses may be reached for a stranger's URL (T-09): metadata names its endpoints itself, and a hostile one names our own
 * network. Judged are addresses, never names: a name is whatever its resolver says at the time.
 */
import { BlockList, isIP, isIPv6 } from 'node:net'
import { isLoopback } from '../../transport/loopback.ts'

/**
 * `public`: https, and addresses of the public internet only. `loopback`: this machine, too, and http there; for servers that run
 * on it. `private`: any address; for authorization servers within a private network, where the operator says so. `intranet`: the
 * same, and http at addresses that are not public.
 */
export type Reach = 'public' | 'loopback' | 'private' | 'intranet'

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

/** Whether a connection may be made to `address`, an IP address without brackets; with `intranet` one for http. */
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

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4')

/** Made per check: a few dozen ranges, asked a few times per sign-in. IPv4 rules hold for IPv4-mapped addresses as well. */
const lists = (): Readonly<Record<'special' | 'unicast', BlockList>> => {
  const special = new BlockList()
  for (const [net, bits] of V4_SPECIAL) special.addSubnet(net, bits, 'ipv4')
  for (const [net, bits] of V6_SPECIAL) special.addSubnet(net, bits, 'ipv6')
  const unicast = new BlockList()
  unicast.addSubnet('2000::', 3, 'ipv6')
  return { special, unicast }
}
