/** Options of a server that all workers share: its process runs at the owner, and each option counts once (`listen.workers`). */
import { expect, test } from 'vitest'
import { ownerConfiguration } from '../../src/commands/serve/shared-servers.ts'
import { fake } from '../support/fake-downstream.ts'
import type { FakeSpec } from '../support/fake-downstream.ts'
import { modernHttp } from '../support/fake-host.ts'
import type { Host } from '../support/fake-host.ts'
import { startGateway } from '../support/gateway.ts'
import type { GatewaySetup } from '../support/gateway.ts'
import { curated } from '../support/curation.ts'

const start = (spec: FakeSpec, options: NonNullable<GatewaySetup['options']>[string] = {}, more: Partial<GatewaySetup> = {}) =>
  startGateway({
    servers: { a: fake.of({ kind: 'legacy stdio', tools: ['t'], ...spec }) },
    options: { a: { sharing: 'shared', ...options } },
    isWorker: true,
    ...more,
  })
const answer = (host: Host, args: Record<string, unknown> = {}): Promise<string> =>
  host.begin('tools/call', { name: 'a__t', arguments: args }).response.then((message) => JSON.stringify(message), String)

test('a tool may take longer than timeouts.total of its server', async () => {
  const on: FakeSpec['on'] = {
    'tools/call': () => new Promise((resolve) => setTimeout(() => resolve({ content: [{ type: 'text', text: 'late' }] }), 1_000)),
  }
  await using gateway = await start(
    { on },
    { timeouts: { totalMs: 300 }, ...(await curated({ tools: { t: { timeout: '1m' } } })) },
  )
  await using host = await modernHttp.connect(gateway)
  expect(await answer(host)).toContain('late')
})

test('limits.max_message is the size of a message of the server', async () => {
  const on: FakeSpec['on'] = {
    'tools/call': ({ params }) => ({
      content: [{ type: 'text', text: 'x'.repeat((params?.['arguments'] as { n: number } | undefined)?.n ?? 0) }],
    }),
  }
  await using gateway = await start({ on }, { limits: { maxMessageBytes: 10_000 } })
  await using host = await modernHttp.connect(gateway)
  expect(await answer(host, { n: 9_910 })).toContain('x'.repeat(9_910))
  expect(await answer(host, { n: 10_000 })).toContain('limits.max_message')
})

test('retries and the age of lists are the configured ones', async () => {
  await using gateway = await start({})
  const { configuration } = gateway.running
  const gatewayOptions = {
    ...configuration.gateway,
    retryPercent: 0,
    listBudgetMs: 1,
    listTtlCapMs: 2,
    legacyTtlMs: 3,
    freshMs: 4,
  }
  expect(ownerConfiguration({ ...configuration, gateway: gatewayOptions }, 'token').gateway).toMatchObject({
    retryPercent: 0,
    listBudgetMs: 1,
    listTtlCapMs: 2,
    legacyTtlMs: 3,
    freshMs: 4,
  })
})
