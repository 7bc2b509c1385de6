/** Every parser of what strangers write, under random input and under all bad input ever kept (RELIABILITY 5; T-20, T-27). */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { badInputs, inputs, targets } from '../support/fuzz/targets.ts'

const corpus = badInputs()
test('the corpus holds at least 2,000 bad inputs, and there are 17 parsers', () => {
  expect(new Set(corpus.map((input) => input.toString('latin1'))).size).toBeGreaterThanOrEqual(2_000)
  expect(targets.length).toBe(17)
})

describe.each(targets)('$name', (target) => {
  test('T-20 holds its promises on the whole corpus', () => {
    for (const input of corpus) target.check(input)
  })
  test('T-20 holds its promises on 400 random inputs', () => {
    fc.assert(
      fc.property(inputs(target), (input) => {
        target.check(input)
      }),
      { numRuns: 400 },
    )
  })
})
