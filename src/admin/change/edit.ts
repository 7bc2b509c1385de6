/**
 * Edits of the configuration from the dashboard: tools switched off or on, renamed or described, put into toolsets; servers tagged; a
 * toolset made. They are written into the files that say it, with everything else of them left byte for byte, and shown as a plan before.
 *
 * The surprise: nothing is remembered between the plan and its application. The second request names the digest of the files that the
 * plan was made from, and is refused where one of them is another by now.
 */
import { extname } from 'node:path'
import type { Configuration } from '../../config/options.ts'
import { recogniseHostFile } from '../../config/read/host-file.ts'
import type { EditedFile } from '../../config/runtime-environment.ts'
import { parseText } from '../../config/syntax/document.ts'
import type { Problem } from '../../config/syntax/problems.ts'
import { ChangeError, digestOf, readState, replaceFile, textOfState } from '../../host-files/edit/change.ts'
import type { FileState } from '../../host-files/edit/change.ts'
import { diffLines } from '../../host-files/edit/diff.ts'
import { lookIn, readText } from '../../host-files/edit/editor.ts'
import { EditError } from '../../host-files/edit/text-format.ts'
import { subjectOf, withChanges } from './edit-changes.ts'
import type { ConfigurationChange } from './edit-changes.ts'
import type { EditRequest } from './edit-request.ts'
import type { Plan } from './plan.ts'
import { AdminRefusal } from '../refusal.ts'
import type { PlanEnd, ReloadEnd } from './reload-ends.ts'

export type EditEnd =
  | {
      readonly kind: 'planned'
      /** As they are named in the configuration's places; each with lines that begin with a blank, `-` or `+`. */
      readonly files: readonly { readonly file: string; readonly diff: readonly string[] }[]
      readonly revision: string
      readonly plan: Plan
    }
  /** The edited configuration would be refused; nothing was written. */
  | { readonly kind: 'refused'; readonly problems: readonly Problem[] }
  | ReloadEnd

/** What an edit needs of what reloads. */
interface Reloads {
  plan(edited?: readonly EditedFile[]): Promise<PlanEnd>
  reload(): Promise<ReloadEnd>
}

/** Rejects with `AdminRefusal` for what no line can express, and where a file is not the planned one any more. */
export const editConfiguration = async (
  { files }: Pick<Configuration, 'files'>,
  reloads: Reloads,
  { changes, revision }: EditRequest,
): Promise<EditEnd> => {
  const own = await readOwnFiles(files)
  const byFile = Map.groupBy(changes, (change) => fileOf(own, change))
  const digest = digestOf(Buffer.from([...byFile.keys()].map(({ state }) => digestOf(state.bytes)).join(' ')))
  if (revision !== undefined && revision !== digest) throw changedMeanwhile([...byFile.keys()].map(({ file }) => file))
  const edited = [...byFile]
    .map(([{ file, state }, some]) => {
      const before = textOfState(state)
      return { file, state, before, text: refusing(file, () => withChanges(file, before, some)) }
    })
    .filter(({ before, text }) => text !== before)
  if (edited.length === 0) throw new AdminRefusal(409, 'nothing', `${namesOf(byFile.keys())} says so already`)
  const end = await reloads.plan(edited.map(({ file, text }) => ({ file, text })))
  if (end.kind === 'refused') return end
  if (revision !== undefined) {
    await replaceAll(edited)
    return reloads.reload()
  }
  const diffs = edited.map(({ file, before, text }) => ({ file, diff: diffLines(before, text) }))
  return { kind: 'planned', files: diffs, revision: digest, plan: end.plan }
}

const changedMeanwhile = (files: readonly string[]): AdminRefusal =>
  new AdminRefusal(409, 'changed', `${files.join(' or ')} was changed meanwhile: look at the plan again`)

/** A file of the configuration that is ours to change. */
interface OwnFile {
  readonly file: string
  readonly state: FileState
  readonly data: unknown
}

const readOwnFiles = async (files: readonly string[]): Promise<readonly OwnFile[]> => {
  const own = await Promise.all(
    files.map(async (file): Promise<OwnFile[]> => {
      if (!['.yaml', '.yml', '.json', '.jsonc', '.json5'].includes(extname(file).toLowerCase())) return []
      const state = await readState(file).catch(() => undefined)
      const text = state === undefined ? '' : textOfState(state)
      const { tree, problems } = parseText(text, file)
      if (state === undefined || problems.length > 0 || tree.kind !== 'map' || recogniseHostFile(tree, file) !== undefined)
        return []
      return [{ file, state, data: refusing(file, () => readText(file, text)) }]
    }),
  )
  return own.flat()
}

/** The file that says what is changed; of a new toolset: the one that has toolsets, else the main one. */
const fileOf = (own: readonly OwnFile[], change: ConfigurationChange): OwnFile => {
  const { steps, name } = subjectOf(change)
  const found = own.find(({ data }) => lookIn(data, steps) !== undefined)
  if (change.kind === 'new toolset') {
    if (found !== undefined) throw new AdminRefusal(409, 'edit', `${found.file} has ${name} already; choose another name`)
    const place = own.find(({ data }) => lookIn(data, ['toolsets']) !== undefined) ?? own[0]
    if (place !== undefined) return place
  } else if (found !== undefined) return found
  throw new AdminRefusal(404, 'gone', `no file of this configuration has ${name}; files of hosts are not changed here`)
}

const namesOf = (files: Iterable<OwnFile>): string => [...files].map(({ file }) => file).join(', ')

/** All of them or, where one cannot be written, none. */
const replaceAll = async (edited: readonly { readonly state: FileState; readonly text: string }[]): Promise<void> => {
  const written: { readonly state: FileState; readonly text: string }[] = []
  try {
    for (const one of edited) {
      await replaceFile(one.state, Buffer.from(one.text))
      written.push(one)
    }
  } catch (error) {
    for (const { state, text } of written)
      await replaceFile({ ...state, bytes: Buffer.from(text) }, state.bytes).catch(() => undefined)
    throw error instanceof ChangeError ? new AdminRefusal(409, 'changed', error.message) : error
  }
}

/** Turns what an edit of a text refuses into an answer. */
const refusing = <T>(file: string, edit: () => T): T => {
  try {
    return edit()
  } catch (error) {
    if (error instanceof EditError) throw new AdminRefusal(409, 'edit', `${file} ${error.message}; edit it by hand`)
    throw error
  }
}
