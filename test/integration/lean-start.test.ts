/** What a start leaves out: modules of Node that take tens of ms of CPU and many MiB, and that a plain gateway over HTTP does not need. */
import { expect, test, vi } from 'vitest'
import { fake, FakeDownstream } from '../support/fake-downstream.ts'
import { gatewayHome, startGatewayProcess } from '../support/gateway-process.ts'
import { connectHost } from '../support/hosts.ts'

test('G6 a gateway that has answered a call over HTTP has loaded no client of Node, no TLS, no undici and few files', async () => {
  vi.stubEnv('NODE_OPTIONS', `--import=${new URL('../support/children/loaded-modules.mjs', import.meta.url).href}`)
  await using server = await FakeDownstream.start(fake.of({ kind: 'modern http', tools: ['idle'] }))
  await using home = await gatewayHome()
  const address = server.address as { readonly url: URL }
  const file = await home.write('gateway', { version: 1, servers: { server: { url: address.url.href } } })
  await using gateway = await startGatewayProcess(file)
  await using host = await connectHost('sdk2 modern http', { url: gateway.url })
  expect((await host.listTools()).map(({ name }) => name)).toEqual(['server__idle'])
  await host.callTool('server__idle', {})

  await gateway.stop()
  const [loaded = [], files = []] = ['loaded: ', 'files: '].map((title) =>
    gateway.said
      .find((said) => said.startsWith(title))
      ?.split(' ')
      .slice(1),
  )
  expect(loaded).toContain('net')
  expect(loaded.filter((name) => /^(http|https|tls|internal\/deps\/undici\/undici)$/.test(name))).toEqual([])
  expect(files).toContain('main-gateway.js')
  expect(files.length, files.join(' ')).toBeLessThan(16)
})
