/**
 * Applies pins to an inventory (T-17): a definition that differs from the approved one is served, reported, replaced by the approved one
 * or left out. Pure; `downstream/lists/pins.ts` holds the pins.
 */
import { parseOwnJson } from '../../values/own-json.ts'
import { lastMember, membersAt } from '../../wire/message/members.ts'
import { readParamHeaders } from '../../wire/headers/param-headers.ts'
import { digestInventory } from '../digest.ts'
import { perKind } from '../inventory.ts'
import type { Entry, Finding, Inventory, LeftOut, ListKind } from '../inventory.ts'
import { lockedOf } from './lock.ts'
import type { Locked, LockKind, OnChange } from './lock.ts'

/** One approved definition. Without its text it can be compared, but not served. */
export interface Pin {
  readonly digest: string
  readonly definition?: string
}

/** The pins that an inventory is compared with. */
export interface PinReference {
  /** An unpinned definition is a change, too: true for a lock file, false for definitions as first seen. */
  readonly isClosed: boolean
  /** Name of the lock file, for messages. */
  readonly file: string | undefined
  covers(kind: LockKind): boolean
  pin(kind: LockKind, name: string): Pin | undefined
}

/** An offered definition that differs from the approved one. */
export interface Deviation {
  readonly kind: LockKind
  readonly name: string
  readonly from: Pin | undefined
  readonly to: Locked
}

export interface Vetted {
  /** The inventory to serve; the same object without deviations. */
  readonly inventory: Inventory
  readonly deviations: readonly Deviation[]
  /** All compared definitions. */
  readonly measured: readonly Locked[]
}

/** `entryOf` builds the entry of a held definition; a caching one avoids changes for hosts. */
export const vetPinned = (
  offered: Inventory,
  reference: PinReference,
  onChange: OnChange,
  entryOf: (kind: ListKind, name: string, definition: string) => Entry = heldEntry,
): Vetted => {
  const measured = lockedOf(offered)
  const deviations = deviationsOf(measured, reference)
  if (deviations.length === 0 || onChange === 'allow') return { inventory: offered, deviations, measured }
  const notes = deviations.map((deviation) => judge(deviation, reference, onChange))
  const findings: Finding[] = notes.flatMap(({ finding }) => (finding === undefined ? [] : [finding]))
  const leftOut: LeftOut[] = notes.flatMap((note) => (note.leftOut === undefined ? [] : [note.leftOut]))
  const inventory = {
    ...offered,
    ...(onChange === 'warn' ? {} : replaced(offered, deviations, onChange, entryOf)),
    leftOut: [...offered.leftOut, ...leftOut],
    findings: [...offered.findings, ...findings],
  }
  return { inventory: { ...inventory, digest: digestInventory(inventory) }, deviations, measured }
}

const deviationsOf = (measured: readonly Locked[], reference: PinReference): Deviation[] =>
  measured.flatMap((to): Deviation[] => {
    if (!reference.covers(to.kind)) return []
    const from = reference.pin(to.kind, to.name)
    const isFine = from === undefined ? !reference.isClosed : from.digest === to.digest
    return isFine ? [] : [{ kind: to.kind, name: to.name, from, to }]
  })

const replaced = (
  offered: Inventory,
  deviations: readonly Deviation[],
  onChange: OnChange,
  entryOf: (kind: ListKind, name: string, definition: string) => Entry,
): Pick<Inventory, 'lists' | 'instructions'> => {
  const held = (deviation: Deviation): string | undefined => (onChange === 'hold' ? deviation.from?.definition : undefined)
  const ofKind = (kind: ListKind): readonly Entry[] => {
    const own = new Map(deviations.filter((one) => one.kind === kind).map((one) => [one.name, one]))
    if (own.size === 0) return offered.lists[kind]
    return offered.lists[kind].flatMap((entry) => {
      const deviation = own.get(entry.original)
      if (deviation === undefined) return [entry]
      const definition = held(deviation)
      return definition === undefined ? [] : [entryOf(kind, entry.original, definition)]
    })
  }
  const lists = perKind(ofKind)
  const instructions = deviations.find(({ kind }) => kind === 'instructions')
  if (instructions === undefined) return { lists, instructions: offered.instructions }
  const text = held(instructions)
  return { lists, instructions: text === undefined ? undefined : parseOwnJson<string>(text) }
}

/** The entry of a held definition. */
export const heldEntry = (kind: ListKind, original: string, definition: string): Entry => {
  const raw = Buffer.from(definition)
  const schema = kind === 'tools' ? lastMember(membersAt(raw, 0), 'inputSchema') : undefined
  const read = schema && readParamHeaders(raw.subarray(schema.start, schema.end))
  return { original, raw, paramHeaders: read !== undefined && 'headers' in read ? read.headers : [] }
}

interface Judgement {
  readonly finding?: Finding
  readonly leftOut?: LeftOut
}

const judge = ({ kind, name, from }: Deviation, { file }: PinReference, onChange: OnChange): Judgement => {
  const what = kind === 'instructions' ? 'the text' : 'its definition'
  const how =
    file === undefined ? `${what} changed` : from === undefined ? `is not in ${file}` : `${what} is not the one in ${file}`
  if (onChange === 'warn') return { finding: { kind, name, note: `${how}; the new one is served` } }
  if (onChange === 'hold' && from?.definition !== undefined)
    return { finding: { kind, name, note: `${how}; the old one is served until the new one is approved` } }
  const reason = `${how} (lock.on_change: ${onChange}); approve it to serve it`
  return kind === 'instructions'
    ? { finding: { kind, name, note: `not served: ${reason}` } }
    : { leftOut: { kind, name, reason, isRefused: true } }
}
