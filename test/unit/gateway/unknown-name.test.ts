import { expect, test } from 'vitest'
import { unknownName } from '../../../src/gateway/unknown-name.ts'
import type { Revision } from '../../../src/wire/protocol/revisions.ts'
import { callOf } from '../../support/calls.ts'

test.each<[string, Revision, number, string]>([
  ['tools/call', '2026-07-28', -32602, 'Unknown tool: x'],
  ['prompts/get', '2026-07-28', -32602, 'Unknown prompt: x'],
  ['completion/complete', '2025-11-25', -32602, 'Unknown prompt or resource template in params.ref'],
  ['resources/read', '2026-07-28', -32602, 'Resource not found: x (gone)'],
  ['resources/read', '2025-11-25', -32002, 'Resource not found: x (gone)'],
  ['resources/subscribe', '2025-06-18', -32002, 'Resource not found: x (gone)'],
])('B103 %s of a name that does not exist, by a host of %s', (method, revision, code, message) => {
  const refusal = unknownName(callOf({ method, target: 'x', caller: { revision } }), ' (gone)')
  expect(refusal).toMatchObject({ code, message, ...(method.startsWith('resources/') && { data: { uri: 'x' } }) })
})
