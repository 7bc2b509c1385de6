/** One server of a registry: how it is asked for, and which answers are refused. */
import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { InstallError } from '../../../src/install/inputs.ts'
import { fetchServer } from '../../../src/install/registry.ts'
import type { ServerJson } from '../../../src/install/server-json.ts'
import { NO_PROXIES } from '../../../src/transport/http1/client/proxy-rules.ts'
import { freePort } from '../../support/free-port.ts'
import { listening } from '../../support/listening.ts'

const SERVER = { name: 'io.example/server', description: 'x' }

/** A registry that answers so, with what it was asked. */
const registryThat = async (status: number, body: string) => {
  const asked: (string | undefined)[] = []
  const server = createServer((request, response) => {
    asked.push(request.url)
    response.writeHead(status, { 'content-type': 'application/json' }).end(body)
  })
  const opened = await listening(server)
  onTestFinished(() => opened[Symbol.asyncDispose]())
  const { url } = opened
  return { asked, url, fetch: (name: string) => fetchFrom(url, name) }
}
const fetchFrom = (url: string, name: string): Promise<ServerJson> =>
  fetchServer(name, { url, timeoutMs: 5_000, maxAnswerBytes: 1_024 }, NO_PROXIES)

test.each([
  ['in an envelope', { server: SERVER, _meta: {} }],
  ['as it is', SERVER],
])('a server %s is read, in its latest version or in the one that is named', async (_, answer) => {
  const { asked, fetch } = await registryThat(200, JSON.stringify(answer))
  expect([await fetch('io.example/server'), await fetch('io.example/server@1.0+a')]).toEqual([SERVER, SERVER])
  expect(asked).toEqual([
    '/v0.1/servers/io.example%2Fserver/versions/latest',
    '/v0.1/servers/io.example%2Fserver/versions/1.0%2Ba',
  ])
})

test.each([
  [404, '', (url: string) => `the registry ${url} has no server "io.example/server"; check the name`],
  [500, '', (url: string) => `the registry ${url} answered HTTP 500; try again later`],
  [200, '<html>', (url: string) => `the answer of ${url} is not JSON`],
  [200, '{"name":"other/server"}', (url: string) => `the answer of ${url} is about "other/server", not "io.example/server"`],
])('the answer %i %j is refused with its reason', async (status, body, message) => {
  const { url, fetch } = await registryThat(status, body)
  await expect(fetch('io.example/server')).rejects.toThrow(new InstallError(message(url)))
})

test('a registry that cannot be reached is told with what can be changed', async () => {
  const fetched = fetchFrom(`http://127.0.0.1:${await freePort()}`, 'io.example/server')
  await expect(fetched).rejects.toThrow(/^the registry cannot be read \(.+\); check registry\.url, .+, or add the server by URL/)
  await expect(fetched).rejects.toBeInstanceOf(InstallError)
})
