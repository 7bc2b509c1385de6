/** The HTTP channels against a real server from npm, in its own process. */
import { expect, test } from 'vitest'
import { UndiciClient } from '../../../src/transport/http1/client/http-client.ts'
import { SseChannel } from '../../../src/transport/channel/sse-channel.ts'
import { StreamableChannel } from '../../../src/transport/channel/streamable-channel.ts'
import { startEverything } from '../../support/everything.ts'
import { notification, Recorder, request } from './scripted.ts'

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
    await using server = await startEverything(transport)
    const client = new UndiciClient()
    const events = new Recorder()
    const channel = new Channel(client, new URL(server.url))
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
