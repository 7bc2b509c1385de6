/**
 * Approved definitions of servers, each with its digest: from a lock file in git, or as first seen. Plain data. Digests are taken of the
 * server's own definitions, before any edit (DECISIONS 5).
 */
import { canonical } from '../../wire/message/canonical.ts'
import { compareNames } from '../merge.ts'
import { digestEntry } from '../digest.ts'
import { LIST_KINDS } from '../inventory.ts'
import type { Inventory, ListKind } from '../inventory.ts'

/**
 * `allow`: the changed definition is served. `warn`: the same, with a finding. `hold`: the pinned definition stays listed until the new
 * one is approved. `quarantine`: not listed and not callable until approved.
 */
export type OnChange = 'allow' | 'warn' | 'hold' | 'quarantine'

export type LockKind = 'instructions' | ListKind
/** In the order of a lock file. */
export const LOCK_KINDS: readonly LockKind[] = ['instructions', 'tools', 'prompts', 'resources', 'templates']

/** One approved definition. */
export interface Locked {
  readonly kind: LockKind
  /** Original name, URI or template; empty for the instructions. */
  readonly name: string
  /** SHA-256 of the canonical text, in hexadecimal. */
  readonly digest: string
  /** Canonical JSON text: an object, or a string for instructions. Empty if only the digest is stored. */
  readonly definition: string
}

/** One server in a lock. */
export interface ServerLock {
  readonly key: string
  readonly entries: readonly Locked[]
  /** Definitions that differ for hosts that run MCP Apps, or that only these see. */
  readonly apps: readonly Locked[]
}

/** A definition that differs from the approved one. */
export interface LockChange {
  readonly kind: LockKind
  readonly name: string
  /** `undefined`: it is not locked. */
  readonly from: Locked | undefined
  /** `undefined`: no longer offered. */
  readonly to: Locked | undefined
}

/** The lock entries for everything a server offers, before any policy. */
export const lockedOf = ({ instructions, lists }: Pick<Inventory, 'instructions' | 'lists'>): Locked[] => [
  ...(instructions === undefined ? [] : [locked('instructions', '', Buffer.from(JSON.stringify(instructions)))]),
  ...LIST_KINDS.flatMap((kind) => lists[kind].map(({ original, raw }) => locked(kind, original, raw))),
]

/** The lock of one server; `apps` holds only entries that differ from the common lists. */
export const lockServer = (key: string, offered: Inventory, forApps: Inventory | undefined): ServerLock => {
  const entries = lockedOf(offered)
  const common = new Set(entries.map(({ kind, digest }) => `${kind} ${digest}`))
  const own = forApps === undefined ? [] : lockedOf(forApps).filter(({ kind, digest }) => !common.has(`${kind} ${digest}`))
  return { key, entries: inLockOrder(entries), apps: inLockOrder(own) }
}

/** The differences, sorted by kind and name. */
export const compareLocked = (before: readonly Locked[], after: readonly Locked[]): LockChange[] => {
  const known = indexLocked(before)
  const offered = indexLocked(after)
  const changed = after.flatMap((to): LockChange[] => {
    const from = known.get(lockId(to.kind, to.name))
    return from?.digest === to.digest ? [] : [{ kind: to.kind, name: to.name, from, to }]
  })
  const gone = before.flatMap((from): LockChange[] =>
    offered.has(lockId(from.kind, from.name)) ? [] : [{ kind: from.kind, name: from.name, from, to: undefined }],
  )
  return [...changed, ...gone].sort(byKindAndName)
}

export const lockId = (kind: LockKind, name: string): string => `${kind} ${name}`

export const indexLocked = (entries: readonly Locked[]): ReadonlyMap<string, Locked> =>
  new Map(entries.map((entry) => [lockId(entry.kind, entry.name), entry]))

/** The order of a lock file: kinds as in `LOCK_KINDS`, names by code point, so that a change moves no other entry. */
export const inLockOrder = (entries: readonly Locked[]): readonly Locked[] => entries.toSorted(byKindAndName)

interface Named {
  readonly kind: LockKind
  readonly name: string
}

const byKindAndName = (a: Named, b: Named): number =>
  LOCK_KINDS.indexOf(a.kind) - LOCK_KINDS.indexOf(b.kind) || compareNames(a.name, b.name)

const locked = (kind: LockKind, name: string, raw: Buffer): Locked => ({
  kind,
  name,
  digest: digestEntry(raw),
  definition: canonical(raw),
})
