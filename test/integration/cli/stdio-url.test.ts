/** `trunkline stdio --url`: a bridge to one server that no configuration names. */
import { readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { commandLine, INITIALIZE, message } from '../../support/cli.ts'
import { listening } from '../../support/listening.ts'

test('stdio --url serves the server at a URL as it is, with its headers, and writes no state', async () => {
  const seen: IncomingHttpHeaders[] = []
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      seen.push(request.headers)
      const { id, method } = (body === '' ? {} : JSON.parse(body)) as { id?: unknown; method?: string }
      if (id === undefined) return response.writeHead(request.method === 'POST' ? 202 : 405).end()
      const results: Readonly<Record<string, string>> = {
        initialize: '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"far","version":"7"}}',
        'tools/list': '{"tools":[{"name":"My Tool","inputSchema":{"type":"object"}}]}',
      }
      const result = results[method ?? '']
      const end = result === undefined ? '"error":{"code":-32601,"message":"Method not found"}' : `"result":${result}`
      response.setHeader('Content-Type', 'application/json').end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},${end}}`)
    })
  })
  await using opened = await listening(server)
  await using cli = await commandLine({}, { SECRET: 'from-the-environment' })
  const talk = INITIALIZE + message(undefined, 'notifications/initialized') + message(1, 'tools/list')
  const { code, stdout, stderr } = await cli.run(['stdio', '--url', `${opened.url}/mcp`, '-H', 'X-Key: ${SECRET}'], talk)
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('from-the-environment') as string })
  const answers = stdout.trimEnd().split('\n')
  expect(answers.find((line) => line.includes('"id":0'))).toContain('"name":"far"')
  expect(answers.find((line) => line.includes('"id":1'))).toContain('"name":"My Tool"')
  expect(seen.every((headers) => headers['x-key'] === 'from-the-environment')).toBe(true)
  // Compiled code of the program is all that is kept.
  expect(readdirSync(cli.path('state/trunkline')).filter((name) => name !== 'compile-cache')).toEqual([])
})

test('a URL that is none, and options that need a configuration, are refused', async () => {
  await using cli = await commandLine()
  expect(await cli.here('stdio', '--url', 'nonsense')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('--url takes a URL with http:// or https://') as string,
  })
  expect(await cli.here('stdio', '--url', 'http://127.0.0.1:9', '--toolset', 'x')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('--url takes neither --server nor --toolset') as string,
  })
  expect((await cli.here('stdio', '--url', 'http://127.0.0.1:9', '-H', 'none')).stderr).toContain('--header takes "Name: value"')
  expect((await cli.here('stdio', '-H', 'A: b')).stderr).toContain('--header belongs to --url')
})
