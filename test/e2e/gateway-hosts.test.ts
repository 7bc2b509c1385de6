/** Several hosts of different eras at once on the same URL, and one server under its own names. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gatewayHome, startGatewayProcess, stdioGateway } from '../support/gateway-process.ts'
import type { GatewayProcess } from '../support/gateway-process.ts'
import { connectHost } from '../support/hosts.ts'
import type { Host, HostKind } from '../support/hosts.ts'
import { toolOffers } from '../support/offers/tools.ts'
import { startDownstream } from './gateway-cells.ts'
import type { DownstreamKey } from './gateway-cells.ts'
import { matrix } from './matrix.ts'

const opened = new AsyncDisposableStack()
afterAll(() => opened.disposeAsync())

/** A configuration file with these servers, all of which run or can be started. */
const configure = async (keys: readonly DownstreamKey[], more: Record<string, unknown> = {}): Promise<string> => {
  const home = opened.use(await gatewayHome())
  const started = await Promise.all(keys.map(async (key) => [key, opened.use(await startDownstream(key)).config] as const))
  return home.write('trunkline', { servers: Object.fromEntries(started), ...more })
}

describe('a legacy and a modern host at once on one URL', () => {
  const keys = ['stdio-legacy', 'http-modern'] as const
  let gateway: GatewayProcess
  let hosts: Host[]
  beforeAll(async () => {
    gateway = opened.use(await startGatewayProcess(await configure(keys)))
    hosts = await Promise.all([
      connectHost('sdk1 http', { url: gateway.url }),
      connectHost('sdk2 modern http', { url: gateway.url }),
      connectHost('sdk1 sse', { url: gateway.sseUrl }),
    ])
    for (const host of hosts) opened.use(host)
  })

  test('B034 each settles on its own era', () => {
    expect(hosts.map(({ era }) => era)).toEqual(['legacy', 'modern', 'legacy'])
  })

  test('each lists the tools of every server', async () => {
    const named = keys.flatMap((key) => toolOffers.map(({ name }) => `${key}__${name}`))
    for (const tools of await Promise.all(hosts.map((host) => host.listTools())))
      expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(named))
  })

  test.each(keys)('each gets its own answers and progress when all call %s at the same moment', async (key) => {
    const calls = hosts.map(async (host, at) => {
      const [text, own] = [`host ${at}`, crypto.randomUUID()]
      const { promise: complete, resolve } = Promise.withResolvers<void>()
      const onProgress = ({ progress }: { progress: number }) => (progress === 100 ? resolve() : undefined)
      const reported = host.callTool(`${key}__report_until_seen`, { key: own }, { onProgress })
      const echoed = await host.callTool(`${key}__echo`, { text })
      await complete
      await host.callTool(`${key}__mark_seen`, { key: own })
      expect(echoed.content).toMatchObject([{ text }])
      expect((await reported).content).toMatchObject([{ text: 'Progress was seen.' }])
    })
    await Promise.all(calls)
  })

  test('what one host cancels goes on for the others', async () => {
    const [legacy, modern] = hosts as [Host, Host]
    const [cancelled, kept] = [crypto.randomUUID(), crypto.randomUUID()]
    const cancel = new AbortController()
    const dropped = expect(modern.callTool('http-modern__hold', { key: cancelled }, { signal: cancel.signal })).rejects.toThrow()
    const reported = legacy.callTool('http-modern__report_until_seen', { key: kept })
    await legacy.callTool('http-modern__await_call', { key: cancelled, reached: 'started' })
    cancel.abort(new Error('enough'))
    await dropped
    await legacy.callTool('http-modern__await_call', { key: cancelled, reached: 'cancelled' })
    await modern.callTool('http-modern__mark_seen', { key: kept })
    expect((await reported).content).toMatchObject([{ text: 'Progress was seen.' }])
  })

  test('all hear of one change', async () => {
    const hearing = await Promise.all(hosts.map(hearsOfExtraTool))
    await hosts[0]?.callTool('http-modern__test_trigger_tool_change')
    await Promise.all(hearing.map((heard) => heard()))
    for (const tools of await Promise.all(hosts.map((host) => host.listTools())))
      expect(tools).toContainEqual(expect.objectContaining({ name: 'http-modern__extra_tool' }))
  })
})

/** Listens from now on; what it returns resolves once the host was told of a list in which it then finds the extra tool. */
const hearsOfExtraTool = async (host: Host): Promise<() => Promise<void>> => {
  let heard = Promise.withResolvers<void>()
  await host.onToolsChanged(() => heard.resolve())
  return async () => {
    do {
      await heard.promise
      heard = Promise.withResolvers()
    } while (!(await host.listTools()).some(({ name }) => name === 'http-modern__extra_tool'))
  }
}

describe('naming: { prefix: never } with one server keeps original names and URIs', () => {
  const cells: { host: HostKind; downstream: DownstreamKey }[] = [
    { host: 'sdk1 http', downstream: 'stdio-modern' },
    { host: 'sdk2 modern http', downstream: 'http-legacy' },
    { host: 'sdk1 sse', downstream: 'sse' },
    { host: 'sdk2 auto stdio', downstream: 'stdio-legacy' },
  ]
  describe.each(cells)('$host and $downstream', ({ host, downstream }) => {
    let file: string
    let gateway: GatewayProcess | undefined
    beforeAll(async () => {
      file = await configure([downstream], { naming: { prefix: 'never' } })
      if (!host.endsWith('stdio')) gateway = opened.use(await startGatewayProcess(file))
    })

    matrix(host, () =>
      gateway === undefined ? stdioGateway(file) : { url: host.endsWith('sse') ? gateway.sseUrl : gateway.url },
    )
  })
})
