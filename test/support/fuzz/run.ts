/** Many random inputs for one parser. */
import { setImmediate } from 'node:timers/promises'
import * as fc from 'fast-check'
import type { Target } from './target.ts'
import { inputs } from './targets.ts'

/** Inputs between two turns of the event loop. */
export const RUNS_PER_TURN = 256

export interface FuzzRun {
  readonly runs: number
  readonly details: fc.RunDetails<[Buffer]>
}

/**
 * Gives a parser as many inputs as `parameters` say. What streams and batches put off (`process.nextTick`, `setImmediate`) runs between
 * them: without a turn of the event loop it would pile up, with all that it refers to, some ten kilobytes for each connection.
 */
export const fuzz = async (target: Target, parameters: fc.Parameters<[Buffer]>): Promise<FuzzRun> => {
  let runs = 0
  const property = fc.asyncProperty(inputs(target), async (input) => {
    target.check(input)
    if (++runs % RUNS_PER_TURN === 0) await setImmediate()
  })
  return { details: await fc.check(property, parameters), runs }
}
