/** The folder of state that outlives a process (`state.dir`). Without it the gateway works without these features (F-26). */
import { chmodSync } from 'node:fs'
import type { Log } from '../values/log.ts'
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
    log.warn({ folder, error: String(error) }, 'the state folder cannot be used (state.dir); state is kept in memory')
    return undefined
  }
}

/** The journal of started processes. `undefined`: there is no folder, or it cannot be written. */
export const openJournal = async (folder: string | undefined, log: Log): Promise<PidJournal | undefined> => {
  if (folder === undefined) return undefined
  try {
    return await PidJournal.open(folder)
  } catch (error) {
    log.warn({ folder, error: String(error) }, 'processes cannot be recorded (state.dir): none is ended after a crash')
    return undefined
  }
}

/** The record of hosts that connect; `undefined`: there is no folder. */
export const openSightings = (folder: string | undefined, log: Log): HostSightings | undefined =>
  folder === undefined
    ? undefined
    : new HostSightings(folder, (error) =>
        log.warn({ error: String(error) }, 'hosts cannot be recorded (state.dir): connect will not see them'),
      )
