/** Preloaded (`--import`): what a process asks the disk for without waiting comes late, as on a machine with too much other work. */
import { promises } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'

const LATE_MS = 20

for (const [name, value] of Object.entries(promises))
  if (typeof value === 'function' && value.constructor.name === 'AsyncFunction')
    promises[name] = async (...values) => {
      await sleep(LATE_MS)
      return value(...values)
    }
syncBuiltinESMExports()
