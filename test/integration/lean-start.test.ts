/** What a start leaves out: modules of Node that take tens of ms of CPU and many MiB, and that a plain gateway over HTTP does not need. */
import { expect, test, vi } from 'vitest'
import { fake, FakeDownstream } from '../support/fake-downstream.ts'
import { gatewayHome, startGatewayProcess } from '../support/gateway-process.ts'

const CALL = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'server__idle',
    arguments: {},
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
})
const HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': 'tools/call',
  'mcp-name': 'server__idle',
}

test('G6 a gateway that has answered a call over HTTP has loaded no client of Node, no TLS and no undici', async () => {
  vi.stubEnv('NODE_OPTIONS', `--import=${new URL('../support/children/loaded-modules.mjs', import.meta.url).href}`)
  await using server = await FakeDownstream.start(fake.of({ kind: 'modern http', tools: ['idle'] }))
  await using home = await gatewayHome()
  const address = server.address as { readonly url: URL }
  const file = await home.write('gateway', { version: 1, servers: { server: { url: address.url.href } } })
  await using gateway = await startGatewayProcess(file)
  const { status, answer } = await post(gateway.url)
  expect({ status, answer: answer.includes('"result"') }).toEqual({ status: 200, answer: true })

  await gateway.stop()
  const line = gateway.said.find((said) => said.startsWith('loaded: '))
  const loaded = line?.split(' ') ?? []
  expect(loaded).toContain('net')
  expect(loaded.filter((name) => /^(http|https|tls|internal\/deps\/undici\/undici)$/.test(name))).toEqual([])
})

/** The plainest of requests. */
const post = async (url: string): Promise<{ status: number; answer: string }> => {
  const response = await fetch(url, { method: 'POST', headers: HEADERS, body: CALL })
  return { status: response.status, answer: await response.text() }
}
