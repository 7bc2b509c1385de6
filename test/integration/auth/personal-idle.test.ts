/** When the connection of one principal to a server counts as unused (`lifecycle.idle_stop`). */
import { expect, test } from 'vitest'
import { PER_USER } from '../../support/credentials.ts'
import { fake } from '../../support/fake-downstream.ts'
import { legacyHttp } from '../../support/fake-host.ts'
import { startGateway } from '../../support/gateway.ts'

test('3.0 the link of a session lasts as long as the session, also where each principal has its own connection', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ kind: 'legacy http', tools: ['echo'] }) },
    options: { a: { credential: PER_USER } },
  })
  await using host = await legacyHttp.connect(gateway)
  const echo = () => host.call('tools/call', { name: 'a__echo', arguments: {} })
  await echo()
  const links = gateway.fake('a').all('initialize').length
  gateway.running.fleet.get('a')?.personal?.sweep(Infinity)
  await echo()
  expect(gateway.fake('a').all('initialize')).toHaveLength(links)
})
