/**
 * Calls that a person must confirm, attacked with states that were sealed for something else: a sign-in, another endpoint, another
 * server, an earlier round. None of them stands for a confirmation (T-06).
 */
import { describe, expect, test } from 'vitest'
import { Browser } from '../../support/browser.ts'
import { PER_USER } from '../../support/credentials.ts'
import { fake, FakeDownstream } from '../../support/fake-downstream.ts'
import type { FakeSpec, Handle } from '../../support/fake-downstream.ts'
import { legacyHttp, modernHttp, modernPipe, toolNames } from '../../support/fake-host.ts'
import type { Host, HostOptions } from '../../support/fake-host.ts'
import { FakeIssuer, protect } from '../../support/fake-issuer.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { toolsetOf } from '../../support/toolsets.ts'
import type { ToolsetOptions } from '../../../src/catalog/view/toolset.ts'

const able: HostOptions = { capabilities: { elicitation: { form: {}, url: {} } } }
const YES = { action: 'accept', content: {} }
const REFUSED = { code: -32602, message: 'invalid or expired requestState' }
const CONFIRM = { resultType: 'input_required', inputRequests: { confirm: { method: 'elicitation/create' } } }

/** A retry that answers every question of a round with yes. */
const accepted = (call: JsonMap, { requestState, inputRequests }: JsonMap): JsonMap => ({
  ...call,
  requestState,
  inputResponses: Object.fromEntries(Object.keys((inputRequests ?? {}) as JsonMap).map((key) => [key, YES])),
})
const again = (host: Host, call: JsonMap, round: JsonMap): Promise<JsonMap> => host.call('tools/call', accepted(call, round))
/** Tools that reached a server. */
const ran = (server: FakeDownstream): unknown[] => server.all('tools/call').map(({ params }) => params['name'])

describe('the state of a sign-in', () => {
  interface Scene extends AsyncDisposable {
    readonly server: FakeDownstream
    readonly gateway: TestGateway
  }
  /** A server `a` that each caller signs in to, behind a toolset for everybody. */
  const scene = async (spec: FakeSpec, toolset: ToolsetOptions, scopeOf?: (method: string) => string): Promise<Scene> => {
    const issuer = await FakeIssuer.start()
    const server = await FakeDownstream.start(fake.of({ kind: 'modern http', ...spec }))
    protect(server, issuer, scopeOf)
    const gateway = await startGateway({
      servers: {},
      fakes: new Map([['a', server]]),
      options: { a: { credential: PER_USER } },
      gateway: { toolsets: [toolset] },
    })
    const parts = [gateway, server, issuer]
    return {
      server,
      gateway,
      [Symbol.asyncDispose]: async () => {
        for (const part of parts) await part[Symbol.asyncDispose]()
      },
    }
  }
  const visit = async ({ inputRequests }: JsonMap): Promise<void> => {
    const { 'sign-in': question } = inputRequests as Record<string, { params: { url: string } }>
    await new Browser().signIn(question!.params.url)
  }
  const listed = async (host: Host): Promise<void> => {
    while (!(await toolNames(host)).includes('a__echo')) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  /** Calls, and signs in: what the host may bring back once the lists of the server are there. */
  const signedIn = async (host: Host, call: JsonMap): Promise<JsonMap> => {
    const asked = await host.call('tools/call', call)
    await visit(asked)
    await listed(host)
    return asked
  }
  const confirming = (...confirm: string[]): ToolsetOptions => toolsetOf({}, { name: 'default', confirm })

  test.each(['sign_in', 'delete_repo'])(
    'T-06 is asked about, where the tool %s of the server must be confirmed',
    async (tool) => {
      await using stage = await scene({ tools: [tool, 'echo'] }, confirming(`a__${tool}`))
      await using host = await modernHttp.connect(stage.gateway, able)
      const call = { name: `a__${tool}`, arguments: { all: true } }
      const asked = await signedIn(host, call)
      const question = await again(host, call, asked)
      expect(question).toMatchObject(CONFIRM)
      // Not the second time either, when the tool is known.
      expect(await again(host, call, asked)).toMatchObject(CONFIRM)
      expect(ran(stage.server)).toEqual([])
      expect(await again(host, call, question)).toMatchObject({ resultType: 'complete' })
      expect(ran(stage.server)).toEqual([tool])
    },
  )

  test('T-06 is good for its own tool and arguments alone', async () => {
    await using stage = await scene({ tools: ['sign_in', 'delete_repo', 'echo'] }, confirming('a__delete_repo', 'a__sign_in'))
    await using host = await modernHttp.connect(stage.gateway, able)
    const asked = await signedIn(host, { name: 'a__sign_in' })
    for (const call of [{ name: 'a__delete_repo' }, { name: 'a__sign_in', arguments: { all: true } }])
      await expect(again(host, call, asked)).rejects.toMatchObject(REFUSED)
    await expect(
      host.call('tools/call', accepted({ name: 'a__sign_in' }, { ...asked, requestState: 'x' })),
    ).rejects.toMatchObject(REFUSED)
    expect(ran(stage.server)).toEqual([])
  })

  test('T-03 leads to no tool of the server that the toolset hides, though it has the name of the one for signing in', async () => {
    await using stage = await scene(
      { tools: ['sign_in', 'echo'] },
      toolsetOf({ servers: ['a'], tools: ['a__ec*'] }, { name: 'default' }),
    )
    await using host = await modernHttp.connect(stage.gateway, able)
    const call = { name: 'a__sign_in', arguments: {} }
    const asked = await signedIn(host, call)
    const result = await again(host, call, asked)
    expect(JSON.stringify(result)).toContain('Signed in to A')
    expect(ran(stage.server)).toEqual([])
  })

  test('T-06 within a session is asked about, too', async () => {
    await using stage = await scene({ tools: ['sign_in', 'echo'] }, confirming('a__sign_in'))
    await using host = await legacyHttp.connect(stage.gateway, able)
    const modes: unknown[] = []
    host.answer('elicitation/create', async ({ mode, url }) => {
      modes.push(mode)
      if (mode !== 'url') return { action: 'decline' }
      await new Browser().signIn(String(url))
      await listed(host)
      return YES
    })
    expect(await host.call('tools/call', { name: 'a__sign_in' })).toMatchObject({
      isError: true,
      content: [{ text: 'declined by the user' }],
    })
    expect(modes).toEqual(['url', 'form'])
    expect(ran(stage.server)).toEqual([])
  })

  test('T-06 of a call that was confirmed before it is good once', async () => {
    const scopeOf = (method: string): string => (method === 'tools/call' ? 'write' : 'read')
    await using stage = await scene({ tools: ['delete_repo', 'echo'] }, confirming('a__delete_repo'), scopeOf)
    await using host = await modernHttp.connect(stage.gateway, able)
    const call = { name: 'a__delete_repo' }
    const question = await again(host, call, await signedIn(host, call))
    const asked = await again(host, call, question)
    await visit(asked)
    expect(await again(host, call, asked)).toMatchObject({ resultType: 'complete' })
    await expect(again(host, call, asked)).rejects.toMatchObject({ code: -32602, message: 'requestState already used' })
    expect(ran(stage.server)).toEqual(['delete_repo'])
  })
})

describe('the state of a round', () => {
  const OPS = toolsetOf({}, { name: 'ops', confirm: ['*__delete_*'] })
  const FREE = toolsetOf({}, { name: 'free' })
  const CALL = { name: 'a__delete_repo', arguments: { repo: 'x' } }
  const form = { method: 'elicitation/create', params: { message: 'Sure?', requestedSchema: { type: 'object', properties: {} } } }
  /** Asks each call once more, and tells what it was answered. */
  const asksByRound: Handle = ({ params }) =>
    params['inputResponses'] === undefined
      ? { resultType: 'input_required', inputRequests: { sure: form }, requestState: 'visit [] sign-in.x' }
      : { content: [{ type: 'text', text: JSON.stringify([params['requestState'], params['inputResponses']]) }] }
  const asksWithin: Handle = async (turn) => {
    const { result } = await turn.ask(form.method, form.params)
    return { content: [{ type: 'text', text: JSON.stringify(result) }] }
  }
  const start = (a: FakeSpec, toolsets: readonly ToolsetOptions[] = [OPS, FREE]): Promise<TestGateway> =>
    startGateway({
      servers: { a: fake.of({ tools: ['delete_repo'], ...a }), b: fake.of({ tools: ['delete_repo'] }) },
      gateway: { toolsets },
    })

  test.each([
    ['modern http', asksByRound],
    ['legacy http', asksWithin],
  ] as const)('T-06 of a %s server at a toolset that asks nobody is refused where a person is asked', async (kind, handle) => {
    await using gateway = await start({ kind, on: { 'tools/call': handle } })
    await using free = await modernHttp.connect(gateway, { ...able, toolset: 'free' })
    await using ops = await modernHttp.connect(gateway, { ...able, toolset: 'ops' })
    const round = await free.call('tools/call', CALL)
    await expect(again(ops, CALL, round)).rejects.toMatchObject(REFUSED)
    expect(ran(gateway.fake('a'))).toEqual(['delete_repo'])
    // At its own endpoint it is as good as before.
    expect(await again(free, CALL, round)).toMatchObject({ resultType: 'complete' })
  })

  test('T-06 of a confirmation at the path of one server is refused at that of another', async () => {
    await using gateway = await start({}, [{ ...OPS, name: 'default', confirm: ['*'] }])
    const at = (path: string) => modernHttp.connect(gateway, { ...able, path })
    await using a = await at('/servers/a/mcp')
    await using b = await at('/servers/b/mcp')
    const call = { name: 'delete_repo', arguments: { repo: 'x' } }
    const question = await a.call('tools/call', call)
    expect(question).toMatchObject(CONFIRM)
    await expect(again(b, call, question)).rejects.toMatchObject(REFUSED)
    expect(ran(gateway.fake('b'))).toEqual([])
  })

  test.each([
    ['modern http', modernHttp],
    ['modern http', modernPipe],
    ['legacy http', modernHttp],
  ] as const)(
    'T-06 of a confirmed call of a %s server goes on once, with the state that its server gave',
    async (kind, { connect }) => {
      await using gateway = await start({ kind, on: { 'tools/call': kind === 'legacy http' ? asksWithin : asksByRound } })
      await using host = await connect(gateway, { ...able, toolset: 'ops' })
      const question = await host.call('tools/call', CALL)
      const round = await again(host, CALL, question)
      expect(round).toMatchObject({ resultType: 'input_required' })
      for (const change of [{ name: 'b__delete_repo' }, { arguments: { repo: 'y' } }])
        await expect(again(host, { ...CALL, ...change }, round)).rejects.toMatchObject(REFUSED)
      const answer = kind === 'legacy http' ? YES : ['visit [] sign-in.x', { sure: YES }]
      expect(await again(host, CALL, round)).toMatchObject({ content: [{ text: JSON.stringify(answer) }] })
      const used = { code: -32602, message: 'requestState already used' }
      for (const state of [question, round]) await expect(again(host, CALL, state)).rejects.toMatchObject(used)
      expect(ran(gateway.fake('b'))).toEqual([])
    },
  )

  test('T-06 of a call that a rate limit kept from its server is good again', async () => {
    const rate = { amount: 1, periodMs: 3_600_000, text: '1/h' }
    const rates = [{ option: 'servers.a.limits.rate', rate, of: { kind: 'server', server: 'a' } }] as const
    await using gateway = await startGateway({
      servers: { a: fake.of({ tools: ['delete_repo', 'other'] }) },
      gateway: { toolsets: [OPS], rates },
    })
    await using host = await modernHttp.connect(gateway, { ...able, toolset: 'ops' })
    await host.call('tools/call', { name: 'a__other' })
    const question = await host.call('tools/call', CALL)
    expect(JSON.stringify(await again(host, CALL, question))).toContain('servers.a.limits.rate (1/h) is reached')
    const { running } = gateway
    await running.apply({ ...running.configuration, gateway: { ...running.configuration.gateway, rates: [] } }, new Set())
    expect(await again(host, CALL, question)).toMatchObject({ resultType: 'complete' })
    expect(ran(gateway.fake('a'))).toEqual(['other', 'delete_repo'])
  })
})

test('T-06 a tool that a server lists since a moment ago is asked about, though no list showed it when it was called', async () => {
  const ops = toolsetOf({}, { name: 'default', confirm: ['*__delete_*'] })
  await using gateway = await startGateway({ servers: { a: fake.offering('shown') }, gateway: { toolsets: [ops], freshMs: 0 } })
  await using host = await modernHttp.connect(gateway, able)
  const a = gateway.fake('a')
  a.offers.tools.push({ name: 'delete_all', inputSchema: { type: 'object' } })
  expect(await host.call('tools/call', { name: 'a__delete_all' })).toMatchObject(CONFIRM)
  expect(ran(a)).toEqual([])
})
