import { STATUS_CODES } from 'node:http'
import { expect, test } from 'vitest'
import { STATUS_TEXTS } from '../../../src/transport/http1/server/request/status-texts.ts'

test('statuses have the texts of node:http', () => {
  expect(STATUS_TEXTS).toEqual(STATUS_CODES)
})
