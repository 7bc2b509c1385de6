/**
 * The changes that an edit of the configuration can make, and a file's text with them: names in lists, texts of a tool, a new toolset.
 * Each list is changed once for all names of a batch, because every change of a text is parsed and compared.
 */
import { appendIn, lookIn, readText, removeIn, removeItemsIn, setIn } from '../../host-files/edit/editor.ts'
import type { Steps } from '../../host-files/edit/text-format.ts'
import { AdminRefusal } from '../refusal.ts'

/** Changes one tool of one server, by its original name. Absent members stay unchanged; `null` removes the option. */
export interface ToolChange {
  readonly kind: 'tool'
  readonly server: string
  readonly tool: string
  readonly hidden?: boolean
  /** Behind the prefix. */
  readonly name?: string | null
  readonly title?: string | null
  readonly description?: string | null
}

/** Adds a tool to a toolset or removes it, by its exposed name. */
export interface MemberChange {
  readonly kind: 'toolset'
  readonly toolset: string
  readonly tool: string
  readonly member: boolean
}

/** A new toolset with tools by their exposed names. */
export interface NewToolset {
  readonly kind: 'new toolset'
  readonly toolset: string
  readonly description?: string
  readonly tools: readonly string[]
  /** Absent members are unlimited. */
  readonly budget?: { readonly tools?: number; readonly tokens?: number }
}

/** Adds a tag to a server or removes it. */
export interface TagChange {
  readonly kind: 'tag'
  readonly server: string
  readonly tag: string
  readonly tagged: boolean
}

export type ConfigurationChange = ToolChange | MemberChange | NewToolset | TagChange

/** The subject of a change: its path in a file, and its name for people. */
export const subjectOf = (change: ConfigurationChange): { readonly steps: Steps; readonly name: string } =>
  change.kind === 'tool' || change.kind === 'tag'
    ? { steps: ['servers', change.server], name: `server ${JSON.stringify(change.server)}` }
    : { steps: ['toolsets', change.toolset], name: `toolset ${JSON.stringify(change.toolset)}` }

/** The text with all changes. Throws `AdminRefusal` for changes that cannot be made by an edit, and `EditError`. */
export const withChanges = (file: string, text: string, changes: readonly ConfigurationChange[]): string => {
  const edits = Map.groupBy(changes.flatMap(listEdits), ({ steps }) => JSON.stringify(steps))
  const listed = [...edits.values()].reduce((before, group) => withNames(file, before, group), text)
  return changes.reduce((before, change) => withTexts(file, before, change), listed)
}

/** A name to be added to a list, or removed from it. */
interface ListEdit {
  readonly steps: Steps
  readonly name: string
  readonly isIn: boolean
  /** The refusal if a name to be removed is not in the list; `undefined`: nothing is done then. */
  readonly absent: string | undefined
  /** The refusals if the list is empty before or after the edit; `undefined`: it may be empty. */
  readonly empty: { readonly before: string; readonly after: string } | undefined
}

const listEdits = (change: ConfigurationChange): readonly ListEdit[] => {
  switch (change.kind) {
    case 'tool': {
      const { server, tool, hidden } = change
      if (hidden === undefined) return []
      const absent = `"filter.deny" does not name ${JSON.stringify(tool)}: another rule hides it; the page of the tool shows the rule and its place`
      return [{ steps: ['servers', server, 'filter', 'deny'], name: tool, isIn: hidden, absent, empty: undefined }]
    }
    case 'toolset': {
      const { toolset, tool, member } = change
      const absent = `no entry of "tools" is ${JSON.stringify(tool)}: a pattern matches it, or another part of the toolset; edit the file`
      const empty = {
        before: `toolset ${JSON.stringify(toolset)} names no tools, so its tools are not selected by name`,
        after: `toolset ${JSON.stringify(toolset)} names no other tool: without this one, it would contain every tool`,
      }
      return [{ steps: ['toolsets', toolset, 'tools'], name: tool, isIn: member, absent, empty }]
    }
    case 'tag':
      return [
        { steps: ['servers', change.server, 'tags'], name: change.tag, isIn: change.tagged, absent: undefined, empty: undefined },
      ]
    case 'new toolset':
      return []
  }
}

/** Applies edits of one list. */
const withNames = (file: string, text: string, edits: readonly ListEdit[]): string => {
  const [{ steps, empty } = { steps: [], empty: undefined }] = edits
  const written = lookIn(readText(file, text), steps)
  const names = [written ?? []].flat().map(String)
  if (empty !== undefined && names.length === 0) throw refused(empty.before)
  const added = [...new Set(edits.filter(({ isIn }) => isIn).map(({ name }) => name))].filter((name) => !names.includes(name))
  refusePatterns(added)
  const removed = new Set(edits.filter(({ isIn }) => !isIn).map(({ name }) => name))
  const missing = edits.find(({ name, isIn, absent }) => !isIn && absent !== undefined && !names.includes(name))
  if (missing?.absent !== undefined) throw refused(missing.absent)
  const left = names.filter((name) => !removed.has(name))
  if (empty !== undefined && left.length + added.length === 0) throw refused(empty.after)
  const withAdded =
    added.length === 0
      ? text
      : Array.isArray(written) && written.length > 0
        ? appendIn(file, text, steps, added)
        : setIn(file, text, steps, [...names, ...added])
  if (left.length === names.length) return withAdded
  if (left.length + added.length === 0) return withoutEmpty(file, removeIn(file, withAdded, steps), steps.slice(0, -1))
  const places = names.flatMap((name, at) => (removed.has(name) ? [at] : []))
  return removeItemsIn(file, withAdded, steps, places)
}

/** The members of a tool that are texts. */
export const TEXTS = ['name', 'title', 'description'] as const

/** Applies a change other than edits of lists. */
const withTexts = (file: string, text: string, change: ConfigurationChange): string => {
  if (change.kind === 'new toolset') return withToolset(file, text, change)
  if (change.kind !== 'tool') return text
  return TEXTS.reduce((before, member) => {
    const value = change[member]
    const steps = ['servers', change.server, 'tools', change.tool, member]
    if (value === undefined) return before
    if (value === null) return withoutEmpty(file, removeIn(file, before, steps), steps.slice(0, -1))
    return lookIn(readText(file, before), steps) === value ? before : setIn(file, before, steps, value)
  }, text)
}

const withToolset = (file: string, text: string, { toolset, description, tools, budget }: NewToolset): string => {
  if (tools.length === 0) throw refused(`toolset ${JSON.stringify(toolset)} would contain every tool: name at least one`)
  refusePatterns(tools)
  const isLimited = budget !== undefined && Object.keys(budget).length > 0
  return setIn(file, text, ['toolsets', toolset], {
    ...(description !== undefined && { description }),
    tools: [...new Set(tools)],
    ...(isLimited && { budget }),
  })
}

/** Removes the mapping at `steps` and those above it that are empty; never a server or a toolset. */
const withoutEmpty = (file: string, text: string, steps: Steps): string => {
  if (steps.length <= 2) return text
  const left = lookIn(readText(file, text), steps)
  const isEmpty = left === null || (typeof left === 'object' && Object.keys(left).length === 0)
  return isEmpty ? withoutEmpty(file, removeIn(file, text, steps), steps.slice(0, -1)) : text
}

const refusePatterns = (names: readonly string[]): void => {
  const pattern = names.find((name) => /[*?]/.test(name))
  if (pattern !== undefined) throw refused(`${JSON.stringify(pattern)} would be a pattern; edit the file`)
}

const refused = (message: string): AdminRefusal => new AdminRefusal(409, 'edit', message)
