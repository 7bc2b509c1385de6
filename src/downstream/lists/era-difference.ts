/** Describes entries that a server of both eras offers in one era only, for `ps` (BRIDGING 3.0 rule 0). */
import { LIST_KINDS } from '../../catalog/inventory.ts'
import type { Inventory, ListKind } from '../../catalog/inventory.ts'
import { counted } from '../../values/counted.ts'

/** Maximum number of names in one sentence. */
const MAX_NAMES = 5

const NOUNS: Readonly<Record<ListKind, string>> = {
  tools: 'tool',
  resources: 'resource',
  templates: 'resource template',
  prompts: 'prompt',
}

/** One sentence for each list and era with names that the other era lacks. */
export const eraDifference = (modern: Inventory | undefined, legacy: Inventory | undefined): string[] => {
  if (modern === undefined || legacy === undefined) return []
  return LIST_KINDS.flatMap((kind) => [
    ...only(kind, 'legacy hosts', legacy, modern),
    ...only(kind, 'hosts of 2026-07-28', modern, legacy),
  ])
}

const only = (kind: ListKind, hosts: string, has: Inventory, lacks: Inventory): string[] => {
  const others = new Set(lacks.lists[kind].map(({ original }) => original))
  const names = has.lists[kind].map(({ original }) => original).filter((name) => !others.has(name))
  if (names.length === 0) return []
  const more = names.length > MAX_NAMES ? ', …' : ''
  return [
    `the server offers ${counted(names.length, NOUNS[kind])} to ${hosts} only: ${names.slice(0, MAX_NAMES).join(', ')}${more}`,
  ]
}
