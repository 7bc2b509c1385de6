import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { connectModernHttp } from '../support/fakes/http-hosts.ts'
import type { TestGateway } from '../support/gateway.ts'
import { listening } from '../support/listening.ts'

test('a host closes an idle connection before the gateway does, as the answer tells it', async () => {
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(200, { connection: 'keep-alive', 'keep-alive': 'timeout=2', 'content-type': 'application/json' })
    response.end('{"jsonrpc":"2.0","id":1,"result":{}}')
  })
  server.keepAliveTimeout = 60_000
  const connected = once(server, 'connection') as Promise<[Socket]>
  await using opened = await listening(server)
  // Cast: the only member that hosts over HTTP read.
  const url = new URL(opened.url)
  await using _host = await connectModernHttp({ url } as TestGateway)
  const [socket] = await connected
  await once(socket.resume(), 'end')
  expect(socket.readableEnded).toBe(true)
})
