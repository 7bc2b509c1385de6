/** Which addresses and host names are this machine. Decided by their text, without a resolver. */
import { BlockList, isIP } from 'node:net'

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

/** The loopback network, `::1`, and both written as an IPv4-mapped address. `address`: an IP address without brackets. */
export const isLoopback = (address: string): boolean => LOOPBACK.check(address, address.includes(':') ? 'ipv6' : 'ipv4')

/** `localhost` or a loopback address, also in the brackets of a URL. */
export const isLoopbackHost = (host: string): boolean => {
  const bare = host.replace(/^\[|\]$/g, '')
  return bare === 'localhost' || (isIP(bare) !== 0 && isLoopback(bare))
}
