/**
 * Exposed names of tools and prompts (BRIDGING 4.2): `<prefix>__<original>`, shortened with a hash if it is too long or has other
 * characters. A name depends only on prefix, original and options, not on other servers.
 */
import { createHash } from 'node:crypto'
import { ownValue } from '../../values/own-value.ts'

export interface NamingOptions {
  /** `never`: original names and URIs everywhere. */
  readonly prefix: 'always' | 'never'
  /** Longest exposed name, in characters: 16 to 128. */
  readonly maxNameLength: number
  /** Original names, without aliases and configured names. */
  readonly originals?: boolean
}

/** How a server's URIs are exposed. */
export const uriMode = (server: { readonly uris: 'namespaced' | 'identity' }, naming: NamingOptions): 'namespaced' | 'identity' =>
  naming.prefix === 'never' ? 'identity' : server.uris

const OUTSIDE = /[^A-Za-z0-9_-]/gu
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'
const SHORT_HASH = 8
const LONG_HASH = 16
const NOTHING: ReadonlyMap<string, string> = new Map()

/**
 * The exposed name of each original of one server, by original. A shortened name that equals another name gets a longer hash; an alias
 * overrides every rule. `renamed`: configured names by original, used in place of the original.
 */
export const exposeNames = (
  server: { readonly prefix: string; readonly alias: Readonly<Record<string, string>> },
  originals: readonly string[],
  naming: NamingOptions,
  renamed: ReadonlyMap<string, string> = NOTHING,
): Map<string, string> => {
  const names = new Map<string, string>()
  if (naming.originals === true) return new Map(originals.map((original) => [original, original]))
  const ownOf = (original: string): string => renamed.get(original) ?? original
  if (naming.prefix === 'never') for (const original of originals) names.set(original, ownOf(original))
  else for (const original of originals) names.set(original, exposeName(server.prefix, ownOf(original), naming.maxNameLength))
  const uses = new Map<string, number>()
  for (const name of names.values()) uses.set(name, (uses.get(name) ?? 0) + 1)
  for (const [original, name] of names) {
    const alias = ownValue(server.alias, original)
    if (alias !== undefined) names.set(original, alias)
    else if (naming.prefix === 'always' && (uses.get(name) ?? 0) > 1 && name !== plainName(server.prefix, ownOf(original)))
      names.set(original, shortened(server.prefix, ownOf(original), naming.maxNameLength, LONG_HASH))
  }
  return names
}

/** The exposed name of one original, before conflicts and aliases. */
const exposeName = (prefix: string, original: string, maxLength: number): string => {
  const plain = plainName(prefix, original)
  return plain.length <= maxLength && original.search(OUTSIDE) === -1 ? plain : shortened(prefix, original, maxLength, SHORT_HASH)
}

const plainName = (prefix: string, original: string): string => `${prefix}__${original}`

const shortened = (prefix: string, original: string, maxLength: number, hashLength: number): string => {
  const head = plainName(prefix, original.replace(OUTSIDE, '_')).slice(0, Math.max(0, maxLength - hashLength - 1))
  // With the least maximum the longer hash loses its last character.
  return `${head}_${hash(`${prefix}\0${original}`).slice(0, hashLength)}`.slice(0, maxLength)
}

/** The first 16 characters of SHA-256 in lower-case base32 ([RFC 4648] alphabet): 80 bits. */
const hash = (text: string): string => {
  const bits = BigInt(`0x${createHash('sha256').update(text).digest('hex').slice(0, 20)}`)
  let name = ''
  for (let shift = 75n; shift >= 0n; shift -= 5n) name += BASE32[Number((bits >> shift) & 31n)]
  return name
}
