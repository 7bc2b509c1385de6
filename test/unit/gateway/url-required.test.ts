/** How error -32042 reaches a legacy host that accepts URLs (BRIDGING 3.13). */
import { expect, test, vi } from 'vitest'
import type { Mock } from 'vitest'
import { elicitationIdFor } from '../../../src/era/questions.ts'
import { rewriteError } from '../../../src/gateway/rewrite/rewrite-error.ts'
import { URL_REQUIRED, urlRequired } from '../../../src/gateway/rounds/url-required.ts'
import type { RoutedCall } from '../../../src/gateway/routed-call.ts'
import { ServerError } from '../../../src/rpc/call.ts'
import type { Call, HostSession, Resume } from '../../../src/rpc/call.ts'
import { ScanError } from '../../../src/wire/json/scan-error.ts'
import { join, Payload } from '../../../src/wire/message/payload.ts'
import { callOf } from '../../support/calls.ts'

/** The call at a server with key `a`. */
const routedOf = (
  call: Call,
  { resume, note = vi.fn(), sentAway = vi.fn() }: { resume?: Resume | undefined; note?: Mock; sentAway?: Mock } = {},
): RoutedCall =>
  // Cast: what is read of it.
  ({
    call,
    resume,
    downstream: {
      options: { key: 'a' },
      eras: { revisionFor: () => '2025-11-25' },
      fidelity: { note },
      sessions: { sentAway },
    },
    view: { catalog: { sources: [] } },
  }) as unknown as RoutedCall

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
  const routed = routedOf(call, { note, sentAway })
  expect(() => urlRequired(error, routed)).toThrow(error)
  expect(join(error.error.parts()).toString()).toBe(
    errorWith([`{"url":"u:1",${own('e-1')}}`, `{${own('u:2')},"url":"u:2"}`, '7', `{${own('')}}`]),
  )
  expect(sentAway.mock.calls).toEqual([['e-1', session]])
  expect(note).not.toHaveBeenCalled()
})

test('B089 a modern host is asked by rounds for what it has not been asked for, and what it has answered is an error', () => {
  const call = callOf({ method: 'tools/call', caller: { capabilities: { elicitation: { url: {} } } } })
  const visited = (...urls: readonly string[]): ServerError => {
    const data = { elicitations: urls.map((url) => ({ url, message: 'go' })) }
    return new ServerError(URL_REQUIRED, 'visit', Payload.of({ code: URL_REQUIRED, message: 'visit', data }))
  }
  let state: string | undefined
  const ask = (...urls: readonly string[]): number => {
    const resume: Resume | undefined = state === undefined ? undefined : { state, maker: 'visit', responses: Payload.of({}) }
    const outcome = urlRequired(visited(...urls), routedOf(call, { resume }))
    state = outcome.kind === 'input_required' ? outcome.state : undefined
    return (outcome.result as Payload).object('inputRequests')?.members.length ?? 0
  }
  expect([ask('u:1'), ask('u:2'), ask('u:1', 'u:3')]).toEqual([1, 1, 2])
  for (const urls of [['u:1'], ['u:2'], ['u:3', 'u:1']]) expect(() => ask(...urls)).toThrow('visit')
})

test.each(['"URL":"u:2"', '"url":"u:2"', '"Message":"m"', '"elicitationID":"e-2"'])(
  'T-20 T-34 B270 a visit that a host may read in two ways is none: %s',
  (more) => {
    const session = { id: 's' } as unknown as HostSession
    for (const caller of [{ session, revision: '2025-11-25' }, { revision: '2026-07-28' }] as const) {
      const call = callOf({ caller: { ...caller, capabilities: { elicitation: { url: {} } } } })
      const text = `{"code":-32042,"message":"visit","data":{"elicitations":[{"url":"u:1","message":"n","elicitationId":"e-1",${more}}]}}`
      const error = new ServerError(URL_REQUIRED, 'visit', Payload.at(Buffer.from(text)))
      expect(() => urlRequired(error, routedOf(call))).toThrow(ScanError)
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
