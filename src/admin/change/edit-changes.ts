/**
 * What an edit of the configuration may say, and the text of a file with it: names put into lists and taken out, words of a tool, a
 * toolset. Lists are changed once for all names of a batch, as each change of a text is parsed and compared.
 */
import { appendIn, lookIn, readText, removeIn, removeItemsIn, setIn } from '../../host-files/edit/editor.ts'
import type { Steps } from '../../host-files/edit/text-format.ts'
import { AdminRefusal } from '../refusal.ts'

/** One tool of one server, by its original name. Members that are absent stay as they are; `null` removes what the configuration says. */
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

/** Whether a toolset names a tool, by its exposed name. */
export interface MemberChange {
  readonly kind: 'toolset'
  readonly toolset: string
  readonly tool: string
  readonly member: boolean
}

/** A toolset that is not there yet, of tools by their exposed names. */
export interface NewToolset {
  readonly kind: 'new toolset'
  readonly toolset: string
  readonly description?: string
  readonly tools: readonly string[]
  /** Absent members are not limited. */
  readonly budget?: { readonly tools?: number; readonly tokens?: number }
}

/** Whether a server has a word that toolsets choose servers by. */
export interface TagChange {
  readonly kind: 'tag'
  readonly server: string
  readonly tag: string
  readonly tagged: boolean
}

export type ConfigurationChange = ToolChange | MemberChange | NewToolset | TagChange

/** What the change is about: where it stands in a file, and its name for a person. */
export const subjectOf = (change: ConfigurationChange): { readonly steps: Steps; readonly name: string } =>
  change.kind === 'tool' || change.kind === 'tag'
    ? { steps: ['servers', change.server], name: `server ${JSON.stringify(change.server)}` }
    : { steps: ['toolsets', change.toolset], name: `toolset ${JSON.stringify(change.toolset)}` }

/** The text with all changes. Throws `AdminRefusal` for what no line can express, and `EditError`. */
export const withChanges = (file: string, text: string, changes: readonly ConfigurationChange[]): string => {
  const edits = Map.groupBy(changes.flatMap(listEdits), ({ steps }) => JSON.stringify(steps))
  const listed = [...edits.values()].reduce((before, group) => withNames(file, before, group), text)
  return changes.reduce((before, change) => withWords(file, before, change), listed)
}

/** A name that a list holds from now on, or does not. */
interface ListEdit {
  readonly steps: Steps
  readonly name: string
  readonly isIn: boolean
  /** Why it cannot be taken out where the list does not name it; `undefined`: nothing is to be done then. */
  readonly absent: string | undefined
  /** Why the list must name something before and afterwards; `undefined`: it may be empty. */
  readonly empty: { readonly before: string; readonly after: string } | undefined
}

const listEdits = (change: ConfigurationChange): readonly ListEdit[] => {
  switch (change.kind) {
    case 'tool': {
      const { server, tool, hidden } = change
      if (hidden === undefined) return []
      const absent = `"filter.deny" does not name ${JSON.stringify(tool)}: another rule hides it, which the tool's page tells with its place`
      return [{ steps: ['servers', server, 'filter', 'deny'], name: tool, isIn: hidden, absent, empty: undefined }]
    }
    case 'toolset': {
      const { toolset, tool, member } = change
      const absent = `no entry of "tools" is ${JSON.stringify(tool)}: a pattern holds it, or another part of the toolset; edit the file`
      const empty = {
        before: `toolset ${JSON.stringify(toolset)} names no tools, so it is not chosen by name what it holds`,
        after: `that is all that toolset ${JSON.stringify(toolset)} names: without it, it would hold every tool`,
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

/** All edits are of one list. */
const withNames = (file: string, text: string, edits: readonly ListEdit[]): string => {
  const [{ steps, empty } = { steps: [], empty: undefined }] = edits
  const written = lookIn(readText(file, text), steps)
  const names = [written ?? []].flat().map(String)
  if (empty !== undefined && names.length === 0) throw refused(empty.before)
  const added = [...new Set(edits.filter(({ isIn }) => isIn).map(({ name }) => name))].filter((name) => !names.includes(name))
  const pattern = added.find((name) => /[*?]/.test(name))
  if (pattern !== undefined) throw refused(`${JSON.stringify(pattern)} would be a pattern; edit the file`)
  const taken = new Set(edits.filter(({ isIn }) => !isIn).map(({ name }) => name))
  const missing = edits.find(({ name, isIn, absent }) => !isIn && absent !== undefined && !names.includes(name))
  if (missing?.absent !== undefined) throw refused(missing.absent)
  const left = names.filter((name) => !taken.has(name))
  if (empty !== undefined && left.length + added.length === 0) throw refused(empty.after)
  const grown =
    added.length === 0
      ? text
      : Array.isArray(written) && written.length > 0
        ? appendIn(file, text, steps, added)
        : setIn(file, text, steps, [...names, ...added])
  if (left.length === names.length) return grown
  if (left.length + added.length === 0) return withoutEmpty(file, removeIn(file, grown, steps), steps.slice(0, -1))
  const places = names.flatMap((name, at) => (taken.has(name) ? [at] : []))
  return removeItemsIn(file, grown, steps, places)
}

const TEXTS = ['name', 'title', 'description'] as const

/** What is no list of names. */
const withWords = (file: string, text: string, change: ConfigurationChange): string => {
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
  if (tools.length === 0)
    throw refused(`toolset ${JSON.stringify(toolset)} would hold every tool: name at least one that it is to hold`)
  const pattern = tools.find((name) => /[*?]/.test(name))
  if (pattern !== undefined) throw refused(`${JSON.stringify(pattern)} would be a pattern; edit the file`)
  const isLimited = budget !== undefined && Object.keys(budget).length > 0
  return setIn(file, text, ['toolsets', toolset], {
    ...(description !== undefined && { description }),
    tools: [...new Set(tools)],
    ...(isLimited && { budget }),
  })
}

/** Removes what has become empty, from the inside out; never a server or a toolset. */
const withoutEmpty = (file: string, text: string, steps: Steps): string => {
  if (steps.length <= 2) return text
  const left = lookIn(readText(file, text), steps)
  const isEmpty = left === null || (typeof left === 'object' && Object.keys(left).length === 0)
  return isEmpty ? withoutEmpty(file, removeIn(file, text, steps), steps.slice(0, -1)) : text
}

const refused = (message: string): AdminRefusal => new AdminRefusal(409, 'edit', message)
