/**
 * Finds hidden characters in definitions and applies `hidden_characters` (T-16). A definition is inspected as a model reads it, with its
 * escapes decoded. `strip` removes the hidden characters and keeps all other bytes.
 */
import { parseOwnJson } from '../../values/own-json.ts'
import { findHidden, stripHidden } from '../../wire/protocol/hidden-characters.ts'
import type { Hidden } from '../../wire/protocol/hidden-characters.ts'
import { membersAt } from '../../wire/message/members.ts'
import { digestInventory } from '../digest.ts'
import { perKind } from '../inventory.ts'
import type { Entry, Finding, Inventory, LeftOut, ListKind } from '../inventory.ts'

/** `warn`: served unchanged, with a finding. `strip`: served without the characters. `drop`: left out. */
export type HiddenPolicy = 'warn' | 'strip' | 'drop'

/** The inventory after the policy; the same object if it has no hidden characters. */
export const vetHidden = (inventory: Inventory, hidden: HiddenPolicy): Inventory => {
  const leftOut: LeftOut[] = []
  const findings: Finding[] = []
  const vetted = (kind: ListKind) =>
    inventory.lists[kind].flatMap((entry): Entry[] => {
      const vetted = vetEntry(entry, kind, hidden, findings)
      if ('reason' in vetted) leftOut.push(vetted)
      return 'reason' in vetted ? [] : [vetted]
    })
  const lists = perKind(vetted)
  const instructions = vetInstructions(inventory.instructions, hidden, findings)
  if (leftOut.length === 0 && findings.length === 0) return inventory
  const clean = {
    ...inventory,
    lists,
    instructions,
    leftOut: [...inventory.leftOut, ...leftOut],
    findings: [...inventory.findings, ...findings],
  }
  return { ...clean, digest: digestInventory(clean) }
}

/** The entry after the policy. Its name is never altered: the server would not recognise it. */
const vetEntry = (entry: Entry, kind: ListKind, hidden: HiddenPolicy, findings: Finding[]): Entry | LeftOut => {
  const note = describeHidden(entry.raw)
  if (note === undefined) return entry
  const { original } = entry
  if (hidden === 'drop' || (hidden === 'strip' && findHidden(original).length > 0))
    return { kind, name: original, reason: `${note} (hidden_characters: ${hidden})` }
  findings.push({ kind, name: original, note: hidden === 'strip' ? `${note}; served without` : note })
  return hidden === 'strip' ? { ...entry, raw: stripEntry(entry.raw) } : entry
}

const vetInstructions = (text: string | undefined, hidden: HiddenPolicy, findings: Finding[]): string | undefined => {
  const found = text === undefined ? [] : findHidden(text)
  if (text === undefined || found.length === 0) return text
  const note = found.map((one) => formatHidden('its text', one)).join('; ')
  findings.push({ kind: 'instructions', name: '', note: hidden === 'warn' ? note : `${note}; served without` })
  return hidden === 'warn' ? text : hidden === 'strip' ? stripHidden(text) : undefined
}

/** Text for an operator about hidden characters in each member; `undefined` if there are none. `raw`: one JSON object. */
export const describeHidden = (raw: Buffer): string | undefined => {
  const isPlain = raw.every(isPlainByte)
  if (isPlain) return undefined
  const parts = membersAt(raw, 0).flatMap(({ key, start, end }) =>
    [...findHidden(unescaped(raw.toString('utf8', start, end))), ...findHidden(key)].map((hidden) => formatHidden(key, hidden)),
  )
  return parts.length === 0 ? undefined : parts.join('; ')
}

/** `description hides 12 tag characters (U+E0049 …)`; the caller must clean `where` before printing it. */
const formatHidden = (where: string, { kind, first, count }: Hidden): string =>
  `${where} hides ${count} ${kind} ${count === 1 ? `character (${first})` : `characters (${first} …)`}`

/** The definition without the hidden characters of its texts. */
export const stripEntry = (raw: Buffer): Buffer =>
  Buffer.from(
    raw.toString('utf8').replace(STRING, (token) => {
      const text = parseOwnJson<string>(token)
      const clean = stripHidden(text)
      return clean === text ? token : JSON.stringify(clean)
    }),
  )

const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/gs

/** ASCII without control characters and backslash, or white space between tokens. */
const isPlainByte = (byte: number): boolean =>
  (byte >= 0x20 && byte < 0x7f && byte !== 0x5c) || byte === 0x0a || byte === 0x0d || byte === 0x09

const SHORT_ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

/** JSON text with decoded escapes; everything else stays. */
const unescaped = (json: string): string =>
  json.replace(/\\(?:u([0-9a-fA-F]{4})|(.))/gs, (_, code: string | undefined, letter: string) =>
    code === undefined ? (SHORT_ESCAPES[letter] ?? letter) : String.fromCharCode(Number.parseInt(code, 16)),
  )
