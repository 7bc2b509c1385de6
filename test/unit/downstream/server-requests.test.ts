/** Questions of servers that no host is there to answer (B049, B263, B295). */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ServerRequests } from '../../../src/downstream/calls/server-requests.ts'
import { DEFAULT_SERVER } from '../../../src/downstream/options.ts'
import type { ServerOptions } from '../../../src/downstream/options.ts'
import type { Answer, Question } from '../../../src/rpc/call.ts'
import { Fidelity } from '../../../src/rpc/fidelity.ts'
import { join } from '../../../src/wire/message/payload.ts'

const asking = (options: Partial<ServerOptions> = {}): ServerRequests =>
  new ServerRequests(
    () => ({ ...DEFAULT_SERVER, ...options }) as ServerOptions,
    new Fidelity('a', { info: () => undefined, debug: () => undefined }),
  )
const question = (method: string, more: Partial<Question> = {}): Question => ({ method, params: undefined, ...more })
const said = (answer: Answer): unknown =>
  JSON.parse(join('result' in answer ? answer.result.parts() : answer.error.parts()).toString()) as unknown

describe('a question within none of our requests', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  test.each(['elicitation/create', 'sampling/createMessage', 'vendor/ask'])(
    'B049 B295 %s stays open for 30 s and is refused then, on the main link and on those of hosts',
    async (method) => {
      const at = asking()
      const unsolicited = question(method, { isUnsolicited: true })
      const answers: unknown[] = []
      for (const answer of [at.decline(unsolicited), at.ask(unsolicited, {})]) void answer.then((one) => answers.push(said(one)))
      await vi.advanceTimersByTimeAsync(29_900)
      expect(answers).toEqual([])
      await vi.advanceTimersByTimeAsync(200)
      expect(answers).toEqual([expect.objectContaining({ code: -32601 }), expect.objectContaining({ code: -32601 })])
    },
  )

  test('B295 one that its server takes back is not kept', async () => {
    let withdraw: (() => void) | undefined
    const open = asking().decline(
      question('elicitation/create', { isUnsolicited: true, onWithdrawn: (callback) => void (withdraw = callback) }),
    )
    withdraw?.()
    await open
    expect(vi.getTimerCount()).toBe(0)
  })

  test('B295 of very many a few are left open; the rest is refused at once', async () => {
    const at = asking()
    for (let count = 0; count < 1_000; count++) void at.decline(question('elicitation/create', { isUnsolicited: true }))
    expect(vi.getTimerCount()).toBeLessThan(100)
  })

  test('roots are told at once: they are no dialogue', async () => {
    expect(said(await asking().decline(question('roots/list', { isUnsolicited: true })))).toEqual({ roots: [] })
  })

  test('B295 roots are told later while a call of a host is under way on another link: they may be asked for that call', async () => {
    const answers: unknown[] = []
    const roots = question('roots/list', { isUnsolicited: true })
    void asking()
      .decline(roots, true)
      .then((answer) => answers.push(said(answer)))
    await vi.advanceTimersByTimeAsync(29_900)
    expect(answers).toEqual([])
    await vi.advanceTimersByTimeAsync(200)
    expect(answers).toEqual([{ roots: [] }])
    expect(said(await asking().decline(question('roots/list'), true))).toEqual({ roots: [] })
    expect(said(await asking({ roots: ['/own'] }).decline(roots, true))).toEqual({ roots: [{ uri: 'file:///own' }] })
  })
})

test('B263 a question within one of our requests is declined at once', async () => {
  expect(said(await asking().decline(question('elicitation/create')))).toEqual({ action: 'cancel' })
  expect(said(await asking().decline(question('sampling/createMessage')))).toMatchObject({ code: -1 })
  expect(said(await asking().decline(question('vendor/ask')))).toMatchObject({ code: -32601 })
})
