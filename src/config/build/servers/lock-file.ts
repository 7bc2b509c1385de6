/**
 * The lock file of a configuration, read with it: an error in the file is a problem of the configuration, with its place. A file that
 * does not exist yet is a warning, since nothing is locked without it, and a problem under `strict`.
 */
import { readFile, stat } from 'node:fs/promises'
import { LockError, readLock } from '../../../catalog/lock/lock-reader.ts'
import { LOCK_KINDS } from '../../../catalog/lock/lock.ts'
import type { LockedServer } from '../../../downstream/options.ts'
import { operatorCommand } from '../../../operator-command.ts'
import type { LockFile } from '../../options.ts'
import type { Gathered } from '../../read/gather.ts'
import type { Problem } from '../../syntax/problems.ts'
import { isWritableByAll } from '../../read/source.ts'
import type { RuntimeEnvironment } from '../../runtime-environment.ts'
import { child } from '../../syntax/tree.ts'
import { absolutePath, shortPath } from '../../syntax/variables.ts'
import { asError } from '../../../values/as-error.ts'
import { decodeUtf8 } from '../../../values/utf8.ts'

const MAX_BYTES = 64 * 1024 * 1024

/** `undefined`: the configuration names no lock file. */
export const readLockFile = async (
  { settings, sections, folders }: Gathered,
  context: RuntimeEnvironment,
  problems: Problem[],
  warnings: string[],
): Promise<LockFile | undefined> => {
  const { file: path, covers = LOCK_KINDS } = settings.lock ?? {}
  if (path === undefined) return undefined
  const file = absolutePath(path, folders.get('lock') ?? context.cwd, context.home)
  const name = shortPath(file, context.cwd)
  const lock = { file, name, covers, servers: undefined }
  if (context.overrides?.withoutLock === true) return lock
  const write = operatorCommand(context.overrides?.named ?? [], 'lock')
  const restore = `restore it from git, or write a new one: ${write}`
  const refuse = (message: string, remedy = restore, place = `${name}:1:1`, path = ''): LockFile => {
    problems.push({ place, path, message, remedy })
    return lock
  }
  try {
    const found = await stat(file)
    if (!found.isFile()) return refuse('is not a file', 'set lock.file to a file')
    if (found.size > MAX_BYTES) return refuse('is larger than 64 MiB', 'leave out what comes and goes with lock.covers')
    if (isWritableByAll(found)) return refuse('can be written by every user, and decides what is served', `chmod o-w ${name}`)
    const text = decodeUtf8(await readFile(file))
    return text === undefined ? refuse('is not UTF-8') : { ...lock, servers: readLock(text) }
  } catch (error) {
    if (error instanceof LockError) return refuse(error.message, restore, `${name}:${error.line}:${error.column}`, error.path)
    const { code, message } = asError(error)
    if (code !== 'ENOENT') return refuse(`cannot be read (${code ?? message})`, 'check its permissions')
  }
  if (settings.strict === true) {
    const place = child(sections.get('lock'), 'file')?.place
    return refuse(`${name} does not exist, and strict: true requires it`, `write it: ${write}`, place, 'lock.file')
  }
  warnings.push(`${name} does not exist yet, so nothing is locked; write it: ${write}`)
  return lock
}

/** The locked entries of one server; `undefined` where there is no lock. */
export const lockedServer = (lock: LockFile | undefined, key: string): LockedServer | undefined => {
  if (lock?.servers === undefined) return undefined
  const own = lock.servers.find((server) => server.key === key)
  return { file: lock.name, covers: lock.covers, entries: own?.entries ?? [], apps: own?.apps ?? [] }
}
