/**
 * The demo of the repository, `config/trunkline.yaml`, word for word but for its ports: real servers from npm, used by real
 * clients. A copy stands for the repository, since the demo finds its files beside itself.
 */
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'
import type { GatewayProcess } from '../support/gateway-process.ts'
import { connectHost } from '../support/hosts.ts'
import type { Host, HostKind } from '../support/hosts.ts'
import { isAlive } from '../support/pids.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))

/** One call for each server of the demo, and what its answer says. */
const calls = {
  everything: { tool: 'echo', args: { message: 'over stdio' }, says: /over stdio/ },
  files: { tool: 'read_text_file', args: { path: 'recipe.md' }, says: /\w/ },
  memory: { tool: 'read_graph', args: {}, says: /entities/ },
  thinking: {
    tool: 'sequentialthinking',
    args: { thought: 'All is well.', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 },
    says: /thoughtNumber/,
  },
  'everything-http': { tool: 'echo', args: { message: 'over HTTP' }, says: /over HTTP/ },
  'everything-sse': { tool: 'echo', args: { message: 'over HTTP+SSE' }, says: /over HTTP\+SSE/ },
} satisfies Record<string, { tool: string; args: Record<string, unknown>; says: RegExp }>
const keys = Object.keys(calls) as (keyof typeof calls)[]

/** Makes the folder; returns the path of the configuration in it. */
const copyDemo = async (folder: string): Promise<string> => {
  await cp(join(repository, 'config/loopback.mjs'), join(folder, 'config/loopback.mjs'))
  await cp(join(repository, 'examples/files'), join(folder, 'examples/files'), { recursive: true })
  await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'))
  let text = await readFile(join(repository, 'config/trunkline.yaml'), 'utf8')
  for (const port of ['7431', '7432']) text = text.replaceAll(port, String(await freePort()))
  const file = join(folder, 'config/trunkline.yaml')
  await writeFile(file, text)
  return file
}

/** The processes that the gateway has started, as its journal says. */
const childrenOf = async (state: string): Promise<number[]> => {
  const journals = (await readdir(state, { recursive: true })).filter((path) => basename(path).startsWith('pids-'))
  const lines = await Promise.all(journals.map(async (path) => (await readFile(join(state, path), 'utf8')).split('\n')))
  return lines.flat().flatMap((line) => (line.startsWith('+') ? [Number(line.slice(1).split(' ')[0])] : []))
}

describe('the demo', () => {
  let folder: string
  let state: string
  let gateway: GatewayProcess
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'demo-'))
    state = join(folder, 'state')
    gateway = await startGatewayProcess(await copyDemo(folder), '--state', state)
  })
  afterAll(async () => {
    await gateway.stop()
    await rm(folder, { recursive: true, maxRetries: 5 })
  })

  test('every server becomes healthy, and nothing is complained about', async () => {
    const ready = (said: readonly string[]) => said.filter((line) => line.includes('"msg":"server is ready"'))
    await gateway.saw((said) => ready(said).length === keys.length && said.some((line) => line.startsWith('  MCP  ')))
    expect(
      ready(gateway.said)
        .map((line) => (JSON.parse(line) as { server: string }).server)
        .toSorted(),
    ).toEqual(keys.toSorted())
    expect(gateway.said.filter((line) => /"level":[456]0/.test(line))).toEqual([])
    for (const key of keys) expect(gateway.said).toContainEqual(expect.stringMatching(new RegExp(`^  [●○] ${key} `)))
  })

  describe.each(['sdk1 http', 'sdk1 sse', 'sdk2 modern http'] satisfies HostKind[])('used by %s', (kind) => {
    let host: Host
    beforeAll(async () => {
      host = await connectHost(kind, { url: kind === 'sdk1 sse' ? gateway.sseUrl : gateway.url })
    })
    afterAll(() => host.close())

    test.each(keys)('lists and calls a tool of %s', async (key) => {
      const { tool, args, says } = calls[key]
      expect(await host.listTools()).toContainEqual(expect.objectContaining({ name: `${key}__${tool}` }))
      const { content, isError = false } = await host.callTool(`${key}__${tool}`, args)
      expect({ isError, text: content[0]?.text }).toEqual({ isError: false, text: expect.stringMatching(says) })
    })

    test.each(['everything', 'everything-http', 'everything-sse'])('reads a resource and gets a prompt of %s', async (key) => {
      const listed = (await host.listResources()).find(({ uri }) => uri.startsWith(`${key}+`))
      const [content] = await host.readResource(listed?.uri ?? '')
      expect(content).toMatchObject({ uri: listed?.uri, text: expect.stringMatching(/\w/) })
      expect(await host.listPrompts()).toContainEqual(expect.objectContaining({ name: `${key}__simple-prompt` }))
      expect(await host.getPrompt(`${key}__simple-prompt`)).toMatchObject([{ role: 'user' }])
    })
  })

  test('F-22 a stop ends with 0 and leaves no child', async () => {
    const children = await childrenOf(state)
    expect(children.filter(isAlive).length).toBeGreaterThanOrEqual(keys.length)
    expect(await gateway.stop()).toBe(0)
    expect(children.filter(isAlive)).toEqual([])
  })
})
