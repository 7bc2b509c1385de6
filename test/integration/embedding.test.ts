/** The gateway inside another program. */
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { ConfigError, createGateway } from '../../src/index.ts'

const fake = (prefix: string) => ({
  command: process.execPath,
  args: [fileURLToPath(new URL('../support/children/fake-server.ts', import.meta.url))],
  prefix,
})
const listen = { http: { bind: '127.0.0.1:0' } }
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

test('serves a configuration object at its URLs, calls its tools, and ends', async () => {
  const gateway = await createGateway({ configuration: { listen, servers: { a: fake('a') } }, log: silent })
  expect(gateway.urls).toEqual([expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/)])
  expect(await gateway.call('a__add', { a: 1, b: 2 })).toEqual({
    isError: false,
    json: '{"content":[{"type":"text","text":"[1,2]"}],"isError":false}',
  })
  expect(gateway.tools().map(({ name }) => name)).toContain('a__echo')
  expect(gateway.servers()).toMatchObject([{ key: 'a', state: 'healthy' }])
  await expect(gateway.call('nope')).rejects.toMatchObject({ kind: 'refused' })
  await gateway.reload({ listen, servers: { a: fake('b') } })
  expect(await gateway.call('b__echo', { text: 'x' })).toMatchObject({ isError: false })
  await gateway.close()
  await expect(fetch(gateway.urls[0] ?? 'http://127.0.0.1:1/')).rejects.toThrow()
})

test('an object passes the same validation as a file, with all problems at once', async () => {
  const error: unknown = await createGateway({ configuration: { nameing: {}, servers: { a: { comand: 'x' } } } }).catch(
    (e: unknown) => e,
  )
  expect(error).toBeInstanceOf(ConfigError)
  expect((error as ConfigError).message.split('\n')).toEqual([
    'configuration: unknown key "nameing"; did you mean "naming"?',
    'configuration servers.a: unknown key "comand"; did you mean "command"?',
  ])
})

test('listen: false binds nothing', async () => {
  await using gateway = await createGateway({ configuration: { servers: {} }, listen: false, log: silent })
  expect(gateway.urls).toEqual([])
})
