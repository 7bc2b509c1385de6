/** The folder of what outlives a process (`state.dir`). Where it cannot be used, a safety net is missing, never the service (F-26). */
import { chmodSync } from 'node:fs'
import type { Log } from '../downstream/environment.ts'
import { HostSightings } from '../host/host-sightings.ts'
import { makeFolder } from '../make-folder.ts'
import { PidJournal } from '../transport/process/pid-journal.ts'

/** `undefined`: none is configured, or it cannot be used; everything stays in memory then. */
export const makeStateDir = (folder: string | undefined, log: Log): string | undefined => {
  if (folder === undefined) return undefined
  try {
    makeFolder(folder)
    chmodSync(folder, 0o700)
    return folder
  } catch (error) {
    log.warn({ folder, error: String(error) }, 'the state folder cannot be used (state.dir); going on in memory')
    return undefined
  }
}

/** Where started processes are written down. `undefined`: there is no folder, or its disk is full or not ours to write. */
export const openJournal = async (folder: string | undefined, log: Log): Promise<PidJournal | undefined> => {
  if (folder === undefined) return undefined
  try {
    return await PidJournal.open(folder)
  } catch (error) {
    log.warn({ folder, error: String(error) }, 'processes cannot be written down (state.dir): none is swept after a crash')
    return undefined
  }
}

/** Where hosts that connect are written down; `undefined`: there is no folder. */
export const openSightings = (folder: string | undefined, log: Log): HostSightings | undefined =>
  folder === undefined
    ? undefined
    : new HostSightings(folder, (error) =>
        log.warn({ error: String(error) }, 'hosts that connect cannot be written down (state.dir): connect will not see them'),
      )
