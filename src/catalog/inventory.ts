/** What one downstream server offers, as it said it: entries keep their bytes, order and original names. Immutable. */
import type { ParamHeader } from '../wire/headers/param-headers.ts'
import type { Revision } from '../wire/protocol/revisions.ts'
import type { CallRule } from './curation.ts'
import type { Hints } from './hints.ts'

export type ListKind = 'tools' | 'resources' | 'templates' | 'prompts'
export const LIST_KINDS: readonly ListKind[] = ['tools', 'resources', 'templates', 'prompts']

/** What `of` gives for each kind, in the order of `LIST_KINDS`. */
export const perKind = <T>(of: (kind: ListKind) => T): Record<ListKind, T> => ({
  tools: of('tools'),
  resources: of('resources'),
  templates: of('templates'),
  prompts: of('prompts'),
})

/** One tool, resource, template or prompt. */
export interface Entry {
  /** Original name, URI or URI template: what the server calls it. */
  readonly original: string
  /** The entry's JSON as it came (invalid `x-mcp-header` of pipe servers removed). */
  readonly raw: Buffer
  /** The sign-in tool of the gateway, listed until the caller has signed in. Rules for the server's own tools do not apply to it. */
  readonly isSignIn?: true
  /** Parameters that hosts mirror into headers; empty for all but some tools. */
  readonly paramHeaders: readonly ParamHeader[]
  /** The configured name, in place of `original` before the prefix. */
  readonly renamed?: string
  /** Hints that the operator configured; trusted for every server. */
  readonly told?: Hints
  /** What a call must do. */
  readonly rule?: CallRule
}

/** Why something a server offers is not served. */
export interface LeftOut {
  readonly kind: ListKind
  readonly name: string
  readonly reason: string
  /** A policy keeps it from hosts: nor is it found by its URI. */
  readonly isRefused?: boolean
}

/** What an operator should know of something that is served all the same. */
export interface Finding {
  readonly kind: ListKind | 'instructions'
  /** Original name; empty for the instructions. */
  readonly name: string
  readonly note: string
}

export interface Freshness {
  /** Monotonic milliseconds at which the list was read. */
  readonly receivedAtMs: number
  /** Lifetime the server gave, or the gateway's own for legacy servers. */
  readonly ttlMs: number
  readonly scope: 'public' | 'private'
}

export interface Inventory {
  readonly revision: Revision
  /** The server's capabilities as parsed JSON. */
  readonly capabilities: Readonly<Record<string, unknown>>
  readonly instructions: string | undefined
  /** What the server says it is, as parsed JSON; absent: it does not say. */
  readonly serverInfo?: Readonly<Record<string, unknown>>
  readonly lists: Readonly<Record<ListKind, readonly Entry[]>>
  readonly freshness: Readonly<Record<ListKind, Freshness>>
  readonly leftOut: readonly LeftOut[]
  readonly findings: readonly Finding[]
  /** Sentences about lists cut at a cap or read in part. */
  readonly warnings: readonly string[]
  /** Lists that no capability names and that it does not have; they are not asked for again (B287). Not part of the digest. */
  readonly absent?: readonly ListKind[]
  /** Of all pages as they were read, what was left out included; absent: it was not read but kept. Not part of the digest. */
  readonly readBytes?: number
  /** SHA-256 over all of the above but freshness: equal means nothing changed. */
  readonly digest: string
}

/** The same inventory with lists that must not be kept; the very same one where they already were such. */
export const withoutLifetime = (inventory: Inventory, kinds: readonly ListKind[]): Inventory => {
  const { freshness } = inventory
  if (kinds.every((kind) => freshness[kind].ttlMs === 0)) return inventory
  const outdated = Object.fromEntries(kinds.map((kind) => [kind, { ...freshness[kind], ttlMs: 0 }]))
  return { ...inventory, freshness: { ...freshness, ...outdated } }
}

/** Whether two inventories list the same entries, byte for byte, whatever else they say. */
export const isSameOffer = (a: Inventory, b: Inventory): boolean =>
  LIST_KINDS.every((kind) => {
    const others = b.lists[kind]
    return (
      a.lists[kind].length === others.length &&
      a.lists[kind].every(({ original, raw }, at) => others[at]?.original === original && others[at].raw.equals(raw))
    )
  })
