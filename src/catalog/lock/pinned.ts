/**
 * What of an inventory may be served, measured by what is pinned (T-17): a definition that is not as it was approved is served,
 * told, replaced by the approved one or left out. Pure: what is pinned, and what becomes of it, is the affair of `downstream/lists/pins.ts`.
 */
import { parseOwnJson } from '../../values/own-json.ts'
import { lastMember, membersAt } from '../../wire/message/members.ts'
import { readParamHeaders } from '../../wire/headers/param-headers.ts'
import { digestInventory } from '../digest.ts'
import { perKind } from '../inventory.ts'
import type { Entry, Finding, Inventory, LeftOut, ListKind } from '../inventory.ts'
import { lockedOf } from './lock.ts'
import type { Locked, LockKind, OnChange } from './lock.ts'

/** One approved definition; without its text it can be compared, and not held. */
export interface Pin {
  readonly digest: string
  readonly definition?: string
}

/** What an inventory is measured by. */
export interface PinReference {
  /** What is not pinned is a change, too: true of a lock file, false of what was seen first. */
  readonly isClosed: boolean
  /** Name of the lock file, for words. */
  readonly file: string | undefined
  covers(kind: LockKind): boolean
  pin(kind: LockKind, name: string): Pin | undefined
}

/** One definition that is not as it was approved. */
export interface Deviation {
  readonly kind: LockKind
  readonly name: string
  readonly from: Pin | undefined
  readonly to: Locked
}

export interface Vetted {
  /** As it may be served; the very same one where nothing deviates. */
  readonly inventory: Inventory
  readonly deviations: readonly Deviation[]
  /** Everything that was measured, with its digest. */
  readonly measured: readonly Locked[]
}

/** `entryOf` makes an entry of a held definition; one that keeps what it made spares hosts a change. */
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

/** What is offered and not as it was approved. */
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

/** A held definition as an entry. */
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
