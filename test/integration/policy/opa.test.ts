/** A gateway that asks Open Policy Agent: its answers are those of the exchange that `npm run opa` kept of the real program. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { expect, test } from 'vitest'
import { play, SEEN, withoutTime } from '../../peers/opa/scene.ts'
import type { Exchanged } from '../../peers/opa/scene.ts'

const { exchanged } = JSON.parse(readFileSync(new URL('../../peers/opa/exchange.json', import.meta.url), 'utf8')) as {
  exchanged: readonly Exchanged[]
}

test('gets the decisions, the reasons and the lists of examples/policy', async () => {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const input = withoutTime(Buffer.concat(chunks).toString())
      const known = exchanged.find((one) => isDeepStrictEqual(one.input, input))
      response.writeHead(known === undefined ? 500 : 200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(known?.answer ?? {}))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const { port } = server.address() as AddressInfo
    expect(await play(new URL(`http://127.0.0.1:${port}/v1/data/trunkline`))).toEqual(SEEN)
  } finally {
    server.closeAllConnections()
    server.close()
  }
})
