/** Decides which peers are proxies that may state the address of their client (`listen.http.trusted_proxies`). */
import { inNetworks, readNetwork } from '../../../networks.ts'

/** Whether a peer is trusted; `undefined`: the peer of a unix socket. */
export type TrustedProxies = (address: string | undefined) => boolean

/** Words of the option beside networks, with the networks that they stand for. */
const WORDS: ReadonlyMap<string, readonly string[]> = new Map([
  ['loopback', ['127.0.0.0/8', '::1']],
  ['unix', []],
])

/** Whether this is an address, a network (`10.0.0.0/8`), `loopback`, or `unix` for all peers of unix sockets. */
export const isProxyEntry = (entry: string): boolean => WORDS.has(entry) || readNetwork(entry) !== undefined

/** `entries`: as `isProxyEntry` accepts them. Returns `undefined` if no peer is trusted. */
export const trustedProxies = (entries: readonly string[]): TrustedProxies | undefined => {
  if (entries.length === 0) return undefined
  const networks = entries.flatMap((entry) => WORDS.get(entry) ?? [entry]).flatMap((text) => readNetwork(text) ?? [])
  const isTrusted = inNetworks(networks)
  const trustsUnix = entries.includes('unix')
  return (address) => (address === undefined ? trustsUnix : isTrusted(address))
}
