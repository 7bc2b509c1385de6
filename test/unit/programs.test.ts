import { describe, expect, test } from 'vitest'
import { missingPrograms } from '../support/programs.ts'

describe('programs that npm does not bring', () => {
  test('what is not on the list is an error, not a skipped suite', () => {
    expect(() => missingPrograms(['no-such-program'])).toThrow('.ci/programs does not list no-such-program')
  })
})
