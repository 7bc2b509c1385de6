/** What the page makes of a refused request. The module is for browsers, whose types are not known here. */
import { beforeEach, expect, test, vi } from 'vitest'

interface Api {
  readonly session: { value: object | undefined }
  readonly sessionProblem: { value: string }
  ask(method: string, path: string, body?: string, signal?: AbortSignal): Promise<unknown>
}

const API = new URL('../../../src/dashboard/page/api.ts', import.meta.url).href

let api: Api
beforeEach(async () => {
  // Cast: see the interface.
  api = (await import(API)) as Api
  api.session.value = undefined
  api.sessionProblem.value = ''
  vi.stubGlobal('sessionStorage', { removeItem: () => undefined })
})

const answers = (status: number, body: string): void => {
  vi.stubGlobal('fetch', async () => new Response(body, { status }))
}
const refusal = (code: string): string => JSON.stringify({ error: { code, message: 'no' } })

test('an answer of "unauthorized" ends the session, and says so', async () => {
  answers(401, refusal('unauthorized'))
  api.session.value = {}
  await expect(api.ask('GET', '/calls')).rejects.toThrow('no')
  expect([api.session.value, api.sessionProblem.value]).toEqual([undefined, expect.stringContaining('The session has ended')])
})

test.each([
  ['another refusal', 403, refusal('forbidden'), {}, 'no'],
  ['without a session, "unauthorized"', 401, refusal('unauthorized'), undefined, 'no'],
  ['an answer that is no JSON', 502, '<html>', {}, 'Trunkline answered 502'],
])('%s ends nothing', async (_what, status, body, session, message) => {
  answers(status, body)
  api.session.value = session
  await expect(api.ask('GET', '/calls')).rejects.toThrow(message)
  expect([api.session.value, api.sessionProblem.value]).toEqual([session, ''])
})

test('a gateway that does not answer is named, a request that the page has withdrawn is not', async () => {
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('failed')))
  await expect(api.ask('GET', '/calls')).rejects.toThrow('Trunkline does not answer')
  await expect(api.ask('GET', '/calls', undefined, AbortSignal.abort())).rejects.toThrow('failed')
})
