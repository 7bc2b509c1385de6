/**
 * One entry as sent to a host: the server's bytes with the exposed name or URI, and with edits of the few members that depend on the
 * host's revision or on curation, or break the shape of a definition. All other bytes stay (BRIDGING 2.6).
 */
import { cleanLabel } from '../../wire/protocol/label.ts'
import { cutMembers, edited, elementsAt, lastMember, membersAt } from '../../wire/message/members.ts'
import type { Edit } from '../../wire/message/members.ts'
import { stringAt } from '../../wire/message/payload.ts'
import type { Revision } from '../../wire/protocol/revisions.ts'
import type { Member } from '../../wire/json/scan.ts'
import { checkShape } from '../definition-shape.ts'
import { LISTS } from '../inventory.ts'
import type { ListKind } from '../inventory.ts'
import { overridden } from '../curate/override.ts'
import type { ToolOverride } from '../curate/override.ts'
import { exposeUri } from '../names/uris.ts'
import { wrapOutputSchema } from './wrap-schema.ts'
import { OPEN_BRACKET, QUOTE } from '../../wire/json/tokens.ts'

/** Form of lists by the host's revision. `wrapped`: only object roots in `outputSchema`. `tasks`: with `execution`. */
export const LIST_FORMS = ['natural', 'wrapped', 'wrapped+tasks'] as const
export type ListForm = (typeof LIST_FORMS)[number]

export const listForm = (revision: Revision): ListForm =>
  revision === '2025-11-25' ? 'wrapped+tasks' : revision === '2025-06-18' ? 'wrapped' : 'natural'

/** Everything that the form of an entry depends on, besides its own bytes. */
export interface Exposure {
  readonly kind: ListKind
  readonly form: ListForm
  /** Entry of a modern server, whose `outputSchema` may have a root other than an object. */
  readonly isModern: boolean
  readonly exposed: string
  /** Prefix of URIs in the entry; `undefined`: they stay. */
  readonly uriPrefix: string | undefined
  /** Appended to titles as ` (<label>)`. */
  readonly label: string | undefined
  /** Whether `_meta.ui` is shown. */
  readonly apps: boolean
  /** Whether `outputSchema` is left out. */
  readonly hidesOutput?: boolean
  /** Texts and hints of a toolset in place of the tool's own. */
  readonly override?: ToolOverride | undefined
}

const UI_KEYS: ReadonlySet<string> = new Set(['ui', 'ui/resourceUri'])

/** The bytes of the entry under this exposure; `own` itself if nothing changes. */
export const readyEntry = (own: Buffer, exposure: Exposure): Buffer => {
  const shaped = edited(own, checkShape(own, exposure.kind).edits)
  const raw = exposure.override === undefined ? shaped : overridden(shaped, exposure.override)
  const members = membersAt(raw, 0)
  const edits: Edit[] = []
  for (const member of members) {
    if (member.key === LISTS[exposure.kind].field) editText(raw, member, () => exposure.exposed, edits)
    else if (member.key === '_meta') editMeta(raw, member, exposure, edits)
    else if (member.key === 'title' && exposure.label !== undefined) decorate(raw, member, exposure.label, edits)
    else if (exposure.kind === 'tools') editTool(raw, member, exposure, edits)
  }
  if (exposure.kind === 'tools') edits.push(...cutMembers(members, ({ key }) => isCut(key, exposure)))
  return edited(raw, edits)
}

const isCut = (key: string, { form, hidesOutput }: Exposure): boolean =>
  (key === 'execution' && form !== 'wrapped+tasks') || (key === 'outputSchema' && hidesOutput === true)

const editTool = (raw: Buffer, member: Member, exposure: Exposure, edits: Edit[]): void => {
  if (member.key === 'annotations' && exposure.label !== undefined) {
    const title = lastMember(membersAt(raw, member.start), 'title')
    if (title !== undefined) decorate(raw, title, exposure.label, edits)
  }
  const isWrapped = exposure.isModern && exposure.form !== 'natural' && exposure.hidesOutput !== true
  if (member.key === 'outputSchema' && isWrapped) {
    const wrapped = wrapOutputSchema(raw.subarray(member.start, member.end))
    if (wrapped !== undefined) edits.push({ start: member.start, end: member.end, text: wrapped.toString() })
  }
}

const editMeta = (raw: Buffer, meta: Member, exposure: Exposure, edits: Edit[]): void => {
  const members = membersAt(raw, meta.start)
  if (!exposure.apps) return hideApps(raw, members, edits)
  const prefix = exposure.uriPrefix
  if (exposure.kind !== 'tools' || prefix === undefined) return
  const expose = (uri: string): string => exposeUri(prefix, uri)
  for (const member of members) {
    if (member.key === 'ui/resourceUri') editText(raw, member, expose, edits)
    if (member.key !== 'ui') continue
    for (const inner of membersAt(raw, member.start)) if (inner.key === 'resourceUri') editText(raw, inner, expose, edits)
  }
}

/** Removes what names an app. A tool that is for apps alone still says so: models must not see it ([ext apps], Visibility). */
const hideApps = (raw: Buffer, members: readonly Member[], edits: Edit[]): void => {
  const kept = new Set(members.filter(({ key, start }) => key === 'ui' && isForAppsAlone(raw, start)))
  edits.push(...cutMembers(members, (member) => UI_KEYS.has(member.key) && !kept.has(member)))
  for (const { start } of kept) edits.push(...cutMembers(membersAt(raw, start), ({ key }) => key !== 'visibility'))
}

const isForAppsAlone = (raw: Buffer, ui: number): boolean => {
  const visibility = lastMember(membersAt(raw, ui), 'visibility')
  if (visibility === undefined || raw[visibility.start] !== OPEN_BRACKET) return false
  return elementsAt(raw, visibility.start).every((one) => stringAt(raw, one) !== 'model')
}

const editText = (raw: Buffer, member: Member, change: (text: string) => string, edits: Edit[]): void => {
  const text = stringAt(raw, member)
  const changed = text === undefined ? undefined : change(text)
  if (changed !== text && changed !== undefined)
    edits.push({ start: member.start, end: member.end, text: JSON.stringify(changed) })
}

const decorate = (raw: Buffer, member: Member, label: string, edits: Edit[]): void => {
  if (raw[member.start] !== QUOTE) return
  edits.push({ start: member.end - 1, end: member.end - 1, text: JSON.stringify(` (${cleanLabel(label)})`).slice(1, -1) })
}
