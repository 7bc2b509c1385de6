/** Digests by which changes are detected: SHA-256 in hexadecimal. */
import { createHash } from 'node:crypto'
import { canonical } from '../wire/message/canonical.ts'
import { isModernRevision } from '../wire/protocol/revisions.ts'
import { LIST_KINDS } from './inventory.ts'
import type { Inventory } from './inventory.ts'

/** Digest of one definition, independent of the order of keys, white space and escapes. Throws `ScanError`. */
export const digestEntry = (raw: Buffer): string => createHash('sha256').update(canonical(raw)).digest('hex')

/**
 * Digest of everything a server offers, independent of the order of a legacy server's lists: some servers change the order with each
 * request, and the first order stays (B292).
 */
export const digestInventory = (inventory: Omit<Inventory, 'digest' | 'freshness'>): string => {
  const { revision, capabilities, instructions, serverInfo, lists, leftOut, findings, warnings } = inventory
  const entries = LIST_KINDS.map((kind) => {
    const digests = lists[kind].map((entry) => digestEntry(entry.raw))
    return isModernRevision(revision) ? digests : digests.sort()
  })
  const rest = Buffer.from(
    JSON.stringify([revision, capabilities, instructions ?? null, leftOut, findings, warnings, entries, serverInfo]),
  )
  return digestEntry(rest)
}

/** Digest of a sequence of buffers. */
export const digestBytes = (entries: readonly Buffer[]): string => {
  const hash = createHash('sha256')
  for (const entry of entries) hash.update(`${entry.length}:`).update(entry)
  return hash.digest('hex')
}
