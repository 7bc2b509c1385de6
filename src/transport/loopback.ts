/** Which addresses and host names mean this machine. Judged as text: no resolver is asked. */
import { BlockList, isIP, isIPv6 } from 'node:net'

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

/** The loopback network, `::1`, and both written as an IPv4-mapped address. `address`: an IP address without brackets. */
export const isLoopback = (address: string): boolean => LOOPBACK.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')

/** A host name that means this machine, or a literal that does; brackets of a URL's host may stand. */
export const isLoopbackHost = (host: string): boolean => {
  const bare = host.replace(/^\[|\]$/g, '')
  return bare === 'localhost' || (isIP(bare) !== 0 && isLoopback(bare))
}
