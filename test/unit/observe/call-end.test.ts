/** How calls end: the outcome and the facts that audit, capture, metrics and traces tell of it. */
import { expect, test } from 'vitest'
import { endOfError, endOfOutcome, endOfStream } from '../../../src/observe/call-end.ts'
import { complete, Refusal, ServerError } from '../../../src/rpc/call.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import type { StreamedResult } from '../../../src/wire/result/streamed-result.ts'

const resultOf = (json: object) => complete(Payload.of(json))

test.each([
  ['tools/call', false, resultOf({}), 'ok'],
  ['tools/call', false, resultOf({ isError: true }), 'tool_error'],
  ['tools/call', false, resultOf({ isError: false }), 'ok'],
  ['prompts/get', false, resultOf({ isError: true }), 'ok'],
  ['tools/call', true, resultOf({ isError: true }), 'cancelled'],
  ['tools/call', false, { ...resultOf({ isError: true }), kind: 'input_required' } as never, 'input_required'],
])('a result of %s, cancelled: %s, %j is %s', (method, isAborted, outcome, expected) => {
  expect(endOfOutcome(method, isAborted, outcome)).toEqual({ outcome: expected })
})

test.each([
  ['complete', undefined, { outcome: 'streamed' }],
  ['complete', 'true', { outcome: 'tool_error' }],
  ['complete', 'false', { outcome: 'ok' }],
  ['aborted', 'true', { outcome: 'cancelled' }],
  [new Failure('lost', 'it ended'), 'true', { outcome: 'failed', kind: 'lost', detail: 'it ended' }],
] as const)('a stream that ends as %s with isError %s', (end, isError, expected) => {
  // Cast: only this is read of it.
  const result = { raw: () => isError && Buffer.from(isError) } as unknown as StreamedResult
  expect(endOfStream(result, end)).toEqual(expected)
})

const POLICY = { reason: 'policy', rule: 'policy.rules[0]' } as const

test.each<[error: unknown, isAborted: boolean, denied: typeof POLICY | undefined, end: object]>([
  [new ServerError(5, 'no', Payload.of({})), true, undefined, { outcome: 'error', code: 5, detail: 'no' }],
  [
    new Refusal(-32602, 'no'),
    true,
    undefined,
    { outcome: 'refused', reason: 'invalid', rule: undefined, code: -32602, detail: 'no' },
  ],
  [new Refusal(-32602, 'no'), false, POLICY, { outcome: 'refused', ...POLICY, code: -32602, detail: 'no' }],
  [new Failure('timeout', 'late'), true, undefined, { outcome: 'cancelled' }],
  [new Failure('timeout', 'late'), false, undefined, { outcome: 'failed', kind: 'timeout', detail: 'late' }],
  [new Failure('timeout', 'late', { executed: 'no' }), false, undefined, { outcome: 'failed', kind: 'timeout', detail: 'late' }],
  [new Failure('policy_denied', 'no'), false, POLICY, { outcome: 'failed', kind: 'policy_denied', detail: 'no' }],
  [
    new Failure('policy_denied', 'no', { executed: 'no' }),
    false,
    POLICY,
    { outcome: 'refused', ...POLICY, kind: 'policy_denied', detail: 'no' },
  ],
  [
    new Failure('overloaded', 'full', { executed: 'no', limit: 'limits.queue' }),
    false,
    POLICY,
    { outcome: 'refused', reason: 'overloaded', rule: 'limits.queue', kind: 'overloaded', detail: 'full' },
  ],
  [
    new Failure('rate_limited', 'slow', { executed: 'no', limit: 'limits.rate' }),
    false,
    undefined,
    { outcome: 'refused', reason: 'rate_limited', rule: 'limits.rate', kind: 'rate_limited', detail: 'slow' },
  ],
  // A server that answers 429 is a failure, and not a limit of ours.
  [
    new Failure('rate_limited', 'slow', { executed: 'no' }),
    false,
    undefined,
    { outcome: 'failed', kind: 'rate_limited', detail: 'slow' },
  ],
  [new Error('secret'), false, undefined, { outcome: 'failed', detail: 'internal error' }],
])('a call rejected with %s, cancelled: %s', (error, isAborted, denied, end) => {
  expect(endOfError(error, isAborted, denied)).toEqual(end)
})
