/**
 * Preloaded (`--import`): what a process asks the disk for without waiting comes late, as on a machine with too much other work. Real random
 * numbers are reported: a simulation has its own.
 */
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

let drawn = 0
Math.random = () => {
  drawn++
  return 0.5
}
process.on('exit', () => {
  if (drawn > 0) console.log(`${drawn} real random numbers were drawn`)
})
