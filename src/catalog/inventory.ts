/** What one server offers: entries keep their bytes, order and original names. Immutable. */
import type { ParamHeader } from '../wire/headers/param-headers.ts'
import type { ChangedList } from '../wire/protocol/methods.ts'
import type { Revision } from '../wire/protocol/revisions.ts'
import type { CallRule } from './curation.ts'
import type { Hints } from './hints.ts'

export type ListKind = 'tools' | 'resources' | 'templates' | 'prompts'
export const LIST_KINDS: readonly ListKind[] = ['tools', 'resources', 'templates', 'prompts']

/** The four lists in the protocol. */
export const LISTS: Readonly<
  Record<
    ListKind,
    {
      readonly method: string
      /** Member of the result that contains the entries. */
      readonly member: string
      /** Member of an entry with its name, URI or template. */
      readonly field: string
      /** Capability that declares the list. */
      readonly capability: string
    }
  >
> = {
  tools: { method: 'tools/list', member: 'tools', field: 'name', capability: 'tools' },
  resources: { method: 'resources/list', member: 'resources', field: 'uri', capability: 'resources' },
  templates: { method: 'resources/templates/list', member: 'resourceTemplates', field: 'uriTemplate', capability: 'resources' },
  prompts: { method: 'prompts/list', member: 'prompts', field: 'name', capability: 'prompts' },
}

/** `of(kind)` for each kind, called in the order of `LIST_KINDS`. */
export const perKind = <T>(of: (kind: ListKind) => T): Record<ListKind, T> => ({
  tools: of('tools'),
  resources: of('resources'),
  templates: of('templates'),
  prompts: of('prompts'),
})

/** One tool, resource, template or prompt. */
export interface Entry {
  /** Original name, URI or URI template. */
  readonly original: string
  /** The entry's JSON as received (without invalid `x-mcp-header` of pipe servers). */
  readonly raw: Buffer
  /** The sign-in tool of the gateway, listed until the caller has signed in. Rules for the server's own tools do not apply to it. */
  readonly isSignIn?: true
  /** Parameters that hosts mirror into headers; empty for all but some tools. */
  readonly paramHeaders: readonly ParamHeader[]
  /** The configured name, in place of `original` before the prefix. */
  readonly renamed?: string
  /** Hints that the operator configured; trusted for every server. */
  readonly told?: Hints
  /** Rule for calls of the tool. */
  readonly rule?: CallRule
}

/** An offered entry that is not served, and the reason. */
export interface LeftOut {
  readonly kind: ListKind
  readonly name: string
  readonly reason: string
  /** Refused by a policy: hosts cannot reach it by its URI either. */
  readonly isRefused?: boolean
  /** The specification forbids clients to list it, so that it is not relayed at a bridge either (B220). */
  readonly isInvalid?: boolean
}

/** A note for the operator about an entry that is served nevertheless. */
export interface Finding {
  readonly kind: ListKind | 'instructions'
  /** Original name; empty for the instructions. */
  readonly name: string
  readonly note: string
}

export interface Freshness {
  /** Monotonic milliseconds at which the list was read. */
  readonly receivedAtMs: number
  /** Lifetime by the server, or the gateway's default for legacy servers. */
  readonly ttlMs: number
  readonly scope: 'public' | 'private'
}

export interface Inventory {
  readonly revision: Revision
  /** The server's capabilities as parsed JSON. */
  readonly capabilities: Readonly<Record<string, unknown>>
  readonly instructions: string | undefined
  /** The server's `serverInfo` as parsed JSON, if it sent one. */
  readonly serverInfo?: Readonly<Record<string, unknown>>
  readonly lists: Readonly<Record<ListKind, readonly Entry[]>>
  readonly freshness: Readonly<Record<ListKind, Freshness>>
  readonly leftOut: readonly LeftOut[]
  readonly findings: readonly Finding[]
  /** Sentences about lists that were cut at a limit or read in part. */
  readonly warnings: readonly string[]
  /** Undeclared lists that the server does not have; they are not requested again (B287). Not part of the digest. */
  readonly absent?: readonly ListKind[]
  /** Bytes of all pages read, omitted entries included; absent for a stored inventory. Not part of the digest. */
  readonly readBytes?: number
  /** SHA-256 over the members above, except those named and `freshness`: equal digests mean that nothing changed. */
  readonly digest: string
}

/** An inventory as plain data for JSON: entries are texts. */
export interface EncodedInventory extends Omit<Inventory, 'lists'> {
  readonly lists: Readonly<Record<ListKind, readonly (Omit<Entry, 'raw'> & { readonly raw: string })[]>>
}

export const encodeInventory = (inventory: Inventory): EncodedInventory => ({
  ...inventory,
  lists: perKind((kind) => inventory.lists[kind].map((entry) => ({ ...entry, raw: entry.raw.toString() }))),
})

export const decodeInventory = (encoded: EncodedInventory): Inventory => ({
  ...encoded,
  lists: perKind((kind) => encoded.lists[kind].map((entry) => ({ ...entry, raw: Buffer.from(entry.raw) }))),
})

/** The lists that an announced change concerns: templates change with resources. */
export const changedKinds = (list: ChangedList): readonly ListKind[] =>
  list === 'resources' ? ['resources', 'templates'] : [list]

/** The inventory with a lifetime of 0 for these lists; the same object if they already have it. */
export const withoutLifetime = (inventory: Inventory, kinds: readonly ListKind[]): Inventory => {
  const { freshness } = inventory
  if (kinds.every((kind) => freshness[kind].ttlMs === 0)) return inventory
  const outdated = Object.fromEntries(kinds.map((kind) => [kind, { ...freshness[kind], ttlMs: 0 }]))
  return { ...inventory, freshness: { ...freshness, ...outdated } }
}

/** Whether two inventories list the same entries, byte for byte. */
export const isSameOffer = (a: Inventory, b: Inventory): boolean =>
  LIST_KINDS.every((kind) => {
    const others = b.lists[kind]
    return a.lists[kind].length === others.length && a.lists[kind].every(({ raw }, at) => others[at]?.raw.equals(raw))
  })
