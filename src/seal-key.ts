/**
 * The key that seals tokens, in `state.dir`: created if there is none, refused if others may know it.
 *
 * A refused key ends the start. With a new key, all sign-ins of users would be lost because of one wrong file mode; with the refused one,
 * others could forge sessions.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { closeSync, constants, fstatSync, linkSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { attempt } from './values/attempt.ts'
import { asError } from './values/as-error.ts'
import { ConfigError } from './config/syntax/problems.ts'
import type { Log } from './values/log.ts'

const KEY_BYTES = 32
const OTHERS = 0o077

/**
 * The keys of a process: the first seals, all open. Configured ones (`state.key`, 64 hex digits each) come first; the one of the state
 * folder is then read but not created, so that earlier tokens can be opened.
 */
export const sealKeys = (
  configured: readonly string[],
  folder: string | undefined,
  log: Pick<Log, 'warn'>,
): readonly Buffer[] => {
  if (configured.length === 0) return [sealKey(folder, log)]
  const before = folder === undefined ? undefined : readKey(join(folder, 'seal.key'))
  return [...configured.map((key) => Buffer.from(key, 'hex')), ...(before === undefined ? [] : [before])]
}

/** 32 bytes. `folder`: of state; `undefined`: the key lasts as long as the process. Throws `ConfigError` for an unsafe key. */
const sealKey = (folder: string | undefined, log: Pick<Log, 'warn'>): Buffer => {
  if (folder === undefined) return randomBytes(KEY_BYTES)
  const file = join(folder, 'seal.key')
  return readKey(file) ?? makeKey(file, log)
}

/** `undefined`: there is no key, or the file is invalid. */
const readKey = (file: string): Buffer | undefined => {
  let descriptor: number
  try {
    // Links are not followed, so that the checked file is the one that is read. Windows has no such flag, nor modes.
    descriptor = openSync(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0))
  } catch (error) {
    const { code } = asError(error)
    if (code === 'ELOOP' || code === 'EMLINK')
      throw refused(file, 'is a symbolic link', 'put the key itself there, or remove the link so that a new one is made')
    if (code === 'EACCES' || code === 'EPERM') throw refused(file, 'cannot be read', 'make it yours with chown')
    return undefined
  }
  try {
    const status = fstatSync(descriptor)
    if (!status.isFile()) return undefined
    if (process.platform !== 'win32' && (status.mode & OTHERS) !== 0) {
      const mode = (status.mode & 0o777).toString(8).padStart(4, '0')
      throw refused(
        file,
        `is open to others (mode ${mode})`,
        `chmod 600 it, or remove it if others may have read it: a new one is made, hosts start new sessions and people sign in again`,
      )
    }
    const key = readFileSync(descriptor)
    if (key.length !== KEY_BYTES) return undefined
    if (key.every((byte) => byte === key[0]))
      throw refused(file, 'is one byte repeated, which is easy to guess', 'remove it: a new one is made')
    return key
  } finally {
    closeSync(descriptor)
  }
}

/**
 * Writes a temporary file and links it, so that of processes that start at the same time the first one's key is the key of all. A file
 * that is no key is replaced and not written into.
 */
const makeKey = (file: string, log: Pick<Log, 'warn'>): Buffer => {
  const key = randomBytes(KEY_BYTES)
  const temporary = `${file}.${randomUUID()}`
  try {
    writeFileSync(temporary, key, { mode: 0o600, flag: 'wx' })
    try {
      linkSync(temporary, file)
      return key
    } catch {
      // There is a file, or the disk has no links.
      const other = readKey(file)
      if (other !== undefined) return other
      renameSync(temporary, file)
    }
  } catch (error) {
    log.warn({ file, error: String(error) }, 'the key of sealed tokens cannot be kept (state.dir): they end with this process')
  } finally {
    attempt(() => rmSync(temporary, { force: true }))
  }
  return key
}

const refused = (file: string, message: string, remedy: string): ConfigError =>
  new ConfigError([{ place: file, path: '', message, remedy }])
