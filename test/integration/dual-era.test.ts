/** Servers that speak both eras are spoken to in the era of the host (BRIDGING 3.0 rule 0; B267). */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { filter, firstValueFrom } from 'rxjs'
import { describe, expect, test } from 'vitest'
import { serverStatuses } from '../../src/admin/state/status.ts'
import { openHttpFront, openPipeFront } from '../support/differential/dual-fronts.ts'
import { fake, FakeDownstream } from '../support/fake-downstream.ts'
import type { FakeSpec } from '../support/fake-downstream.ts'
import {
  everyLegacyTransport,
  everyModernTransport,
  legacyHttp,
  legacyPipe,
  modernHttp,
  modernPipe,
} from '../support/fake-host.ts'
import { RpcError } from '../support/fakes/messages.ts'
import type { Turn } from '../support/fakes/turn.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../support/gateway.ts'
import { relayCommand } from '../support/relay.ts'

const portOf = ({ address }: FakeDownstream): number =>
  'url' in address ? Number(address.url.port) : Number(address.args.at(-1))
const said = (text: string): JsonMap => ({ content: [{ type: 'text', text }] })
const names = (result: JsonMap): unknown[] => (result['tools'] as JsonMap[]).map(({ name }) => name)

const LISTED = {
  tools: [{ name: 'x', inputSchema: { type: 'object' } }],
  ttlMs: 0,
  cacheScope: 'private',
  resultType: 'complete',
}

const commonTools = ({ running }: TestGateway): readonly string[] =>
  running.fleet.get('a')?.inventory$.value?.lists.tools.map(({ original }) => original) ?? []

/** One server with a program of each era behind it, told apart by the headers of requests, or the first message to the process. */
const startDual = async (
  legacy: Omit<FakeSpec, 'kind'>,
  modern: Omit<FakeSpec, 'kind'>,
  transport: 'http' | 'stdio' = 'http',
) => {
  const sides = {
    legacy: await FakeDownstream.start(fake.of({ kind: `legacy ${transport}`, ...legacy })),
    modern: await FakeDownstream.start(fake.of({ kind: `modern ${transport}`, ...modern })),
  }
  const ports = { legacy: portOf(sides.legacy), modern: portOf(sides.modern) }
  const front = await (transport === 'http' ? openHttpFront(ports) : openPipeFront(ports))
  const reached =
    transport === 'http'
      ? { url: new URL(`http://127.0.0.1:${front.port}/mcp`) }
      : { launch: { ...relayCommand(front.port), env: {}, cwd: process.cwd() } }
  return {
    ...sides,
    setup: (more: Partial<GatewaySetup> = {}): GatewaySetup => ({
      servers: {},
      fakes: new Map([['a', sides.modern]]),
      ...more,
      options: { a: { ...reached, ...more.options?.['a'] } },
    }),
    [Symbol.asyncDispose]: async () => {
      await front[Symbol.asyncDispose]()
      await Promise.all([sides.legacy[Symbol.asyncDispose](), sides.modern[Symbol.asyncDispose]()])
    },
  }
}

const SAYS = {
  legacy: { tools: ['x'], on: { 'tools/call': () => said('legacy') } },
  modern: { tools: ['x'], on: { 'tools/call': () => said('modern') } },
}

describe('a server of both eras', () => {
  test.each(everyLegacyTransport)('B267 is called in its legacy era by a host on $name', async ({ connect }) => {
    await using dual = await startDual(SAYS.legacy, SAYS.modern)
    await using gateway = await startGateway(dual.setup())
    await using host = await connect(gateway, { capabilities: { elicitation: {} } })
    expect(await host.call('tools/call', { name: 'a__x' })).toEqual(said('legacy'))
    const { connection } = await dual.legacy.until('tools/call')
    expect(connection.declared).toEqual({ elicitation: {} })
    expect(dual.modern.all('tools/call')).toEqual([])
  })
  test('B108 a legacy host that calls before it lists gets the structured content of the legacy side as it is', async () => {
    const outputSchema = { type: 'array' }
    const tools = [{ name: 'x', inputSchema: { type: 'object' }, outputSchema }]
    const on = { 'tools/call': () => ({ content: [], structuredContent: [1] }) }
    await using dual = await startDual({ tools, on }, { tools, on })
    await using gateway = await startGateway(dual.setup())
    await using host = await legacyHttp.connect(gateway)
    expect(await host.call('tools/call', { name: 'a__x' })).toEqual({ content: [], structuredContent: [1] })
    expect(await host.call('tools/list')).toMatchObject({ tools: [{ name: 'a__x', outputSchema }] })
  })
  test('5.3 a completion whose session the legacy side has forgotten is answered in another', async () => {
    await using dual = await startDual({ ...SAYS.legacy, prompts: ['p'] }, { ...SAYS.modern, prompts: ['p'] })
    await using gateway = await startGateway(dual.setup())
    await using host = await legacyHttp.connect(gateway)
    await host.call('prompts/list')
    const params = { ref: { type: 'ref/prompt', name: 'a__p' }, argument: { name: 'n', value: '' } }
    await host.call('completion/complete', params)
    for (const connection of dual.legacy.connections) connection.drop()
    expect(await host.call('completion/complete', params)).toMatchObject({ completion: { values: ['one', 'two'] } })
  })
  test('5.3 completions are answered where the host’s own session is forgotten as well', async () => {
    await using dual = await startDual({ ...SAYS.legacy, prompts: ['p'] }, { ...SAYS.modern, prompts: ['p'] })
    await using gateway = await startGateway(dual.setup())
    await using host = await legacyHttp.connect(gateway)
    let isRestarted = false
    const forgotten = new Set<unknown>()
    const late = Promise.withResolvers<void>()
    let refusals = 0
    // As after a restart of the server: the sessions until then are unknown, and no stream tells.
    dual.legacy.intercept = ({ headers, method }, response) => {
      const id = headers['mcp-session-id']
      if (!isRestarted) forgotten.add(id)
      const isGone = isRestarted && id !== undefined && forgotten.has(id)
      // The second is refused once the first has been answered.
      if (isGone)
        void (method === 'POST' && ++refusals === 2 ? late.promise : Promise.resolve()).then(() => response.writeHead(404).end())
      return isGone
    }
    await host.call('prompts/list')
    await host.call('tools/call', { name: 'a__x' })
    isRestarted = true
    const params = { ref: { type: 'ref/prompt', name: 'a__p' }, argument: { name: 'n', value: '' } }
    const both = [0, 1].map(() => host.call('completion/complete', params))
    await Promise.race(both)
    late.resolve()
    for (const each of both) expect(await each).toMatchObject({ completion: { values: ['one', 'two'] } })
  })
  test('B277 the first call of a legacy host at a bridge is asked what the server asks, as it came', async () => {
    const question = { mode: 'url', message: 'm', url: 'https://x.example', elicitationId: 'e' }
    const on = {
      'tools/call': async (turn: Turn) => said(JSON.stringify((await turn.ask('elicitation/create', question)).result)),
    }
    await using dual = await startDual({ tools: ['x'], on }, SAYS.modern)
    await using gateway = await startGateway(dual.setup())
    // It declares forms alone, and it is its own to refuse.
    await using host = await legacyHttp.connect(gateway, { capabilities: { elicitation: {} }, path: '/servers/a/mcp' })
    host.answer('elicitation/create', (params) => ({ action: 'decline', params }))
    expect(await host.call('tools/call', { name: 'x' })).toEqual(said(JSON.stringify({ action: 'decline', params: question })))
  })
  test('B231 a legacy tool that fails with -32020 has run, and is not called again', async () => {
    const fails = {
      tools: ['x'],
      on: {
        'tools/call': () => {
          throw new RpcError({ code: -32020, message: 'my own' })
        },
      },
    }
    await using dual = await startDual(fails, SAYS.modern)
    await using gateway = await startGateway(dual.setup())
    await using host = await legacyHttp.connect(gateway)
    await expect(host.call('tools/call', { name: 'a__x' })).rejects.toMatchObject({ message: 'my own' })
    expect(dual.legacy.all('tools/call')).toHaveLength(1)
  })
  test.each([-32020, -32021, -32022])(
    'B268 a legacy tool may fail with %i: it is asked for its era once, its session stays',
    async (code) => {
      const on: FakeSpec['on'] = { 'tools/call': (turn) => turn.fail(code, 'my own') }
      await using dual = await startDual({ tools: ['x'], on }, SAYS.modern)
      await using gateway = await startGateway(dual.setup())
      await using host = await legacyHttp.connect(gateway)
      await host.call('tools/list')
      const fail = (): Promise<unknown> => host.call('tools/call', { name: 'a__x' }).catch(() => undefined)
      await fail()
      const handshakes = dual.legacy.all('initialize').length
      await fail()
      await fail()
      expect(dual.legacy.all('initialize')).toHaveLength(handshakes)
      const sessions = dual.legacy.all('tools/call').map(({ connection }) => connection)
      expect(sessions).toHaveLength(3)
      expect(new Set(sessions).size).toBe(1)
      expect(dual.modern.all('tools/call')).toEqual([])
    },
  )
  test('B268 one that is started anew without its legacy side lists and serves the modern one to all', async () => {
    await using dual = await startDual({ ...SAYS.legacy, tools: ['x', 'old'] }, { ...SAYS.modern, tools: ['x', 'new'] }, 'stdio')
    await using gateway = await startGateway(dual.setup())
    await using host = await legacyHttp.connect(gateway)
    expect(names(await host.call('tools/list'))).toEqual(['a__x', 'a__old'])
    expect(await host.call('tools/call', { name: 'a__x' })).toEqual(said('legacy'))
    dual.legacy.on('initialize', (turn) => turn.fail(-32022, 'no'))
    for (const connection of dual.legacy.connections) connection.drop()
    await Promise.all(dual.legacy.connections.map(({ closed }) => closed))
    await expect.poll(() => host.call('tools/call', { name: 'a__x' })).toEqual(said('modern'))
    await expect.poll(async () => names(await host.call('tools/list'))).toEqual(['a__x', 'a__new'])
  })
  test.each(everyModernTransport)('B267 is called in its modern era by a host on $name', async ({ connect }) => {
    await using dual = await startDual(SAYS.legacy, SAYS.modern)
    await using gateway = await startGateway(dual.setup())
    await using host = await connect(gateway)
    expect(await host.call('tools/call', { name: 'a__x' })).toMatchObject(said('modern'))
    // No legacy host has come: nothing asks for the other era.
    expect(dual.legacy.received).toEqual([])
  })
  test('B267 one legacy session is one session at the server, another host another', async () => {
    await using dual = await startDual(SAYS.legacy, SAYS.modern)
    await using gateway = await startGateway(dual.setup())
    await using one = await legacyHttp.connect(gateway)
    await using two = await legacyHttp.connect(gateway)
    for (const host of [one, two, one]) await host.call('tools/call', { name: 'a__x' })
    const [first, second, third] = dual.legacy.all('tools/call').map(({ connection }) => connection)
    expect(third).toBe(first)
    expect(second).not.toBe(first)
  })
  test.each([
    [
      'elicitation/create',
      { message: 'm', requestedSchema: { type: 'object', properties: {} } },
      { action: 'accept', content: {} },
    ],
    [
      'sampling/createMessage',
      { messages: [], maxTokens: 1 },
      { role: 'assistant', content: { type: 'text', text: 'y' }, model: 'm' },
    ],
    ['roots/list', undefined, { roots: [] }],
  ])('B267 keeps %s by request for legacy hosts', async (method, params, answer) => {
    await using dual = await startDual(
      {
        tools: ['x'],
        on: {
          'tools/call': async (turn) => {
            const { result, error } = await turn.ask(method, params)
            return said(JSON.stringify(result ?? error))
          },
        },
      },
      SAYS.modern,
    )
    await using gateway = await startGateway(dual.setup())
    await using host = await legacyHttp.connect(gateway, { capabilities: { elicitation: {}, sampling: {}, roots: {} } })
    host.answer(method, () => answer)
    expect(await host.call('tools/call', { name: 'a__x' })).toEqual(said(JSON.stringify(answer)))
  })
  test("B267 lists to each host what the host's era is offered, and tells the difference in ps", async () => {
    await using dual = await startDual({ tools: ['both', 'old'] }, { tools: ['both', 'new'] })
    await using gateway = await startGateway(dual.setup())
    await using modern = await modernHttp.connect(gateway)
    await using legacy = await legacyHttp.connect(gateway)
    expect(names(await legacy.call('tools/list'))).toEqual(['a__both', 'a__old'])
    expect(names(await modern.call('tools/list'))).toEqual(['a__both', 'a__new'])
    expect(await legacy.call('tools/call', { name: 'a__old' })).toHaveProperty('content')
    await expect(modern.call('tools/call', { name: 'a__old' })).rejects.toMatchObject({ code: -32602 })
    expect(serverStatuses(gateway.running)).toMatchObject([
      {
        key: 'a',
        warnings: [
          'the server offers 1 tool to legacy hosts only: old',
          'the server offers 1 tool to hosts of 2026-07-28 only: new',
        ],
      },
    ])
  })
  test('B267 tells each host what its era says of a tool that both eras have', async () => {
    const tool = { name: 'x', inputSchema: { type: 'object' } }
    await using dual = await startDual(
      { tools: [{ ...tool, description: 'legacy' }] },
      { tools: [{ ...tool, description: 'modern' }] },
    )
    await using gateway = await startGateway(dual.setup())
    await using modern = await modernHttp.connect(gateway)
    await using legacy = await legacyHttp.connect(gateway)
    expect(await legacy.call('tools/list')).toMatchObject({ tools: [{ name: 'a__x', description: 'legacy' }] })
    expect(await modern.call('tools/list')).toMatchObject({ tools: [{ name: 'a__x', description: 'modern' }] })
  })
  test('B267 a change that is announced in the legacy era reaches legacy hosts', async () => {
    await using dual = await startDual({ tools: ['x'] }, { tools: ['x'] })
    await using gateway = await startGateway(dual.setup())
    await using legacy = await legacyHttp.connect(gateway)
    expect(names(await legacy.call('tools/list'))).toEqual(['a__x'])
    dual.legacy.offers.tools.push({ name: 'y', inputSchema: { type: 'object' } })
    dual.legacy.changed('tools')
    await legacy.heard.until(({ method }) => method === 'notifications/tools/list_changed')
    expect(names(await legacy.call('tools/list'))).toEqual(['a__x', 'a__y'])
  })
  test('B131 an update that both eras of the server report reaches a modern host once', async () => {
    const side = { tools: ['x'], resources: ['file:///r'] }
    await using dual = await startDual(side, side)
    await using gateway = await startGateway(dual.setup())
    await using modern = await modernHttp.connect(gateway)
    const uri = 'a+file:///r'
    const { messages } = modern.begin('subscriptions/listen', { notifications: { resourceSubscriptions: [uri] } })
    await messages.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
    await using legacy = await legacyHttp.connect(gateway)
    expect(names(await legacy.call('tools/list'))).toEqual(['a__x'])
    dual.legacy.updated('file:///r')
    dual.legacy.offers.tools.push({ name: 'y', inputSchema: { type: 'object' } })
    dual.legacy.changed('tools')
    await legacy.heard.until(({ method }) => method === 'notifications/tools/list_changed')
    dual.modern.updated('file:///r')
    const isUpdate = ({ method }: { method?: string }): boolean => method === 'notifications/resources/updated'
    await messages.until(isUpdate)
    await modern.call('tools/list')
    expect(messages.entries.filter(isUpdate)).toMatchObject([{ params: { uri } }])
  })
  test('B278 what the modern side lists already, and the legacy one not yet, is called by a legacy host', async () => {
    await using dual = await startDual({ ...SAYS.legacy, prompts: ['p'] }, { ...SAYS.modern, prompts: ['p'] })
    await using gateway = await startGateway(dual.setup())
    await using host = await legacyHttp.connect(gateway)
    await host.call('prompts/list')
    const { promise: mayList, resolve: list } = Promise.withResolvers<void>()
    for (const side of [dual.legacy, dual.modern]) side.offers.prompts.push({ name: 'q' })
    dual.legacy.on('prompts/list', () => mayList.then(() => ({ prompts: dual.legacy.offers.prompts })))
    dual.modern.changed('prompts')
    const common = gateway.running.fleet.get('a')!.inventory$
    await firstValueFrom(common.pipe(filter((known) => known?.lists.prompts.length === 2)))
    const params = { ref: { type: 'ref/prompt', name: 'a__q' }, argument: { name: 'n', value: '' } }
    expect(await host.call('completion/complete', params)).toMatchObject({ completion: { values: ['one', 'two'] } })
    expect(await host.call('prompts/get', { name: 'a__q' })).toMatchObject({ messages: [{ content: { text: 'q' } }] })
    list()
  })
  test('B267 what legacy hosts are listed is known at once at the next start', async () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
    await using dual = await startDual({ tools: ['old'] }, { tools: ['new'] })
    {
      await using gateway = await startGateway(dual.setup({ stateDir }))
      await using host = await legacyHttp.connect(gateway)
      expect(names(await host.call('tools/list'))).toEqual(['a__old'])
    }
    dual.legacy.on('tools/list', fake.never)
    await using gateway = await startGateway(dual.setup({ stateDir }))
    await using host = await legacyHttp.connect(gateway)
    expect(names(await host.call('tools/list'))).toEqual(['a__old'])
    rmSync(stateDir, { recursive: true })
  })
  test('B128 B267 what legacy hosts are listed since an earlier run is read again once the server changes it', async () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
    await using dual = await startDual({ tools: ['old'] }, { tools: ['new'] })
    {
      await using gateway = await startGateway(dual.setup({ stateDir }))
      await using host = await legacyHttp.connect(gateway)
      expect(names(await host.call('tools/list'))).toEqual(['a__old'])
    }
    await using gateway = await startGateway(dual.setup({ stateDir }))
    await expect.poll(() => gateway.running.fleet.get('a')?.link).toBeDefined()
    const change = (name: string): void => {
      for (const side of [dual.legacy, dual.modern]) side.offers.tools.push({ name, inputSchema: { type: 'object' } })
      // Nothing has opened a legacy link in this run.
      dual.modern.changed('tools')
    }
    change('between')
    await expect.poll(() => commonTools(gateway)).toContain('between')
    // As after a restart: it knows its lists, and asks for none.
    await using host = await legacyHttp.connect(gateway)
    change('last')
    await host.heard.until(({ method }) => method === 'notifications/tools/list_changed')
    expect(names(await host.call('tools/list'))).toEqual(['a__old', 'a__between', 'a__last'])
    rmSync(stateDir, { recursive: true })
  })
  test('B267 what legacy hosts are listed since an earlier run is read first where the server has changed since', async () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
    await using dual = await startDual({ tools: ['old'] }, { tools: ['new'] })
    {
      await using gateway = await startGateway(dual.setup({ stateDir }))
      await using host = await legacyHttp.connect(gateway)
      expect(names(await host.call('tools/list'))).toEqual(['a__old'])
    }
    for (const side of [dual.legacy, dual.modern]) side.offers.tools.push({ name: 'y', inputSchema: { type: 'object' } })
    await using gateway = await startGateway(dual.setup({ stateDir }))
    await expect.poll(() => commonTools(gateway)).toContain('y')
    await using host = await legacyHttp.connect(gateway)
    expect(names(await host.call('tools/list'))).toEqual(['a__old', 'a__y'])
    rmSync(stateDir, { recursive: true })
  })
  test('B128 5.3 what legacy hosts are listed is read in another session where the server has forgotten the one before', async () => {
    await using dual = await startDual({ tools: ['old'] }, { tools: ['new'] })
    await using gateway = await startGateway(dual.setup())
    await using host = await legacyHttp.connect(gateway)
    expect(names(await host.call('tools/list'))).toEqual(['a__old'])
    for (const connection of dual.legacy.connections) connection.drop()
    for (const side of [dual.legacy, dual.modern]) side.offers.tools.push({ name: 'y', inputSchema: { type: 'object' } })
    dual.modern.changed('tools')
    await expect.poll(async () => names(await host.call('tools/list')), { timeout: 5_000 }).toEqual(['a__old', 'a__y'])
  })
  test('B267 a server with nothing in its modern era is asked for the other without being needed', async () => {
    await using dual = await startDual({ tools: ['old'] }, { tools: [] })
    await using gateway = await startGateway(dual.setup())
    await dual.legacy.until('tools/list')
    expect(gateway.running.fleet.get('a')?.link).toMatchObject({ era: 'modern' })
  })
  test.each(['modern', 'legacy'] as const)('B267 era: %s holds for all hosts', async (era) => {
    await using dual = await startDual(SAYS.legacy, SAYS.modern)
    await using gateway = await startGateway(dual.setup({ options: { a: { era } } }))
    for (const { connect } of [legacyHttp, modernHttp]) {
      await using host = await connect(gateway)
      expect(await host.call('tools/call', { name: 'a__x' })).toMatchObject(said(era))
    }
  })
  test.each([
    ['legacy', legacyPipe],
    ['modern', everyModernTransport.find(({ name }) => name === 'modern stdio') ?? modernHttp],
  ] as const)('B267 a sole %s host on a pipe has one link, in its own era', async (era, { connect }) => {
    await using dual = await startDual(SAYS.legacy, SAYS.modern)
    await using gateway = await startGateway(dual.setup({ pipe: true }))
    await using host = await connect(gateway, { capabilities: { sampling: {} } })
    expect(await host.call('tools/call', { name: 'a__x' })).toMatchObject(said(era))
    expect(gateway.running.fleet.get('a')?.link).toMatchObject({ era })
    expect(gateway.running.fleet.get('a')?.linkCount).toBe(1)
    if (era === 'legacy') expect(dual.legacy.connections.map(({ declared }) => declared)).toEqual([{ sampling: {} }])
  })
})

describe('what the first legacy host at a bridge is told of a server of both eras', () => {
  const HOUR_MS = 3_600_000
  const AT_BRIDGE = { path: '/servers/a/mcp' }
  const LEGACY = {
    ...SAYS.legacy,
    instructions: 'the legacy way',
    capabilities: { tools: { listChanged: false }, resources: { subscribe: false } },
  }
  const MODERN = {
    ...SAYS.modern,
    instructions: 'the modern way',
    capabilities: { tools: { listChanged: true }, resources: { subscribe: true } },
  }
  const toldOf = ({ instructions, capabilities }: typeof LEGACY): unknown =>
    expect.objectContaining({ instructions, capabilities }) as unknown

  test.each(
    (['http', 'stdio'] as const).flatMap((transport) => everyLegacyTransport.map((row) => ({ transport, row, name: row.name }))),
  )('B267 B277 over $name is what its legacy side says, on $transport', async ({ transport, row }) => {
    await using dual = await startDual(LEGACY, MODERN, transport)
    await using gateway = await startGateway(dual.setup({ gateway: { prefix: 'never', listBudgetMs: HOUR_MS } }))
    await using first = await row.connect(gateway)
    expect(first.welcome).toEqual(toldOf(LEGACY))
    await using modern = await modernHttp.connect(gateway)
    expect(modern.welcome).toEqual(toldOf(MODERN))
    await using second = await row.connect(gateway)
    expect(second.welcome).toEqual(toldOf(LEGACY))
  })
  test.each(['http', 'stdio'] as const)('B267 B277 is the same for a sole host on a pipe, on %s', async (transport) => {
    await using dual = await startDual(LEGACY, MODERN, transport)
    await using gateway = await startGateway(dual.setup({ pipe: { server: 'a' }, gateway: { listBudgetMs: HOUR_MS } }))
    await using host = await legacyPipe.connect(gateway)
    expect(host.welcome).toEqual(toldOf(LEGACY))
    expect(gateway.running.fleet.get('a')?.linkCount).toBe(1)
  })
  test('B267 B277 at the endpoint of one server among several is the same', async () => {
    await using dual = await startDual(LEGACY, MODERN)
    await using b = await FakeDownstream.start(fake.offering('other'))
    const fakes = new Map([
      ['a', dual.modern],
      ['b', b],
    ])
    await using gateway = await startGateway(dual.setup({ fakes, gateway: { listBudgetMs: HOUR_MS } }))
    await using host = await legacyHttp.connect(gateway, AT_BRIDGE)
    expect(host.welcome).toEqual(toldOf(LEGACY))
  })
  test.each(['http', 'stdio'] as const)('B267 B277 is the same where the server is still starting, on %s', async (transport) => {
    const released = Promise.withResolvers<void>()
    await using dual = await startDual(
      LEGACY,
      { ...MODERN, on: { 'tools/list': () => released.promise.then(() => LISTED) } },
      transport,
    )
    await using gateway = await startGateway(dual.setup({ early: true, gateway: { listBudgetMs: HOUR_MS } }))
    const connecting = legacyHttp.connect(gateway, AT_BRIDGE)
    await dual.modern.until('tools/list')
    released.resolve()
    await using host = await connecting
    expect(host.welcome).toEqual(toldOf(LEGACY))
  })
  test('B267 B277 is the same after a restart that no legacy host came before, while the server is starting', async () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
    await using dual = await startDual(LEGACY, MODERN)
    {
      await using gateway = await startGateway(dual.setup({ stateDir }))
      expect(gateway.running.fleet.get('a')?.link).toMatchObject({ era: 'modern' })
    }
    const released = Promise.withResolvers<void>()
    dual.modern.on('tools/list', () => released.promise.then(() => LISTED))
    dual.modern.forget()
    await using gateway = await startGateway(dual.setup({ stateDir, early: true, gateway: { listBudgetMs: HOUR_MS } }))
    await dual.modern.until('tools/list')
    const connecting = legacyHttp.connect(gateway, AT_BRIDGE)
    released.resolve()
    await using host = await connecting
    expect(host.welcome).toEqual(toldOf(LEGACY))
    rmSync(stateDir, { recursive: true, maxRetries: 20, retryDelay: 100 })
  })
  test.each(['http', 'stdio'] as const)(
    'B267 B277 is the same for a sole host on a pipe after a run in which no legacy host came, on %s',
    async (transport) => {
      const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
      await using dual = await startDual(LEGACY, MODERN, transport)
      {
        await using gateway = await startGateway(dual.setup({ stateDir }))
        expect(gateway.running.fleet.get('a')?.link).toMatchObject({ era: 'modern' })
      }
      await using gateway = await startGateway(
        dual.setup({ stateDir, pipe: { server: 'a' }, gateway: { listBudgetMs: HOUR_MS } }),
      )
      await using host = await legacyPipe.connect(gateway)
      expect(host.welcome).toEqual(toldOf(LEGACY))
      rmSync(stateDir, { recursive: true, maxRetries: 20, retryDelay: 100 })
    },
  )
  test.each(['http', 'stdio'] as const)(
    'B267 B277 is what its modern side says for a modern sole host on a pipe after a legacy one, on %s',
    async (transport) => {
      const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
      await using dual = await startDual(LEGACY, MODERN, transport)
      const pipe = { stateDir, pipe: { server: 'a' }, gateway: { listBudgetMs: HOUR_MS } }
      {
        await using gateway = await startGateway(dual.setup(pipe))
        await using host = await legacyPipe.connect(gateway)
        expect(host.welcome).toEqual(toldOf(LEGACY))
      }
      await using gateway = await startGateway(dual.setup(pipe))
      await using host = await modernPipe.connect(gateway)
      expect(host.welcome).toEqual(toldOf(MODERN))
      rmSync(stateDir, { recursive: true, maxRetries: 20, retryDelay: 100 })
    },
  )
  test('B267 B277 is known at once after a restart, while the server cannot be reached', async () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
    await using dual = await startDual(LEGACY, MODERN)
    {
      await using gateway = await startGateway(dual.setup({ stateDir }))
      await using host = await legacyHttp.connect(gateway, AT_BRIDGE)
      await host.call('tools/list')
    }
    for (const side of [dual.legacy, dual.modern])
      side.intercept = (_, response) => {
        response.writeHead(503).end()
        return true
      }
    await using gateway = await startGateway(dual.setup({ stateDir, early: true, gateway: { listBudgetMs: HOUR_MS } }))
    await using host = await legacyHttp.connect(gateway, AT_BRIDGE)
    expect(host.welcome).toEqual(toldOf(LEGACY))
    rmSync(stateDir, { recursive: true, maxRetries: 20, retryDelay: 100 })
  })
  test.each([
    [
      'refuses initialize',
      (): never => {
        throw new RpcError({ code: -32601, message: 'Method not found' })
      },
    ],
    [
      'fails at it',
      (): never => {
        throw new RpcError({ code: -32603, message: 'broken' })
      },
    ],
  ])('B277 is what its modern side says where the legacy one %s', async (_, initialize) => {
    await using dual = await startDual({ ...LEGACY, on: { ...LEGACY.on, initialize } }, MODERN)
    await using gateway = await startGateway(dual.setup({ gateway: { listBudgetMs: HOUR_MS } }))
    await using host = await legacyHttp.connect(gateway, AT_BRIDGE)
    expect(host.welcome).toEqual(toldOf(MODERN))
    expect(await host.call('tools/call', { name: 'x' })).toEqual(said('modern'))
  })
  test('B277 is what its modern side says where the legacy one breaks every connection, until that is over', async () => {
    await using dual = await startDual(LEGACY, MODERN)
    dual.legacy.intercept = (_, response) => {
      response.destroy()
      return true
    }
    await using gateway = await startGateway(dual.setup({ gateway: { listBudgetMs: HOUR_MS } }))
    await using first = await legacyHttp.connect(gateway, AT_BRIDGE)
    expect(first.welcome).toEqual(toldOf(MODERN))
    dual.legacy.intercept = () => false
    expect(await first.call('tools/call', { name: 'x' })).toEqual(said('legacy'))
    await using second = await legacyHttp.connect(gateway, AT_BRIDGE)
    expect(second.welcome).toEqual(toldOf(LEGACY))
  })
  test.each(['initialize', 'tools/list'])(
    'B277 is waited for once at most where its legacy side never answers %s',
    async (method) => {
      await using dual = await startDual({ ...LEGACY, on: { ...LEGACY.on, [method]: fake.never } }, MODERN)
      await using gateway = await startGateway(dual.setup({ gateway: { listBudgetMs: 10 } }))
      await using first = await legacyHttp.connect(gateway, AT_BRIDGE)
      expect(first.welcome).toEqual(toldOf(MODERN))
      const { running } = gateway
      const { configuration } = running
      await running.apply({ ...configuration, gateway: { ...configuration.gateway, listBudgetMs: HOUR_MS } }, new Set())
      await using second = await legacyHttp.connect(gateway, AT_BRIDGE)
      expect(second.welcome).toEqual(toldOf(MODERN))
    },
  )
  test.each(['modern http', 'legacy http'] as const)('B277 is not waited for at a %s server alone', async (kind) => {
    const refuses = (turn: Turn): void => turn.fail(-32601, 'Method not found')
    const spec = kind === 'modern http' ? { ...MODERN, on: { ...MODERN.on, initialize: refuses } } : LEGACY
    await using gateway = await startGateway({ servers: { a: fake.of({ kind, ...spec }) }, gateway: { listBudgetMs: HOUR_MS } })
    await using host = await legacyHttp.connect(gateway, AT_BRIDGE)
    expect(host.welcome).toEqual(toldOf(kind === 'modern http' ? MODERN : LEGACY))
  })
})

describe.each(['modern http', 'modern stdio'] as const)('a %s server that knows no initialize', (kind) => {
  test('B267 is asked once, which is remembered, and serves legacy hosts over its modern link', async () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
    await using a = await FakeDownstream.start(fake.of({ kind, ...SAYS.modern }))
    const setup = { servers: {}, fakes: new Map([['a', a]]), stateDir }
    for (const asked of [1, 0]) {
      await using gateway = await startGateway(setup)
      await using host = await legacyHttp.connect(gateway)
      expect(names(await host.call('tools/list'))).toEqual(['a__x'])
      expect(await host.call('tools/call', { name: 'a__x' })).toEqual(said('modern'))
      await using other = await legacyPipe.connect(gateway)
      expect(await other.call('tools/call', { name: 'a__x' })).toEqual(said('modern'))
      expect(a.all('initialize')).toHaveLength(asked)
    }
    rmSync(stateDir, { recursive: true })
  })
})

test('B231 a tool behind a pipe that fails with -32020 has run, and is not called again', async () => {
  const on: FakeSpec['on'] = { 'tools/call': (turn) => turn.fail(-32020, 'my own') }
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern stdio', tools: ['x'], on }) } })
  await using host = await legacyHttp.connect(gateway)
  await expect(host.call('tools/call', { name: 'a__x' })).rejects.toMatchObject({ message: 'my own' })
  expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
})
