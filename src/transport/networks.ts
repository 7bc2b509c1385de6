/** Networks of IP addresses as options name them: an address with a prefix length, or an address alone. */
import { BlockList, isIP, isIPv4 } from 'node:net'

type Family = 'ipv4' | 'ipv6'

export interface Network {
  readonly address: string
  /** Length of the prefix; 32 or 128 for one address. */
  readonly bits: number
  readonly family: Family
}

const WIDTHS = { ipv4: 32, ipv6: 128 }

// Not `isIPv6`: Node compiles its pattern for the first address, which takes milliseconds of each start.
const familyOf = (address: string): Family => (isIPv4(address) ? 'ipv4' : 'ipv6')

/** Reads `10.0.0.0/8`, or an address; `undefined`: neither. */
export const readNetwork = (text: string): Network | undefined => {
  const [, address = '', length] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  if (isIP(address) === 0) return undefined
  const family = familyOf(address)
  const bits = length === undefined ? WIDTHS[family] : Number(length)
  return bits <= WIDTHS[family] ? { address, bits, family } : undefined
}

/** Returns a test whether an address is in one of the networks. It is false for text that is not an IP address. */
export const inNetworks = (networks: readonly Network[]): ((address: string) => boolean) => {
  const list = new BlockList()
  for (const { address, bits, family } of networks) list.addSubnet(address, bits, family)
  return (address) => isIP(address) !== 0 && list.check(address, familyOf(address))
}
