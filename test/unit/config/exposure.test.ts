/** Where a gateway without authentication may listen, and that authentication lifts it (RELIABILITY T-03). */
import { expect, test } from 'vitest'
import { hashLine } from '../../../src/auth/inbound/static-tokens.ts'
import { workspace } from './workspace.ts'

const LOOPBACK = ['127.0.0.1:1', '127.8.9.1:1', '[::1]:1', '[::ffff:127.0.0.1]:1', 'localhost:1']
const NETWORK = ['0.0.0.0:1', '[::]:1', '192.168.1.2:1', '10.0.0.1:1', '[fe80::1]:1', 'example.com:1', '127.0.0.1.example.com:1']

test.each([
  ...LOOPBACK.flatMap((address) => [false, true].map((isAllowed) => ({ address, isAllowed, starts: true }))),
  ...NETWORK.flatMap((address) => [false, true].map((isAllowed) => ({ address, isAllowed, starts: isAllowed }))),
])('T-03 $address, allowed beyond this machine: $isAllowed: starts $starts', async ({ address, isAllowed, starts }) => {
  await using files = await workspace({
    'trunkline.yaml': `listen: { http: { bind: ["127.0.0.1:2", "${address}"] } }\nservers: { a: { command: x } }`,
  })
  const overrides = { allowUnauthenticatedNetwork: isAllowed }
  const byOption = { ...overrides, listen: address }
  for (const context of [{ overrides }, { overrides: byOption }]) {
    if (starts) await expect(files.load(undefined, context)).resolves.toHaveProperty('host')
    else
      expect((await files.errors(undefined, context)).join('\n')).toMatch(
        /can be reached from the network, and hosts are not authenticated.*--allow-unauthenticated-network/,
      )
  }
})

const TOKENS = `tokens: [{ id: a, hash: "${hashLine('a')}" }]`
const OAUTH = 'oauth: { issuer: https://idp.test, audience: https://gw.test/mcp }'
test.each([
  ['nothing', '', false],
  ['an empty section', 'auth: {}', false],
  ['mode none', 'auth: { mode: none }', false],
  ['mode none, with tokens', `auth: { mode: none, ${TOKENS} }`, false],
  ['tokens', `auth: { ${TOKENS} }`, true],
  ['no tokens, though asked for', 'auth: { tokens: [] }', true],
  ['an authorization server', `auth: { ${OAUTH} }`, true],
  ['both', `auth: { mode: any, ${TOKENS}, ${OAUTH} }`, true],
])('T-03 beyond this machine with auth saying %s', async (_what, auth, starts) => {
  await using files = await workspace({ 'trunkline.yaml': `listen: { http: { bind: 0.0.0.0:1 } }\n${auth}\n` })
  if (starts) expect((await files.load()).host.auth).toBeDefined()
  else expect((await files.errors()).join('\n')).toContain('can be reached from the network, and hosts are not authenticated')
})
