/** Every parser of what strangers write, under random input and under all bad input ever kept (RELIABILITY 5; T-20, T-27). */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fuzz, RUNS_PER_TURN } from '../support/fuzz/run.ts'
import { badInputs, inputs, targets } from '../support/fuzz/targets.ts'

const corpus = badInputs()
test('the corpus holds at least 2,000 bad inputs, and there are 18 parsers', () => {
  expect(new Set(corpus.map((input) => input.toString('latin1'))).size).toBeGreaterThanOrEqual(2_000)
  expect(targets.length).toBe(18)
})

describe.each(targets)('$name', (target) => {
  test('T-20 holds its promises on the whole corpus', () => {
    for (const input of corpus) target.check(input)
  })
  test('T-20 holds its promises on 200 random inputs', () => {
    fc.assert(
      fc.property(inputs(target), (input) => {
        target.check(input)
      }),
      { numRuns: 200 },
    )
  })
})

test('long runs of random inputs let what was put off run: it does not pile up', async () => {
  let [waiting, most] = [0, 0]
  const check = (): void => {
    most = Math.max(most, ++waiting)
    process.nextTick(() => waiting--)
  }
  const { runs } = await fuzz({ name: 'puts off', words: ['x'], check }, { numRuns: 10 * RUNS_PER_TURN })
  expect({ runs, waiting, most }).toEqual({ runs: 10 * RUNS_PER_TURN, waiting: 0, most: RUNS_PER_TURN })
})
