/**
 * Edits of the configuration from the dashboard: tools hidden or shown, renamed or described, added to toolsets; servers tagged; a new
 * toolset. They are written into the files that contain the options, and everything else stays byte for byte. A plan is shown first.
 *
 * No state is kept between the plan and its application. The second request contains the digest of the files for which the plan was
 * made, and is refused if one of them has changed.
 */
import type { Configuration } from '../../config/options.ts'
import { recogniseHostFile } from '../../config/read/host-file.ts'
import { hasYamlOrJsonName, parseText } from '../../config/syntax/document.ts'
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
import type { Reloader, ReloadEnd } from './reload-ends.ts'

export type EditEnd =
  | {
      readonly kind: 'planned'
      /** Files with their names as in places; lines of the diff begin with a blank, `-` or `+`. */
      readonly files: readonly { readonly file: string; readonly diff: readonly string[] }[]
      readonly revision: string
      readonly plan: Plan
    }
  /** `refused`: the edited configuration would be refused, and nothing was written. */
  | ReloadEnd

/** Rejects with `AdminRefusal` for changes that cannot be made by an edit, and if a file has changed since the plan. */
export const editConfiguration = async (
  { files }: Pick<Configuration, 'files'>,
  reloads: Pick<Reloader, 'plan' | 'reload'>,
  { changes, revision }: EditRequest,
): Promise<EditEnd> => {
  const own = await readOwnFiles(files)
  const byFile = Map.groupBy(changes, (change) => fileOf(own, change))
  const digest = digestOf(Buffer.from([...byFile.keys()].map(({ state }) => digestOf(state.bytes)).join(' ')))
  if (revision !== undefined && revision !== digest) throw changedMeanwhile([...byFile.keys()].map(({ file }) => file))
  const edited = [...byFile]
    .map(([{ file, state }, some]) => {
      const before = textOfState(state)
      return { file, state, before, text: refuseEditErrors(file, () => withChanges(file, before, some)) }
    })
    .filter(({ before, text }) => text !== before)
  if (edited.length === 0) throw new AdminRefusal(409, 'nothing', `${namesOf(byFile.keys())} already contains this`)
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
  new AdminRefusal(409, 'changed', `${files.join(' or ')} has changed: review the plan again`)

/** A file of the configuration that is not one of a host. */
interface OwnFile {
  readonly file: string
  readonly state: FileState
  readonly data: unknown
}

const readOwnFiles = async (files: readonly string[]): Promise<readonly OwnFile[]> => {
  const own = await Promise.all(
    files.map(async (file): Promise<OwnFile[]> => {
      if (!hasYamlOrJsonName(file)) return []
      const state = await readState(file).catch(() => undefined)
      const text = state === undefined ? '' : textOfState(state)
      const { tree, problems } = parseText(text, file)
      if (state === undefined || problems.length > 0 || tree.kind !== 'map' || recogniseHostFile(tree, file) !== undefined)
        return []
      return [{ file, state, data: refuseEditErrors(file, () => readText(file, text)) }]
    }),
  )
  return own.flat()
}

/** The file that contains the subject; for a new toolset the one that contains toolsets, else the main one. */
const fileOf = (own: readonly OwnFile[], change: ConfigurationChange): OwnFile => {
  const { steps, name } = subjectOf(change)
  const found = own.find(({ data }) => lookIn(data, steps) !== undefined)
  if (change.kind === 'new toolset') {
    if (found !== undefined) throw new AdminRefusal(409, 'edit', `${found.file} has ${name} already; choose another name`)
    const place = own.find(({ data }) => lookIn(data, ['toolsets']) !== undefined) ?? own[0]
    if (place !== undefined) return place
  } else if (found !== undefined) return found
  throw new AdminRefusal(404, 'gone', `no file of this configuration has ${name}; files of hosts cannot be edited here`)
}

const namesOf = (files: Iterable<OwnFile>): string => [...files].map(({ file }) => file).join(', ')

/** Writes all files, or none if one cannot be written. */
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

/** Turns an `EditError` into an `AdminRefusal`. */
const refuseEditErrors = <T>(file: string, edit: () => T): T => {
  try {
    return edit()
  } catch (error) {
    if (error instanceof EditError) throw new AdminRefusal(409, 'edit', `${file} ${error.message}; edit it by hand`)
    throw error
  }
}
