/** What workers get of the configuration (`listen.workers`). */
import { readdirSync, readFileSync } from 'node:fs'
import { deserialize, serialize } from 'node:v8'
import { expect, test } from 'vitest'
import { receivedConfiguration, sentConfiguration } from '../../../src/commands/serve/sent-configuration.ts'
import type { SentConfiguration } from '../../../src/commands/serve/sent-configuration.ts'
import { ConfigError } from '../../../src/config/syntax/problems.ts'
import { workspace, yaml } from '../config/workspace.ts'

const DOCS = new URL('../../../docs/', import.meta.url)

/** The way of the channel between a process and its parent. */
const overTheChannel = (sent: SentConfiguration): SentConfiguration => deserialize(serialize(sent)) as SentConfiguration

test('F-25 a configuration reaches a worker as it was read', async () => {
  await using files = await yaml(`servers:
  a: { url: "https://127.0.0.1:1/mcp?x=%20y", headers: { X-A: b }, limits: { concurrency: 2 } }
  b: { command: y, url: "http://127.0.0.1:2/", lifecycle: { sharing: shared } }
  c: { command: z, args: [-v], env: { A: "1" }, timeouts: { idle: 1s } }
`)
  const configuration = await files.load()
  expect(receivedConfiguration(overTheChannel(sentConfiguration(configuration)))).toStrictEqual(configuration)
})

test('F-25 so does every configuration of the documentation', async () => {
  const texts = readdirSync(DOCS)
    .filter((name) => name.endsWith('.md'))
    .flatMap((name) => [...readFileSync(new URL(name, DOCS), 'utf8').matchAll(/^```ya?ml\n([^]*?)^```$/gm)])
    .map(([, text = '']) => text)
  let loaded = 0
  for (const text of texts) {
    await using files = await workspace({ 'trunkline.yaml': text, '.mcp.json': '{ "mcpServers": {} }', '.env': '' })
    const configuration = await files.load().catch((error: unknown) => {
      // A part of a file, or one that needs others.
      if (error instanceof ConfigError) return undefined
      throw error
    })
    if (configuration === undefined) continue
    loaded++
    expect(receivedConfiguration(overTheChannel(sentConfiguration(configuration))), text).toStrictEqual(configuration)
  }
  expect(loaded).toBeGreaterThan(10)
})
