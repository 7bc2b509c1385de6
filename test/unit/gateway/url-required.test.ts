/** How error -32042 reaches a legacy host that accepts URLs (BRIDGING 3.13). */
import { expect, test, vi } from 'vitest'
import { elicitationIdFor } from '../../../src/era/questions.ts'
import { rewriteError } from '../../../src/gateway/rewrite/rewrite-error.ts'
import { URL_REQUIRED, urlRequired } from '../../../src/gateway/rounds/url-required.ts'
import type { RoutedCall } from '../../../src/gateway/routed-call.ts'
import { ServerError } from '../../../src/rpc/call.ts'
import type { HostSession } from '../../../src/rpc/call.ts'
import { ScanError } from '../../../src/wire/json/scan-error.ts'
import { join, Payload } from '../../../src/wire/message/payload.ts'
import { callOf } from '../../support/calls.ts'

const ASKER = { key: 'a', revision: '2025-11-25', label: undefined } as const

test('B089 each elicitation gets the id of the session; only the ids of the server are reported as sent', () => {
  const session = { id: 's' } as unknown as HostSession
  const call = callOf({ caller: { session, revision: '2025-11-25', capabilities: { elicitation: { url: {} } } } })
  const errorWith = (elicitations: readonly string[]): string =>
    `{"code":-32042, "message":"visit","data":{"elicitations":[${elicitations.join(', ')}],"n":1.0}}`
  const own = (id: string): string => `"elicitationId":"${elicitationIdFor('s', 'a', id)}"`
  const error = new ServerError(
    URL_REQUIRED,
    'visit',
    Payload.at(Buffer.from(errorWith(['{"url":"u:1","elicitationId":"e-1"}', '{"url":"u:2"}', '7', '{}']))),
  )
  const [note, sentAway] = [vi.fn(), vi.fn()]
  expect(() => urlRequired(error, call, undefined, ASKER, note, sentAway)).toThrow(error)
  expect(join(error.error.parts()).toString()).toBe(
    errorWith([`{"url":"u:1",${own('e-1')}}`, `{${own('u:2')},"url":"u:2"}`, '7', `{${own('')}}`]),
  )
  expect(sentAway.mock.calls).toEqual([['e-1']])
  expect(note).not.toHaveBeenCalled()
})

test.each(['"URL":"u:2"', '"url":"u:2"', '"Message":"m"', '"elicitationID":"e-2"'])(
  'T-20 T-34 B270 a visit that a host may read in two ways is none: %s',
  (more) => {
    const session = { id: 's' } as unknown as HostSession
    for (const caller of [{ session, revision: '2025-11-25' }, { revision: '2026-07-28' }] as const) {
      const call = callOf({ caller: { ...caller, capabilities: { elicitation: { url: {} } } } })
      const text = `{"code":-32042,"message":"visit","data":{"elicitations":[{"url":"u:1","message":"n","elicitationId":"e-1",${more}}]}}`
      const error = new ServerError(URL_REQUIRED, 'visit', Payload.at(Buffer.from(text)))
      expect(() => urlRequired(error, call, undefined, ASKER, vi.fn(), vi.fn())).toThrow(ScanError)
    }
  },
)

test('B089 B277 at a bridge the error stays as it is, and the ids of its elicitations are reported as sent; other errors have none', () => {
  const session = { id: 's' } as unknown as HostSession
  const sentAway = vi.fn()
  // Cast: what a bridge reads.
  const routed = {
    call: callOf({ caller: { session, scope: { server: 'a' }, revision: '2025-11-25' } }),
    downstream: { eras: { eraFor: () => 'legacy' }, sessions: { sentAway } },
  } as unknown as RoutedCall
  for (const code of [URL_REQUIRED, -32000]) {
    const text = `{"code":${code},"message":"visit","data":{"elicitations":[{"url":"u:1","elicitationId":"e-1"}]}}`
    const error = new ServerError(code, 'visit', Payload.at(Buffer.from(text)))
    expect(() => rewriteError(error, routed)).toThrow(error)
    expect(join(error.error.parts()).toString()).toBe(text)
    expect(sentAway.mock.calls).toEqual([['e-1', session]])
  }
})
