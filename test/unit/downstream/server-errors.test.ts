/** What is added to errors of a server, and which failures of its calls the gateway has caused. */
import { describe, expect, test } from 'vitest'
import { initialState, ServerStates } from '../../../src/downstream/health/server-state.ts'
import { ServerErrors } from '../../../src/downstream/server-errors.ts'
import type { Link } from '../../../src/era/server/link.ts'
import { ServerError } from '../../../src/rpc/call.ts'
import type { Call } from '../../../src/rpc/call.ts'
import { Failure } from '../../../src/wire/message/failure.ts'
import { Payload } from '../../../src/wire/message/payload.ts'

const SERVER = { key: 'a', displayName: 'A' }
const call = (method: string): Call => ({ method, caller: {} }) as unknown as Call
const errorOf = (code: number, status?: number): ServerError => new ServerError(code, 'no', Payload.of({}), { status })

/** A server with a link; it declares tools. */
const setUp = ({ era = 'modern', transport = 'http', isEnding = false, isOpen = true } = {}) => {
  const states = new ServerStates(initialState())
  // Casts: what is used of each.
  if (isOpen) {
    states.send({ type: 'opened', link: { era, transport } as Link })
    states.send({ type: 'ready', nowMs: 0, complaints: [] })
  }
  const errors = new ServerErrors({
    options: () => SERVER as never,
    states,
    eras: { inventoryFor: () => ({ capabilities: { tools: {} } }) } as never,
    environment: { isEnding: () => isEnding },
  })
  return { states, errors }
}

describe('an error of a server', () => {
  test.each<[string, object, method: string, ServerError, era: 'legacy' | 'modern' | undefined, status: number | undefined]>([
    ['has the status it came with', {}, 'tools/call', errorOf(-32602, 400), undefined, 400],
    ['is an answer like any other without one', {}, 'tools/call', errorOf(-32602), undefined, 200],
    ['of a legacy server has no status', { era: 'legacy' }, 'tools/call', errorOf(-32602, 400), undefined, undefined],
    ['over a legacy link beside a modern one neither', {}, 'tools/call', errorOf(-32602, 400), 'legacy', undefined],
    ['over a pipe neither', { transport: 'pipe' }, 'tools/call', errorOf(-32602), undefined, undefined],
    ['without a link neither', { isOpen: false }, 'tools/call', errorOf(-32602, 400), undefined, undefined],
    ['that says an unknown name is an answer', { transport: 'pipe' }, 'tools/call', errorOf(-32601), undefined, 200],
    ['for a method that is not declared is not', { transport: 'pipe' }, 'prompts/get', errorOf(-32601), undefined, undefined],
    ['for a method without a capability is not', { transport: 'pipe' }, 'vendor/x', errorOf(-32601), undefined, undefined],
  ])('%s', (_, world, method, error, era, status) => {
    const { errors, states } = setUp(world)
    const located = errors.located(error, era, call(method))
    expect(located).toBeInstanceOf(ServerError)
    expect(located).toMatchObject({ code: error.code, server: 'a', era: era ?? states.now.link?.era, status })
  })

  test('keeps the status it has where it answers no call', () => {
    expect(setUp({ era: 'legacy' }).errors.located(errorOf(-32602, 400))).toMatchObject({
      server: 'a',
      era: 'legacy',
      status: 400,
    })
  })
})

describe('a failure', () => {
  const lost = new Failure('lost', 'the connection broke', { executed: 'unknown', retryable: true })

  test('names the server, and what is no failure stays as it is', () => {
    const { errors } = setUp()
    expect(errors.located(lost)).toMatchObject({ kind: 'lost', message: 'the connection broke', facts: { server: SERVER } })
    const defect = new TypeError('x')
    expect(errors.located(defect)).toBe(defect)
  })

  test.each(['lost', 'exited', 'unreachable'] as const)('%s of a server that is being stopped is its stop', (kind) => {
    const { errors, states } = setUp()
    states.send({ type: 'stopping' })
    expect(errors.located(new Failure(kind, 'x', { executed: 'no' }))).toMatchObject({
      kind: 'shutting_down',
      message: 'the server was stopped',
      executed: 'no',
      facts: { server: SERVER },
    })
    expect(errors.located(new Failure('timeout', 'x'))).toMatchObject({ kind: 'timeout' })
  })

  test('does not name a server that ends with the whole gateway', () => {
    const { errors, states } = setUp({ isEnding: true })
    expect(errors.located(lost)).toMatchObject({ kind: 'lost', facts: { server: SERVER } })
    states.send({ type: 'stopping' })
    const located = errors.located(lost)
    expect(located).toMatchObject({ kind: 'shutting_down' })
    expect(located).not.toHaveProperty('facts.server')
  })
})
