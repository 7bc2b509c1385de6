/** F-29: connections without credentials beyond `ulimit -n` cost those who opened them, and no one else. */
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { Agent } from 'node:http'
import { FakeDownstream } from '../support/fake-downstream.ts'
import { send } from '../support/fakes/raw-http.ts'
import { gatewayHome, startGatewayAfter } from '../support/gateway-process.ts'
import { hashLine } from '../../src/auth/inbound/static-tokens.ts'

const TOKEN = `tlk_${Buffer.alloc(32, 'a').toString('base64url')}`

/** What the connections do: nothing, begin a request, or send one without a token and keep the connection. */
const OPENINGS = ['', 'POST /mcp HTTP/1.1\r\nHost: loc', 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n']

const flood = (port: number, count: number): Promise<Socket[]> =>
  Promise.all(
    Array.from({ length: count }, async (_, at) => {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => undefined)
      socket.resume()
      await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve))
      socket.write(OPENINGS[at % OPENINGS.length] ?? '')
      return socket
    }),
  )

const callOf = (tool: string, nonce: number): string =>
  JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: {
      name: tool,
      arguments: { nonce },
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {},
        'io.modelcontextprotocol/clientInfo': { name: 'a', version: '1' },
      },
    },
  })

const call = async (url: string, tool: string, nonce: number, agent: Agent | undefined): Promise<string> => {
  const reply = await send(new URL(url), {
    headers: {
      authorization: `Bearer ${TOKEN}`,
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': tool,
    },
    body: callOf(tool, nonce),
    ...(agent !== undefined && { agent }),
  })
  const body = await reply.body
  return [body, ...reply.events.entries.map(({ data }) => data)].join('\n')
}

describe.runIf(process.platform === 'linux')('F-29 with more idle connections than descriptors', () => {
  test.each([64, 128, 256, 1_024])(
    '(%i) known hosts, new hosts and new processes are served; then it ends with 0',
    async (limit) => {
      await using home = await gatewayHome()
      const slow = Promise.withResolvers<void>()
      await using a = await FakeDownstream.start({
        kind: 'modern http',
        tools: ['t', 'slow'],
        on: {
          'tools/call': async ({ params }) => {
            if (params['name'] === 'slow') await slow.promise
            return { content: [{ type: 'text', text: JSON.stringify(params['arguments']) }] }
          },
        },
      })
      await using b = await FakeDownstream.start({ kind: 'legacy stdio', tools: ['t'] })
      const file = await home.write('config', {
        auth: { tokens: [{ id: 'a', hash: hashLine(TOKEN) }] },
        servers: {
          a: { url: 'url' in a.address ? a.address.url.href : '' },
          b: b.address,
        },
      })
      await using gateway = await startGatewayAfter(`ulimit -n ${limit}`, file)
      using agent = Object.assign(new Agent({ keepAlive: true }), { [Symbol.dispose]: () => agent.destroy() })
      expect(await call(gateway.url, 'a__t', 1, agent)).toContain('\\"nonce\\":1')
      expect(await call(gateway.url, 'b__t', 2, agent)).toContain('\\"nonce\\":2')
      // Under way throughout, on a connection of its own.
      const under = call(gateway.url, 'a__slow', 3, undefined)
      await a.until('tools/call', ({ params }) => params['name'] === 'slow')
      const sockets = await flood(Number(new URL(gateway.url).port), limit + 60)
      await gateway.saw((said) => said.some((line) => line.includes('listen.limits.connections reached')))
      expect(await call(gateway.url, 'a__t', 4, agent)).toContain('\\"nonce\\":4')
      expect(await call(gateway.url, 'a__t', 5, undefined)).toContain('\\"nonce\\":5')
      for (const { pid } of b.connections) if (pid !== undefined) process.kill(pid, 'SIGKILL')
      // The gauges are read every second: twice while the connections are held.
      const untilMs = performance.now() + 2_500
      for (let nonce = 10; performance.now() < untilMs; nonce++)
        expect(await call(gateway.url, 'a__t', nonce, undefined)).toContain(`\\"nonce\\":${nonce}`)
      let answer = ''
      while (!answer.includes('\\"nonce\\":6')) answer = await call(gateway.url, 'b__t', 6, agent)
      slow.resolve()
      expect(await under).toContain('\\"nonce\\":3')
      for (const socket of sockets) socket.destroy()
      expect(gateway.said.join('\n')).toContain('few file descriptors (ulimit -n)')
      expect(await gateway.stop()).toBe(0)
    },
  )
})
