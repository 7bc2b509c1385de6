/**
 * Adds Trunkline to the file of a host, and removes it again. The state folder keeps a copy of the earlier file and a record of the change.
 * If the file was not changed since, disconnecting restores it byte for byte. Otherwise only the entry is removed.
 */
import { readFile, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { asError } from '../values/as-error.ts'
import { makeFolder, missingFolders } from '../make-folder.ts'
import { parseOwnJson } from '../values/own-json.ts'
import {
  ChangeError,
  digestOf,
  editing,
  exclusively,
  folderFor,
  readState,
  replaceFile,
  textOfState,
  writeThrough,
} from './edit/change.ts'
import type { FileState } from './edit/change.ts'
import { lookIn, readText, removeIn, setIn } from './edit/editor.ts'
import { OUR_NAME } from '../config/read/host-file.ts'
import type { HostEntry, HostPlace } from './hosts.ts'
import type { Steps } from './edit/text-format.ts'

/** The record of a connection, in `record.json`. */
interface ConnectionRecord {
  readonly file: string
  readonly at: readonly string[]
  /** Digest of the file after the change. */
  readonly after: string
  /** Name of the copy of the earlier file, in the folder of this record; `undefined`: there was no file. */
  readonly before: string | undefined
  /** Folders that were made for a file that did not exist, innermost first. */
  readonly folders?: readonly string[] | undefined
  /** Servers that were removed from the file, by name. */
  readonly moved: Readonly<Record<string, unknown>>
}

/** A planned change. */
export interface Change {
  readonly file: string
  readonly before: string
  readonly after: string
  /** Path of the copy of the file before the change. */
  readonly backup: string
  /** Of `disconnect`: the file becomes as it was before it was connected. Otherwise only our changes are removed. */
  readonly isRestored?: boolean
}

/** A file without our changes. */
interface Undone extends FileState {
  /** It is the earlier file. */
  readonly isRestored?: true
}

/** Connects or disconnects one place of one host; `stateRoot`: the folder for the state of all configurations. */
export class HostConnection {
  readonly #place: HostPlace
  readonly #root: string

  constructor(place: HostPlace, stateRoot: string) {
    this.#place = place
    this.#root = stateRoot
  }

  /** Returns what `connect` would change. Rejects with `ChangeError` if it is impossible. `moved`: names of servers to remove. */
  async planConnect(entry: HostEntry, moved: readonly string[] = []): Promise<Change> {
    const state = await readState(this.#place.path)
    return this.#describe(state, (await this.#connected(state, entry, moved)).text)
  }

  /** Writes the planned change. If the file changed meanwhile: rejects if `isConfirmed`, else writes a change of the current file. */
  connect(entry: HostEntry, moved: readonly string[], planned: Change, isConfirmed: boolean): Promise<Change> {
    return this.#write(planned, isConfirmed, async (state) => {
      const next = await this.#connected(state, entry, moved)
      const folders = next.base.isRestored === true ? (await this.#record(state))?.folders : missingFolders(dirname(state.path))
      const record: ConnectionRecord = {
        file: state.path,
        at: this.#place.at,
        after: digestOf(Buffer.from(next.text)),
        before: next.base.bytes && backupName(next.base.bytes),
        ...(next.base.bytes === undefined && { folders }),
        moved: next.moved,
      }
      return { text: next.text, keep: { record, before: next.base.bytes } }
    })
  }

  /** Returns what `disconnect` would change; `undefined`: the file does not contain Trunkline. */
  async planDisconnect(): Promise<Change | undefined> {
    const state = await readState(this.#place.path)
    const base = await this.#undone(state)
    return base.bytes?.equals(state.bytes ?? Buffer.alloc(0)) === true || base.bytes === state.bytes
      ? undefined
      : { ...this.#describe(state, textOfState(base)), isRestored: base.isRestored === true }
  }

  /** Writes the planned change; `isConfirmed`: as for `connect`. */
  disconnect(planned: Change, isConfirmed: boolean): Promise<Change> {
    return this.#write(planned, isConfirmed, async (state) => {
      const base = await this.#undone(state)
      return { text: textOfState(base), isRemoved: base.bytes === undefined, keep: undefined }
    })
  }

  async #write(
    planned: Change,
    isConfirmed: boolean,
    next: (state: FileState) => Promise<{
      readonly text: string
      readonly isRemoved?: boolean
      /** The record and the earlier file to keep; `undefined`: removes both. */
      readonly keep: { readonly record: ConnectionRecord; readonly before: Buffer | undefined } | undefined
    }>,
  ): Promise<Change> {
    const state = await readState(this.#place.path)
    return exclusively(folderFor(this.#root, state.path), async () => {
      const now = await readState(this.#place.path)
      if (isConfirmed && textOfState(now) !== planned.before)
        throw new ChangeError(`${planned.file} changed since the difference was shown and is left unchanged: try again`)
      const { text, isRemoved = false, keep } = await next(now)
      // A copy of the file is on the disk before the file is changed.
      const old = await this.#record(now)
      await this.#putBeside(now, 'last', now.bytes ?? Buffer.alloc(0))
      if (keep?.record.before !== undefined && keep.before !== undefined)
        await this.#putBeside(now, keep.record.before, keep.before)
      const putRecord =
        keep && (await this.#prepare(now, 'record.json', Buffer.from(`${JSON.stringify(keep.record, null, 2)}\n`)))
      await replaceFile(now, isRemoved ? undefined : Buffer.from(text))
      if (isRemoved) await removeEmpty(old?.folders)
      await (putRecord?.() ?? rm(join(this.#folder(now), 'record.json'), { force: true })).catch((error: unknown) => {
        const { backup } = this.#describe(now, text)
        throw new ChangeError(
          `${planned.file} is changed, but the record of that cannot be written (${asError(error).code}): the earlier file is in ${backup}`,
          { cause: error },
        )
      })
      if (old?.before !== undefined && old.before !== keep?.record.before)
        await rm(join(this.#folder(now), old.before), { force: true })
      return this.#describe(now, text)
    })
  }

  /** The text with our entry. It is based on the file without the changes of an earlier connection. */
  async #connected(
    state: FileState,
    entry: HostEntry,
    moved: readonly string[],
  ): Promise<{ readonly text: string; readonly base: Undone; readonly moved: Readonly<Record<string, unknown>> }> {
    const base = await this.#undone(state)
    const earlier = Object.keys((await this.#record(state))?.moved ?? {})
    const { path } = this.#place
    const taken: Record<string, unknown> = {}
    const text = editing(path, () => {
      let text = base.bytes === undefined ? (this.#place.start ?? '') : textOfState(base)
      // What an earlier connection moved stays moved, except what the host has again.
      const stay = earlier.filter((name) => this.#steps(textOfState(state), name) === undefined)
      for (const name of new Set([...moved, ...stay])) {
        const steps = this.#steps(text, name)
        const value = steps && lookIn(readText(path, text), steps)
        if (steps === undefined || value === undefined) continue
        taken[name] = value
        text = removeIn(path, text, steps)
      }
      return setIn(path, text, this.#steps(text, OUR_NAME) ?? this.#next(text), this.#named(entry))
    })
    return { text, base, moved: taken }
  }

  async #undone(state: FileState): Promise<Undone> {
    const { path } = this.#place
    const record = await this.#record(state)
    if (record !== undefined && digestOf(state.bytes) === record.after) {
      if (record.before === undefined) return { path: state.path, bytes: undefined, isRestored: true }
      const before = await this.#before(state, record)
      // Without the copy only our changes are removed.
      if (before !== undefined) return { path: state.path, bytes: before, isRestored: true }
    }
    if (state.bytes === undefined) return state
    const before = record && (await this.#before(state, record))
    const text = editing(path, () => {
      let text = textOfState(state)
      const steps = this.#steps(text, OUR_NAME)
      if (steps === undefined) return text
      text = removeIn(path, text, steps)
      for (const [name, value] of Object.entries(record?.moved ?? {}))
        if (this.#steps(text, name) === undefined) text = setIn(path, text, this.#next(text, name), value)
      return before === undefined ? text : this.#withoutMade(text, readText(path, before.toString('utf8')))
    })
    return { path: state.path, bytes: Buffer.from(text) }
  }

  /** The file before it was connected; empty if there was none; `undefined`: the copy is missing. */
  async #before(state: FileState, { before }: ConnectionRecord): Promise<Buffer | undefined> {
    return before === undefined ? Buffer.alloc(0) : readFile(join(this.#folder(state), before)).catch(() => undefined)
  }

  /** The text without the empty containers that `before` did not have: connecting made them. */
  #withoutMade(text: string, before: unknown): string {
    const { path } = this.#place
    const at = this.#at(readText(path, text))
    for (let depth = at.length; depth > 0; depth--) {
      const steps = at.slice(0, depth)
      const value = lookIn(readText(path, text), steps)
      if (lookIn(before, steps) !== undefined || Object.keys(value ?? {}).length > 0) break
      text = removeIn(path, text, steps)
    }
    return text
  }

  /** The path of keys to the server with this name; `undefined`: there is none. */
  #steps(text: string, name: string): Steps | undefined {
    const { path, isList } = this.#place
    const data = readText(path, text)
    const at = this.#at(data)
    const servers = lookIn(data, at)
    if (isList !== true) return lookIn(servers, [name]) === undefined ? undefined : [...at, name]
    const index = Array.isArray(servers) ? servers.findIndex((item) => lookIn(item, ['name']) === name) : -1
    return index < 0 ? undefined : [...at, index]
  }

  /** The path of keys for a new server. */
  #next(text: string, name: string = OUR_NAME): Steps {
    const { path, isList } = this.#place
    const data = readText(path, text)
    const at = this.#at(data)
    if (isList !== true) return [...at, name]
    const servers = lookIn(data, at)
    return [...at, Array.isArray(servers) ? servers.length : 0]
  }

  /** The path of keys to the servers in a file with this data. */
  #at(data: unknown): Steps {
    const { at, inner } = this.#place
    const within = inner === undefined ? undefined : lookIn(data, [...at, inner])
    // A server with this name has the key `type`.
    return inner !== undefined && typeof within === 'object' && within !== null && !Object.hasOwn(within, 'type')
      ? [...at, inner]
      : at
  }

  #named(entry: HostEntry): HostEntry {
    return this.#place.isList === true ? { name: OUR_NAME, ...entry } : entry
  }

  async #record(state: FileState): Promise<ConnectionRecord | undefined> {
    try {
      const record = parseOwnJson<ConnectionRecord>(await readFile(join(this.#folder(state), 'record.json'), 'utf8'))
      return isDeepStrictEqual(record.at, this.#place.at) ? record : undefined
    } catch {
      return undefined
    }
  }

  #folder({ path }: FileState): string {
    return folderFor(this.#root, `${path}\n${this.#place.at.join('\n')}`)
  }

  async #putBeside(state: FileState, name: string, bytes: Buffer): Promise<void> {
    const put = await this.#prepare(state, name, bytes)
    await put().catch((error: unknown) => {
      throw this.#noBackup(state, error)
    })
  }

  /** Writes a file beside the others; the returned function puts it in its place. */
  async #prepare(state: FileState, name: string, bytes: Buffer): Promise<() => Promise<void>> {
    const folder = this.#folder(state)
    const temporary = join(folder, `${name}.new`)
    try {
      makeFolder(folder)
      await rm(temporary, { force: true })
      await writeThrough(temporary, bytes, 0o600)
    } catch (error) {
      throw this.#noBackup(state, error)
    }
    return () => rename(temporary, join(folder, name))
  }

  #noBackup(state: FileState, error: unknown): ChangeError {
    const folder = this.#folder(state)
    const { code } = asError(error)
    return new ChangeError(`no backup can be kept in ${folder} (${code}), so nothing is changed; make that folder writable`, {
      cause: error,
    })
  }

  #describe(state: FileState, after: string): Change {
    return { file: this.#place.path, before: textOfState(state), after, backup: join(this.#folder(state), 'last') }
  }
}

/** Removes folders, innermost first, up to one that is not empty. */
const removeEmpty = async (folders: readonly string[] = []): Promise<void> => {
  try {
    for (const folder of folders) await rmdir(folder)
  } catch {
    // Something else is in it.
  }
}

const backupName = (bytes: Buffer): string => `before-${digestOf(bytes).slice(0, 16)}`
