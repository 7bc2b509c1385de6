/** Servers that offer what their capabilities do not name, and servers one of whose lists fails (BRIDGING 3.22; B287). */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { FakeDownstream, fake } from '../support/fake-downstream.ts'
import { legacyHttp } from '../support/fake-host.ts'
import { startGateway } from '../support/gateway.ts'

const LISTS = ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list']

describe.each([{}, { tools: {} }, null])('a server that declares %j', (capabilities) => {
  test.each(['legacy http', 'legacy stdio'] as const)('B287 over %s is served with every list it does answer', async (kind) => {
    await using gateway = await startGateway({
      servers: {
        a: fake.of({
          kind,
          tools: ['t'],
          templates: ['x://{id}'],
          prompts: ['p'],
          capabilities: capabilities as Record<string, unknown>,
        }),
      },
    })
    await using host = await legacyHttp.connect(gateway)
    expect(await host.call('tools/list')).toMatchObject({ tools: [{ name: 'a__t' }] })
    expect(await host.call('resources/templates/list')).toMatchObject({ resourceTemplates: [{ uriTemplate: 'a+x://{id}' }] })
    expect(await host.call('prompts/list')).toMatchObject({ prompts: [{ name: 'a__p' }] })
  })
})

test('B287 a list that no capability names and that is not there is asked for once, also over restarts', async () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-test-'))
  await using a = await FakeDownstream.start({ kind: 'legacy http', tools: ['t'] })
  for (const method of LISTS.slice(1)) a.on(method, (turn) => turn.fail(-32601, 'Method not found'))
  try {
    const asked: number[][] = []
    for (let run = 0; run < 2; run++) {
      await using gateway = await startGateway({ servers: {}, fakes: new Map([['a', a]]), stateDir, early: true })
      await gateway.log.until(({ text }) => text === 'server is ready')
      expect(gateway.running.fleet.get('a')?.health$.value.state).toBe('healthy')
      asked.push(LISTS.map((method) => a.all(method).length))
      a.forget()
    }
    expect(asked).toEqual([
      [1, 1, 1, 1],
      [1, 0, 0, 0],
    ])
  } finally {
    rmSync(stateDir, { recursive: true, force: true })
  }
})

test('B287 a server that never answers what it does not declare is served all the same', async () => {
  await using gateway = await startGateway({
    servers: {
      a: fake.of({
        kind: 'legacy stdio',
        tools: ['t'],
        on: Object.fromEntries(LISTS.slice(1).map((method) => [method, fake.never])),
      }),
    },
  })
  expect(gateway.running.fleet.get('a')?.health$.value.state).toBe('healthy')
})

describe.each([404, 500, 503])('B287 one list that answers HTTP %i', (status) => {
  test.each(['legacy http', 'modern http'] as const)(
    'is missing, which ps tells, and the others of the %s server serve',
    async (kind) => {
      await using a = await FakeDownstream.start({ kind, tools: ['t'], prompts: ['p'] })
      let isBroken = true
      a.intercept = (_: IncomingMessage, response: ServerResponse, body: string) => {
        if (!isBroken || !body.includes('"prompts/list"')) return false
        response.writeHead(status).end()
        return true
      }
      await using gateway = await startGateway({ servers: {}, fakes: new Map([['a', a]]), early: true })
      await gateway.log.until(({ text }) => text === 'server is ready')
      const { health$, offers } = gateway.running.fleet.get('a')!
      expect(health$.value).toMatchObject({
        state: 'degraded',
        reason: expect.stringMatching(/^prompts\/list failed: /) as string,
      })
      await using host = await legacyHttp.connect(gateway)
      expect(await host.call('tools/list')).toMatchObject({ tools: [{ name: 'a__t' }] })
      expect(await host.call('tools/call', { name: 'a__t', arguments: {} })).toMatchObject({ content: [{ text: '{}' }] })
      isBroken = false
      await offers.read()
      expect(health$.value).toMatchObject({ state: 'healthy', reason: undefined })
      isBroken = true
      await offers.read()
      expect(health$.value.state).toBe('degraded')
    },
  )
})

test('B010 a list that asks for input is not an empty one: what was read before is served, and ps tells why', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'modern http', tools: ['t'], prompts: ['p'] }) } })
  const { health$, offers } = gateway.running.fleet.get('a')!
  gateway.fake('a').on('tools/list', () => ({ resultType: 'input_required', requestState: 's' }))
  await offers.read()
  expect(health$.value).toMatchObject({
    state: 'degraded',
    reason: expect.stringMatching(/^tools\/list failed: .*input_required/) as string,
  })
  await using host = await legacyHttp.connect(gateway)
  expect(await host.call('tools/list')).toMatchObject({ tools: [{ name: 'a__t' }] })
})
