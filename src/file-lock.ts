/** A lock between processes: a file that only one of them can create. An old lock belongs to a process that has ended. */
import { closeSync, lstatSync, openSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { asError } from './values/as-error.ts'
import { attempt } from './values/attempt.ts'
import { makeFolder } from './make-folder.ts'

const LOCK_POLL_MS = 25

/** Waits for the lock; false: the disk does not support it. A lock older than `staleMs` was left behind by a process that ended. */
export const acquireFileLock = async (lock: string, staleMs: number): Promise<boolean> => {
  try {
    makeFolder(dirname(lock))
  } catch {
    return false
  }
  for (;;) {
    try {
      closeSync(openSync(lock, 'wx', 0o600))
      return true
    } catch (error) {
      if (asError(error).code !== 'EEXIST') return false
    }
    // Of the lock itself, also where it is a link. One from the future was made before the clock was set back.
    const ageMs = attempt(() => Math.abs(Date.now() - lstatSync(lock).mtimeMs)) ?? 0
    if (ageMs <= staleMs) await new Promise((resolve) => setTimeout(resolve, LOCK_POLL_MS))
    else if (!canRemove(lock)) return false
  }
}

const canRemove = (lock: string): boolean => {
  try {
    rmSync(lock, { force: true })
    return true
  } catch {
    return false
  }
}

export const releaseFileLock = (lock: string): void => rmSync(lock, { force: true })
