/** How errors of servers reach hosts (BRIDGING 7). */
import { describe, expect, test } from 'vitest'
import { rewriteError } from '../../../src/gateway/rewrite/rewrite-error.ts'
import type { RoutedCall } from '../../../src/gateway/routed-call.ts'
import { ServerError } from '../../../src/rpc/call.ts'
import type { Caller, HostSession, Outcome } from '../../../src/rpc/call.ts'
import { join, Payload } from '../../../src/wire/message/payload.ts'
import { callOf } from '../../support/calls.ts'

const SESSION = {} as HostSession

interface Facts {
  readonly method?: string
  readonly caller?: Partial<Caller>
  /** Of the server. */
  readonly revision?: string
}
/** What the host gets for an error, and what is noted of it. */
const rewritten = (error: object, { method = 'tools/call', caller = {}, revision = '2025-11-25' }: Facts = {}) => {
  const noted: string[] = []
  // Cast: what errors are rewritten by.
  const routed = {
    call: callOf({ method, target: 'a+file:///x', caller }),
    downstream: {
      options: { key: 'a', prefix: 'a', alias: {} },
      eras: { eraFor: () => 'legacy', revisionFor: () => revision },
      fidelity: { note: (deviation: string) => void noted.push(deviation) },
    },
    view: { mayRenameUris: () => false, catalog: { sources: [] } },
  } as unknown as RoutedCall
  const thrown = new ServerError(Number((error as { code: unknown }).code), 'no', Payload.of({ message: 'no', ...error }))
  try {
    return { outcome: rewriteError(thrown, routed), noted }
  } catch (caught) {
    expect(caught).toBe(thrown)
    return { error: JSON.parse(join(thrown.error.parts()).toString()) as unknown, noted }
  }
}
const textOf = (outcome: Outcome | undefined): string | undefined =>
  outcome?.result instanceof Payload ? join(outcome.result.parts()).toString() : undefined

describe('an unknown resource', () => {
  const read = (error: object, session: HostSession | undefined) =>
    rewritten(error, { method: 'resources/read', caller: { session } })
  const DATA = { data: { uri: 'a+file:///x' } }

  test.each<[object, HostSession | undefined, object, boolean]>([
    [{ code: -32002 }, SESSION, DATA, false],
    [{ code: -32002 }, undefined, DATA, true],
    [{ code: -32602, data: { uri: 'file:///x' } }, undefined, DATA, false],
    [{ code: -32602, data: { uri: 'file:///x' } }, SESSION, DATA, true],
    [{ code: -32002, data: { uri: 'file:///x', n: 1 } }, SESSION, { data: { uri: 'a+file:///x', n: 1 } }, false],
    [{ code: -32002, data: null }, SESSION, DATA, false],
    [{ code: -32002, data: 'why' }, SESSION, {}, false],
  ])('is told with the URI of the host: %j', (error, session, change, isNoted) => {
    const found = read(error, session)
    expect(found.error).toEqual({ message: 'no', ...error, ...change })
    expect(found.noted).toEqual(isNoted ? ['notFound'] : [])
  })

  test.each([{ code: -32602 }, { code: -32602, data: {} }, { code: -32603, data: { uri: 'file:///x' } }])(
    'is not what %j says',
    (error) => {
      expect(read(error, SESSION)).toEqual({ error: { message: 'no', ...error }, noted: [] })
    },
  )

  test('is one only where a resource is read', () => {
    const error = { code: -32002, message: 'no' }
    expect(rewritten(error, { caller: { session: SESSION } })).toEqual({ error, noted: [] })
  })
})

test('B112 a server that knows no completion has none to offer; at a bridge only one of 2024-11-05', () => {
  const method = 'completion/complete'
  const caller = { scope: { server: 'a' } }
  const refused = { code: -32601, message: 'no' }
  for (const facts of [{}, { revision: '2024-11-05' }, { caller, revision: '2024-11-05' }]) {
    const { outcome, noted } = rewritten(refused, { method, ...facts })
    expect([textOf(outcome), noted]).toEqual(['{"completion":{"values":[]}}', ['completionNone']])
  }
  for (const facts of [{ method, caller }, { revision: '2024-11-05' }])
    expect(rewritten(refused, facts)).toEqual({ error: refused, noted: [] })
  expect(rewritten({ code: -32602 }, { method }).outcome).toBeUndefined()
})

test('what is no error of a server stays as it is', () => {
  const error = new Error('no')
  expect(() => rewriteError(error, {} as RoutedCall)).toThrow(error)
})
