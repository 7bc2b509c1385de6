/** A gateway that asks Open Policy Agent: its answers are those of the exchange that `npm run opa` kept of the real program. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { isDeepStrictEqual } from 'node:util'
import { expect, test } from 'vitest'
import { play, SEEN, withoutTime } from '../../peers/opa/scene.ts'
import type { Exchanged } from '../../peers/opa/scene.ts'
import { listening } from '../../support/listening.ts'

const { exchanged } = JSON.parse(readFileSync(new URL('../../peers/opa/exchange.json', import.meta.url), 'utf8')) as {
  exchanged: readonly Exchanged[]
}

test('gets the decisions, the reasons and the lists of examples/policy', async () => {
  const server = createServer(async (request, response) => {
    const input = withoutTime(await text(request))
    const known = exchanged.find((one) => isDeepStrictEqual(one.input, input))
    response.writeHead(known === undefined ? 500 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(known?.answer ?? {}))
  })
  await using opened = await listening(server)
  expect(await play(new URL('/v1/data/trunkline', opened.url))).toEqual(SEEN)
})
