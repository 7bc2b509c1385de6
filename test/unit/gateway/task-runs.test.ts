/** Which calls run as tasks, and who follows them (BRIDGING 3.17). */
import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { Entry } from '../../../src/catalog/inventory.ts'
import type { Downstream } from '../../../src/downstream/downstream.ts'
import { TaskRuns } from '../../../src/gateway/tasks/task-runs.ts'
import { complete, ServerError } from '../../../src/rpc/call.ts'
import type { Call, HostSession, Outcome } from '../../../src/rpc/call.ts'
import { Payload } from '../../../src/wire/message/payload.ts'
import { TASKS } from '../../../src/wire/protocol/extensions.ts'
import { callOf } from '../../support/calls.ts'

const textOf = (payload: Payload): unknown => JSON.parse(Buffer.concat(payload.parts()).toString())
const entryOf = (taskSupport?: unknown, isLimited = false): Entry =>
  ({
    original: 'x',
    raw: Buffer.from(JSON.stringify({ name: 'x', execution: { taskSupport } })),
    paramHeaders: [],
    ...(isLimited && { rule: { result: {} } }),
  }) as unknown as Entry

interface Server {
  readonly era?: 'legacy' | 'modern'
  readonly driveTasks?: boolean
  readonly capabilities?: object
  readonly answer?: (call: Call) => Outcome
}
/** A server that runs tools as tasks, with what it was sent and what was noted of the calls. */
const serverOf = ({ era = 'legacy', driveTasks = false, answer = () => complete(Payload.of({})), ...facts }: Server = {}) => {
  const { capabilities = { tasks: { requests: { tools: { call: {} } } } } } = facts
  const sent: unknown[] = []
  const noted: string[] = []
  const downstream = {
    options: { timeouts: { totalMs: 7_000 }, driveTasks },
    fidelity: { note: (deviation: string) => void noted.push(deviation) },
    eras: { eraFor: () => era, inventoryFor: () => ({ capabilities }) },
    handle: async (call: Call) => {
      sent.push([call.method, textOf(call.params)])
      return answer(call)
    },
  } as unknown as Downstream
  return { downstream, sent, noted }
}

const SESSION = {} as HostSession
const legacy = (params: object = {}, facts: Partial<Call> = {}): Call => ({
  ...callOf({ params: Payload.of({ name: 'x', ...params }), caller: { session: SESSION, revision: '2025-11-25' } }),
  ...facts,
})
const modern = (isAble: boolean, params: object = {}): Call =>
  callOf({
    params: Payload.of({ name: 'x', ...params }),
    caller: { capabilities: isAble ? { extensions: { [TASKS]: {} } } : {} },
  })
const asItIs =
  (call: Call): Call['notify'] =>
  (...notified) =>
    call.notify(...notified)
const runs = new TaskRuns(() => true, asItIs)
const TASK = { task: { ttl: 5 } }
const GATEWAY = { task: { ttl: 7_000 } }

describe('at a legacy server a call', () => {
  test.each<[string, Call, Entry | undefined, object, string[]]>([
    ['of a session that asks for a task is one', legacy(TASK), entryOf('optional'), TASK, []],
    ['of a session that asks for a task that is needed is one', legacy(TASK), entryOf('required'), TASK, []],
    ['of a session that asks for none is none', legacy(), entryOf('optional'), {}, []],
    [
      'of a session before tasks is none',
      { ...legacy(TASK), caller: { ...legacy().caller, revision: '2025-06-18' } },
      entryOf(),
      {},
      ['taskIgnored'],
    ],
    ['of a modern host that knows tasks is one', modern(true), entryOf('optional'), GATEWAY, []],
    ['of a modern host that does not is none', modern(false, TASK), entryOf('optional'), {}, ['taskIgnored']],
    ['of a tool that takes no tasks is none', modern(true), entryOf('forbidden'), {}, []],
    ['of a tool that says something else is none', modern(true), entryOf('maybe'), {}, []],
    ['of a tool that is not listed is none', modern(true), undefined, {}, []],
    ['of a tool that needs one is one for the gateway', modern(false), entryOf('required'), GATEWAY, []],
    ['of a session and a tool that needs one is one for the gateway', legacy(), entryOf('required'), GATEWAY, []],
  ])('%s', async (_, call, entry, task, notes) => {
    const { downstream, sent, noted } = serverOf()
    // Twice, because what a tool says of tasks is kept.
    for (let times = 0; times < 2; times++) await runs.run({ ...call, params: call.params.fresh() }, entry, downstream)
    expect(sent).toEqual([1, 2].map(() => ['tools/call', { name: 'x', ...task }]))
    expect(noted).toEqual(notes.flatMap((note) => [note, note]))
  })

  test('at a server that runs no tools as tasks is none', async () => {
    const { downstream, sent } = serverOf({ capabilities: { tasks: {} } })
    await runs.run(modern(true), entryOf('required'), downstream)
    expect(sent).toEqual([['tools/call', { name: 'x' }]])
  })

  test.each<[string, Entry | undefined]>([
    ['takes none', entryOf('forbidden')],
    ['is not listed', undefined],
    ['has a limit for its results', entryOf('optional', true)],
  ])('that asks for a task of a tool that %s is refused', (_, entry) => {
    const { downstream, sent } = serverOf()
    expect(() => runs.run(legacy(TASK), entry, downstream)).toThrow('a__x cannot be called as a task')
    expect(sent).toEqual([])
  })

  test('is none where the gateway offers no tasks', async () => {
    const { downstream, sent, noted } = serverOf()
    await new TaskRuns(() => false, asItIs).run(legacy(TASK), entryOf('optional'), downstream)
    expect([sent, noted]).toEqual([[['tools/call', { name: 'x' }]], ['taskIgnored']])
  })

  test('of another method, or one that is passed on as it came, is left alone', async () => {
    const { downstream, sent } = serverOf()
    await runs.run(legacy(TASK, { method: 'prompts/get' }), undefined, downstream)
    await runs.run(legacy(TASK, { isUnchanged: true }), entryOf(), downstream)
    expect(sent).toEqual([
      ['prompts/get', { name: 'x', ...TASK }],
      ['tools/call', { name: 'x', ...TASK }],
    ])
    // The limit of a result counts there, too.
    expect(() => runs.run(legacy(TASK, { isUnchanged: true }), entryOf('optional', true), downstream)).toThrow('as a task')
    await new TaskRuns(() => false, asItIs).run(legacy(TASK, { isUnchanged: true }), entryOf(), downstream)
    expect(sent.at(-1)).toEqual(['tools/call', { name: 'x' }])
  })
})

describe('a task that the gateway follows', () => {
  beforeEach(() => void vi.useFakeTimers())

  const asTask = (): Outcome => ({ kind: 'task', result: Payload.of({ taskId: 't', status: 'working', pollIntervalMs: 1_000 }) })
  const done = complete(Payload.of({ taskId: 't', status: 'completed', result: { content: [], x: 1 } }))
  /** The end of a call, and what was sent for it. */
  const endOf = async (call: Call, entry: Entry | undefined, facts: Server) => {
    const { downstream, sent, noted } = serverOf(facts)
    const end = runs.run(call, entry, downstream).then(
      ({ result }) => textOf(result as Payload),
      (error: unknown) => error,
    )
    await vi.runAllTimersAsync()
    return { end: await end, sent: sent.map((one) => (one as [string])[0]), noted }
  }

  test('ends with the result of the call, within the time of the call or else of the server', async () => {
    const answer = ({ method }: Call): Outcome =>
      method === 'tools/call' ? asTask() : method === 'tasks/get' ? done : complete(Payload.of({}))
    expect(await endOf(modern(false), entryOf('required'), { answer })).toEqual({
      end: { content: [], x: 1 },
      sent: ['tools/call', 'tasks/get'],
      noted: ['taskDriven'],
    })
    const never = ({ method }: Call): Outcome => (method === 'tasks/cancel' ? complete(Payload.of({})) : asTask())
    expect((await endOf(modern(false), entryOf('required'), { answer: never })).end).toMatchObject({
      kind: 'timeout',
      facts: { amount: 7 },
    })
    const short = { ...modern(false), totalMs: 3_000 }
    expect((await endOf(short, entryOf('required'), { answer: never })).end).toMatchObject({
      kind: 'timeout',
      facts: { amount: 3 },
    })
  })

  test('is none where the server answers at once', async () => {
    const answer = (): Outcome => complete(Payload.of({ content: [] }))
    expect(await endOf(modern(false), entryOf('required'), { answer })).toEqual({
      end: { content: [] },
      sent: ['tools/call'],
      noted: [],
    })
  })

  describe('because a modern server insists', () => {
    const refusalOf = (data: object, code = -32021) => new ServerError(code, 'no', Payload.of({ code, message: 'no', data }))
    const NEEDED = { requiredCapabilities: { extensions: { [TASKS]: {} } } }
    const insisting =
      (refusal: Error) =>
      ({ method, caller }: Call): Outcome => {
        if (method === 'tasks/get') return done
        if (caller.capabilities['extensions'] === undefined) throw refusal
        return asTask()
      }
    const FOLLOWED = { end: { content: [], x: 1 }, sent: ['tools/call', 'tools/call', 'tasks/get'], noted: ['taskDriven'] }

    test.each<[string, Call, Entry | undefined, boolean, boolean]>([
      ['for a session', legacy(), undefined, false, true],
      ['for a modern host, if that is configured', modern(false), undefined, true, true],
      ['not for a modern host otherwise', modern(false), undefined, false, false],
      ['for a modern host and a tool with a limit', modern(false), entryOf(undefined, true), false, true],
    ])('%s', async (_, call, entry, driveTasks, isFollowed) => {
      const refusal = refusalOf(NEEDED)
      const found = await endOf(call, entry, { era: 'modern', driveTasks, capabilities: {}, answer: insisting(refusal) })
      expect(found).toEqual(isFollowed ? FOLLOWED : { end: refusal, sent: ['tools/call'], noted: [] })
    })

    test.each([
      ['another capability', refusalOf({ requiredCapabilities: { extensions: { 'x/y': {} } } })],
      ['nothing', refusalOf({})],
      ['tasks under another code', refusalOf(NEEDED, -32602)],
      ['what is no error of a server', Object.assign(new Error('no'), { code: -32021 })],
    ])('on %s: the host is told', async (_, refusal) => {
      const { end, sent } = await endOf(legacy(), undefined, { era: 'modern', capabilities: {}, answer: insisting(refusal) })
      expect([end, sent]).toEqual([refusal, ['tools/call']])
    })

    test('and a task that a host follows itself stays a task', async () => {
      const { downstream, sent } = serverOf({ era: 'modern', capabilities: {}, driveTasks: true, answer: asTask })
      expect(await runs.run(modern(true), undefined, downstream)).toMatchObject({ kind: 'task' })
      expect(sent).toHaveLength(1)
    })
  })
})
