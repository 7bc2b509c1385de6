/**
 * A disk that is full: a small file system in memory where one can be mounted, else a limit on what the process may write to files. One of
 * the two must work: a test that could not fill any disk would prove nothing.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface FullDisk extends AsyncDisposable {
  readonly folder: string
  /** From now on nothing more can be written. */
  fill(): void
  /** What a shell says before it starts who shall find the disk full. */
  readonly words: string
}

const BLOCK = Buffer.alloc(4_096, 'x')

export const openFullDisk = async (folder: string): Promise<FullDisk> => {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,mode=700', 'tmpfs', folder], { stdio: 'ignore' })
  } catch {
    return { folder, fill: () => undefined, words: 'ulimit -f 0', [Symbol.asyncDispose]: () => Promise.resolve() }
  }
  return {
    folder,
    fill: () => {
      try {
        for (let at = 0; ; at++) writeFileSync(join(folder, `ballast-${at}`), BLOCK)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      }
    },
    words: 'true',
    [Symbol.asyncDispose]: async () => void execFileSync('umount', [folder]),
  }
}
