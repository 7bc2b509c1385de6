/**
 * Named flags that test servers raise, lower and watch. On a directory they are files, so that several processes of
 * one server share them: a gateway may call a tool in one process and watch the lists in another.
 */
import { existsSync, rmSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A set of flags. */
export interface Board {
  has(flag: string): boolean
  raise(flag: string): void
  lower(flag: string): void
  /** Calls `listener` with each flag that was raised or lowered since, until the returned function is called. */
  watch(listener: (flag: string) => void): () => void
}

/** Flags of this process alone. */
export const privateBoard = (): Board => {
  const flags = new Set<string>()
  const listeners = new Set<(flag: string) => void>()
  const tell = (flag: string) => {
    for (const listener of listeners) listener(flag)
  }
  return {
    has: (flag) => flags.has(flag),
    raise(flag) {
      flags.add(flag)
      tell(flag)
    },
    lower(flag) {
      flags.delete(flag)
      tell(flag)
    },
    watch(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

/** Flags shared by every process that names the same existing directory. Watching does not keep a process alive. */
export const sharedBoard = (directory: string): Board => {
  const file = (flag: string) => join(directory, encodeURIComponent(flag))
  return {
    has: (flag) => existsSync(file(flag)),
    raise: (flag) => writeFileSync(file(flag), ''),
    lower: (flag) => rmSync(file(flag), { force: true }),
    watch(listener) {
      const watcher = watch(directory, { persistent: false }, (event, name) => {
        if (event === 'rename' && name !== null) listener(decodeURIComponent(name))
      })
      return () => watcher.close()
    },
  }
}
