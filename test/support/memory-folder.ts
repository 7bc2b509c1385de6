/** Where tests keep what processes write for themselves. */
import { accessSync, constants, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

const MEMORY = '/dev/shm'
const ROOM = 2 ** 30
/**
 * A disk of memory where Linux has one with room: each gateway writes, renames and removes a dozen small files, and waits for each of them
 * on a real disk. Programs may not be run from it everywhere.
 */
const hasMemory = (): boolean => {
  try {
    accessSync(MEMORY, constants.W_OK)
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize >= ROOM
  } catch {
    return false
  }
}

/** Folders of tests are made in it. */
export const STATE_FOLDERS: string = hasMemory() ? MEMORY : tmpdir()
