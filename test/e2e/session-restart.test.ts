/** What a legacy host has set, when the process of the gateway ends and another one is started (B276). */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { commandLine } from '../support/cli.ts'
import type { Serving } from '../support/cli.ts'
import { fake, FakeDownstream } from '../support/fake-downstream.ts'
import { connectHttp } from '../support/fakes/http-hosts.ts'
import { freePort } from '../support/free-port.ts'
import type { TestGateway } from '../support/gateway.ts'

/** What is written down of sessions. */
const written = async (folder: string): Promise<string> => {
  const names = await readdir(folder, { recursive: true })
  const [name = ''] = names.filter((each) => each.endsWith('session-settings.json'))
  return readFile(join(folder, name), 'utf8')
}
const LEVELS = ['info', 'error', 'alert']

test.each(['SIGTERM', 'SIGKILL'] as const)(
  'B276 B147 a host over Streamable HTTP keeps its level and its resources when the gateway ends by %s and is started again',
  async (signal) => {
    await using server = await FakeDownstream.start(
      fake.of({
        kind: 'legacy http',
        tools: ['x'],
        resources: ['x:1'],
        on: {
          'tools/call': (turn) => {
            for (const level of LEVELS) turn.notify('notifications/message', { level, data: level })
            return { content: [] }
          },
        },
      }),
    )
    if (!('url' in server.address)) throw new Error('no URL')
    await using cli = await commandLine({ 'trunkline.yaml': `servers:\n  a: { url: "${server.address.url.href}" }\n` })
    // The same for both: a host knows one URL.
    const address = `127.0.0.1:${await freePort()}`
    const start = async (): Promise<Serving> => {
      const up = cli.spawn(['up', '--listen', address])
      await up.said(/^trunkline is ready: /)
      await up.said(/server is ready/)
      return up
    }
    const first = await start()
    await using host = await connectHttp({ url: new URL(`http://${address}/mcp`) } as TestGateway)
    const call = async (): Promise<unknown[]> => {
      const pending = host.begin('tools/call', { name: 'a__x' })
      await pending.response
      return pending.messages.entries.map(({ params }) => params?.['level'])
    }
    const { resources } = await host.call('resources/list')
    const [{ uri } = { uri: '' }] = resources as { uri: string }[]
    await host.call('resources/subscribe', { uri })
    await host.call('logging/setLevel', { level: 'error' })
    expect(await call()).toEqual(['error', 'alert'])
    // A process that is killed writes nothing more.
    await vi.waitFor(async () => expect(await written(cli.path('state'))).toContain('"level":"error"'))
    first.signal(signal)
    await first.ended
    server.forget()
    await using _next = await start()
    await host.listen()
    const isUpdate = ({ method }: { method?: string }): boolean => method === 'notifications/resources/updated'
    expect((await host.heard.until(isUpdate)).params).toEqual({ uri })
    expect(await call()).toEqual(['error', 'alert'])
    expect(server.all('logging/setLevel').map(({ params }) => params['level'])).toEqual(['error'])
  },
)
