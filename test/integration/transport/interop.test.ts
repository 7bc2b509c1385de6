/** The HTTP channels against a real server from npm, in its own process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { UndiciClient } from '../../../src/transport/http-client.ts'
import { SseChannel } from '../../../src/transport/sse-channel.ts'
import { StreamableChannel } from '../../../src/transport/streamable-channel.ts'
import { notification, Recorder, request } from './scripted.ts'

const SERVER = fileURLToPath(
  new URL('../../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url),
)

const freePort = async (): Promise<number> => {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}

const everything = async (transport: 'streamableHttp' | 'sse') => {
  const port = await freePort()
  const child = spawn(process.execPath, [SERVER, transport], { env: { PORT: String(port) }, stdio: ['ignore', 'ignore', 'pipe'] })
  const exited = once(child, 'exit')
  for await (const line of createInterface(child.stderr)) if (line.includes(String(port))) break
  child.stderr.resume()
  return {
    url: new URL(`http://127.0.0.1:${port}/${transport === 'sse' ? 'sse' : 'mcp'}`),
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await exited
    },
  }
}

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}

test.each([
  ['streamableHttp', StreamableChannel],
  ['sse', SseChannel],
] as const)(
  'B224 initialize, the notification and tools/list work with server-everything over %s',
  async (transport, Channel) => {
    await using server = await everything(transport)
    const client = new UndiciClient()
    const events = new Recorder()
    const channel = new Channel(client, server.url)
    await channel.open(events)
    channel.send({ id: 0, parts: [Buffer.from(JSON.stringify(INITIALIZE))] })
    expect(await events.end(0)).toMatchObject({ result: { protocolVersion: '2025-11-25' } })
    channel.setRevision('2025-11-25')
    channel.send(notification('notifications/initialized'))
    if (channel instanceof StreamableChannel) expect(await channel.openStream()).toBe(true)
    channel.send(request(1, 'tools/list'))
    expect(await events.end(1)).toMatchObject({
      result: { tools: expect.arrayContaining([expect.objectContaining({ name: 'echo' })]) },
    })
    await channel.close()
    expect(await channel.closed).toBeUndefined()
    expect(events.losses).toEqual([])
    expect(events.refused).toEqual([])
    await client.close()
  },
)
