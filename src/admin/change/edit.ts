/**
 * An edit of the configuration from the dashboard: one tool switched off or on, renamed or described, or put into a toolset. It is written into
 * the file that says it, with everything else of the file left byte for byte, and shown as a plan before.
 *
 * The surprise: nothing is remembered between the plan and its application. The second request names the digest of the file that the plan
 * was made from, and is refused where the file is another by now.
 */
import { extname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Configuration } from '../../config/options.ts'
import { recogniseHostFile } from '../../config/read/host-file.ts'
import type { EditedFile } from '../../config/runtime-environment.ts'
import { parseText } from '../../config/syntax/document.ts'
import type { Problem } from '../../config/syntax/problems.ts'
import { ChangeError, digestOf, readState, replaceFile, textOfState } from '../../host-files/edit/change.ts'
import type { FileState } from '../../host-files/edit/change.ts'
import { diffLines } from '../../host-files/edit/diff.ts'
import { lookIn, readText, removeIn, setIn } from '../../host-files/edit/editor.ts'
import { EditError } from '../../host-files/edit/text-format.ts'
import type { Steps } from '../../host-files/edit/text-format.ts'
import type { Plan } from './plan.ts'
import { AdminRefusal } from '../refusal.ts'
import type { PlanEnd, ReloadEnd } from './reload-ends.ts'

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

export interface EditRequest {
  readonly change: ToolChange | MemberChange
  /** Digest of the file as it was planned; `undefined`: only plan it. */
  readonly revision: string | undefined
}

export type EditEnd =
  | {
      readonly kind: 'planned'
      /** As it is named in the configuration's places. */
      readonly file: string
      /** Lines that begin with a blank, `-` or `+`. */
      readonly diff: readonly string[]
      readonly revision: string
      readonly plan: Plan
    }
  /** The edited configuration would be refused; nothing was written. */
  | { readonly kind: 'refused'; readonly problems: readonly Problem[] }
  | ReloadEnd

/** What an edit needs of what reloads. */
interface Reloads {
  plan(edited?: EditedFile): Promise<PlanEnd>
  reload(): Promise<ReloadEnd>
}

/** Rejects with `AdminRefusal` for what no line can express, and where the file is not the planned one any more. */
export const editConfiguration = async (
  { files }: Pick<Configuration, 'files'>,
  reloads: Reloads,
  { change, revision }: EditRequest,
): Promise<EditEnd> => {
  const { file, state } = await fileOf(files, change)
  const before = textOfState(state)
  const digest = digestOf(state.bytes)
  if (revision !== undefined && revision !== digest) throw changedMeanwhile(file)
  const text = refusing(file, () => apply(file, before, change))
  if (text === before) throw new AdminRefusal(409, 'nothing', `${file} says so already`)
  const end = await reloads.plan({ file, text })
  if (end.kind === 'refused') return end
  if (revision === undefined) return { kind: 'planned', file, diff: diffLines(before, text), revision: digest, plan: end.plan }
  await replaceFile(state, Buffer.from(text)).catch((error: unknown) => {
    throw error instanceof ChangeError ? new AdminRefusal(409, 'changed', error.message) : error
  })
  return reloads.reload()
}

const changedMeanwhile = (file: string): AdminRefusal =>
  new AdminRefusal(409, 'changed', `${file} was changed meanwhile: look at the plan again`)

/** The file that says what is changed. */
const fileOf = async (
  files: readonly string[],
  change: ToolChange | MemberChange,
): Promise<{ readonly file: string; readonly state: FileState }> => {
  const [steps, what]: readonly [Steps, string] =
    change.kind === 'tool'
      ? [['servers', change.server], `server ${JSON.stringify(change.server)}`]
      : [['toolsets', change.toolset], `toolset ${JSON.stringify(change.toolset)}`]
  for (const file of files) {
    if (!['.yaml', '.yml', '.json', '.jsonc', '.json5'].includes(extname(file).toLowerCase())) continue
    const state = await readState(file).catch(() => undefined)
    const text = state === undefined ? '' : textOfState(state)
    const { tree, problems } = parseText(text, file)
    if (state === undefined || problems.length > 0 || tree.kind !== 'map') continue
    if (recogniseHostFile(tree, file) === undefined && lookIn(readText(file, text), steps) !== undefined) return { file, state }
  }
  throw new AdminRefusal(404, 'gone', `no file of this configuration has ${what}; files of hosts are not changed here`)
}

const apply = (file: string, text: string, change: ToolChange | MemberChange): string =>
  change.kind === 'tool' ? applyToTool(file, text, change) : applyToToolset(file, text, change)

const TEXTS = ['name', 'title', 'description'] as const

const applyToTool = (file: string, text: string, change: ToolChange): string => {
  const at = ['servers', change.server]
  let next = text
  if (change.hidden === true) next = addName(file, next, [...at, 'filter', 'deny'], change.tool)
  if (change.hidden === false) next = removeName(file, next, [...at, 'filter', 'deny'], change.tool, hiddenElsewhere)
  for (const member of TEXTS) {
    const value = change[member]
    if (value === undefined) continue
    const steps = [...at, 'tools', change.tool, member]
    if (value === null) next = withoutEmpty(file, removeIn(file, next, steps), steps.slice(0, -1))
    else if (lookIn(readText(file, next), steps) !== value) next = setIn(file, next, steps, value)
  }
  return next
}

const hiddenElsewhere = (tool: string): string =>
  `"filter.deny" does not name ${JSON.stringify(tool)}: another rule hides it, which the tool's page tells with its place`

const applyToToolset = (file: string, text: string, { toolset, tool, member }: MemberChange): string => {
  const steps = ['toolsets', toolset, 'tools']
  const names = namesAt(file, text, steps)
  if (member) {
    if (names.length === 0)
      throw new AdminRefusal(
        409,
        'edit',
        `toolset ${JSON.stringify(toolset)} names no tools, so it is not chosen by name what it holds`,
      )
    return addName(file, text, steps, tool)
  }
  if (isDeepStrictEqual(names, [tool]))
    throw new AdminRefusal(
      409,
      'edit',
      `${JSON.stringify(tool)} is all that the toolset names: without it, it would hold every tool`,
    )
  return removeName(file, text, steps, tool, heldByPattern)
}

const heldByPattern = (tool: string): string =>
  `no entry of "tools" is ${JSON.stringify(tool)}: a pattern holds it, or another part of the toolset; edit the file`

/** One text, or a list of them. */
const namesAt = (file: string, text: string, steps: Steps): readonly string[] =>
  [lookIn(readText(file, text), steps) ?? []].flat().map(String)

const addName = (file: string, text: string, steps: Steps, name: string): string => {
  if (/[*?]/.test(name)) throw new AdminRefusal(409, 'edit', `${JSON.stringify(name)} would be a pattern; edit the file`)
  const written = lookIn(readText(file, text), steps)
  const names = namesAt(file, text, steps)
  if (names.includes(name)) return text
  return Array.isArray(written) && written.length > 0
    ? setIn(file, text, [...steps, written.length], name)
    : setIn(file, text, steps, [...names, name])
}

const removeName = (file: string, text: string, steps: Steps, name: string, why: (name: string) => string): string => {
  const names = namesAt(file, text, steps)
  const index = names.indexOf(name)
  if (index === -1) throw new AdminRefusal(409, 'edit', why(name))
  return names.length === 1
    ? withoutEmpty(file, removeIn(file, text, steps), steps.slice(0, -1))
    : removeIn(file, text, [...steps, index])
}

/** Removes what has become empty, from the inside out; never a server or a toolset. */
const withoutEmpty = (file: string, text: string, steps: Steps): string => {
  if (steps.length <= 2) return text
  const left = lookIn(readText(file, text), steps)
  const isEmpty = left === null || (typeof left === 'object' && Object.keys(left).length === 0)
  return isEmpty ? withoutEmpty(file, removeIn(file, text, steps), steps.slice(0, -1)) : text
}

/** Turns what an edit of a text refuses into an answer. */
const refusing = (file: string, edit: () => string): string => {
  try {
    return edit()
  } catch (error) {
    if (error instanceof EditError) throw new AdminRefusal(409, 'edit', `${file} ${error.message}; edit it by hand`)
    throw error
  }
}

/** Reads the body of `POST /edit`. Throws `AdminRefusal`. */
export const readEdit = (body: string): EditRequest => {
  const request = objectOf(body)
  const change = objectIn(request['change'])
  const { revision } = request
  if (revision !== undefined && typeof revision !== 'string') throw wrong('revision must be the one of a plan')
  const text = (key: string): string => {
    const value = change[key]
    if (typeof value !== 'string' || value === '') throw wrong(`change.${key} must be a text`)
    return value
  }
  if (change['kind'] === 'toolset') {
    const { member } = change
    if (typeof member !== 'boolean') throw wrong('change.member must be true or false')
    return { change: { kind: 'toolset', toolset: text('toolset'), tool: text('tool'), member }, revision }
  }
  if (change['kind'] !== 'tool') throw wrong('change.kind must be "tool" or "toolset"')
  const { hidden } = change
  if (hidden !== undefined && typeof hidden !== 'boolean') throw wrong('change.hidden must be true or false')
  const texts = TEXTS.flatMap((member) =>
    change[member] === undefined ? [] : [[member, change[member] === null ? null : text(member)]],
  )
  return {
    change: {
      kind: 'tool',
      server: text('server'),
      tool: text('tool'),
      ...(hidden !== undefined && { hidden }),
      ...(Object.fromEntries(texts) as Pick<ToolChange, (typeof TEXTS)[number]>),
    },
    revision,
  }
}

const wrong = (message: string): AdminRefusal => new AdminRefusal(400, 'body', message)

const objectOf = (json: string): Readonly<Record<string, unknown>> => {
  try {
    return objectIn(JSON.parse(json))
  } catch (error) {
    throw error instanceof AdminRefusal ? error : wrong('expected a JSON object')
  }
}

const objectIn = (value: unknown): Readonly<Record<string, unknown>> => {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Readonly<Record<string, unknown>>
  throw wrong('expected a JSON object with "change"')
}
