/** How the package of a `server.json` is started and reached. */
import { expect, test } from 'vitest'
import type { ServerDraft } from '../../../src/host-files/found.ts'
import { draftOf } from '../../../src/install/server-json.ts'
import type { ServerJson } from '../../../src/install/server-json.ts'

type Transport = NonNullable<NonNullable<ServerJson['packages']>[number]['transport']>

const draftFor = (transport: Transport | undefined): Promise<ServerDraft> =>
  draftOf(
    { name: 'io.test/clock', packages: [{ registryType: 'npm', identifier: 'clock', ...(transport && { transport }) }] },
    ({ standard }) => Promise.resolve(standard),
    undefined,
  )

test.each<[says: string, Transport | undefined, url: string | undefined]>([
  ['nothing of a transport', undefined, undefined],
  ['stdio', { type: 'stdio' }, undefined],
  ['stdio and a URL', { type: 'stdio', url: 'http://127.0.0.1:1/mcp' }, undefined],
  ['HTTP at a URL', { type: 'streamable-http', url: 'http://127.0.0.1:1/mcp' }, 'http://127.0.0.1:1/mcp'],
  [
    'HTTP at a URL with a variable',
    { type: 'streamable-http', url: 'http://127.0.0.1:{port}/mcp', variables: { port: { default: '8' } } },
    'http://127.0.0.1:8/mcp',
  ],
])('a package that says %s is started, and reached as it says', async (_says, transport, url) => {
  expect(await draftFor(transport)).toEqual({ command: 'npx', args: ['-y', 'clock'], ...(url !== undefined && { url }) })
})

test.each(['streamable-http', 'sse'])('a package that speaks %s and names no URL is refused', async (type) => {
  await expect(draftFor({ type })).rejects.toThrow(`the package clock speaks ${type} at no URL`)
})
