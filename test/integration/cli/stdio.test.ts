/** `trunkline stdio`: attached to a running process or by itself, the host sees the same bytes. */
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { commandLine, INITIALIZE, message } from '../../support/cli.ts'
import type { Cli, Serving } from '../../support/cli.ts'

const MODERN = {
  _meta: {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  },
}
const ECHO = { name: 'a__echo', arguments: { text: '1.0 é 💡', big: 12345678901234567890n.toString() } }

/** Sends one message at a time, each when the one before is answered, and returns the answers. */
const converse = async (serving: Serving, messages: readonly string[]): Promise<string[]> => {
  const lines = createInterface({ input: serving.child.stdout! })[Symbol.asyncIterator]()
  const said: string[] = []
  for (const text of messages) {
    serving.child.stdin!.write(text)
    if (!text.includes('"id"')) continue
    let line: string
    do line = (await lines.next()).value as string
    while (line.includes('"method":"notifications/'))
    said.push(line)
  }
  serving.child.stdin!.end()
  expect(await serving.ended).toBe(0)
  return said
}

const LEGACY_TALK = [
  INITIALIZE,
  message(undefined, 'notifications/initialized'),
  message(1, 'tools/list'),
  message(2, 'tools/call', ECHO),
  message(3, 'tools/call', { name: 'a__fail' }),
  message(4, 'tools/call', { name: 'nope' }),
  '{"id":5,"broken"\n',
  message(6, 'ping'),
]
const MODERN_TALK = [
  message(1, 'server/discover', MODERN),
  message(2, 'tools/list', MODERN),
  message(3, 'tools/call', { ...ECHO, ...MODERN }),
]

/** What was left of its lifetime when a list was asked for is no part of what is compared, nor is the name of the process. */
const timeless = (lines: readonly string[]): string[] =>
  lines.map((line) => line.replace(/"ttlMs":\d+/g, '"ttlMs":0').replace(/("dev.trunkline\/gateways":)\["[^"]+"\]/, '$1[]'))

const configure = (cli: Cli): Promise<void> => cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake('good', 'log')}\n`)
const STDIO = ['stdio', '-c', 'trunkline.yaml']
const starts = (cli: Cli): number => cli.log('log').filter((line) => line.startsWith('start')).length

describe('trunkline stdio', () => {
  test.each([
    ['a legacy host', LEGACY_TALK],
    ['a modern host', MODERN_TALK],
  ])('%s sees the same bytes attached and inline', async (_, talk) => {
    await using cli = await commandLine()
    await configure(cli)
    const up = await cli.up()
    await up.said(/server is ready/)
    const attached = await converse(cli.spawn(STDIO), talk)
    expect(up.lines.filter((line) => line.includes('a host was attached'))).toHaveLength(1)
    const inline = await converse(cli.spawn([...STDIO, '--inline']), talk)
    expect(attached).toHaveLength(talk.filter((text) => text.includes('"id"')).length)
    expect(timeless(attached)).toEqual(timeless(inline))
    up.signal('SIGTERM')
    expect(await up.ended).toBe(0)
    const alone = await converse(cli.spawn(STDIO), talk)
    expect(timeless(alone)).toEqual(timeless(inline))
  })

  test('--server serves one server under its own names; an unknown one ends with 2', async () => {
    await using cli = await commandLine()
    await configure(cli)
    const alone = await converse(cli.spawn([...STDIO, '--server', 'a']), [INITIALIZE, message(1, 'tools/list')])
    const up = await cli.up()
    await up.said(/server is ready/)
    const attached = await converse(cli.spawn([...STDIO, '--server', 'a']), [INITIALIZE, message(1, 'tools/list')])
    expect(timeless(attached)).toEqual(timeless(alone))
    expect(attached[1]).toContain('"name":"echo"')
    expect(await cli.run([...STDIO, '--server', 'b'])).toMatchObject({
      code: 2,
      errors: [expect.stringContaining('no server "b" is configured')],
    })
  })

  test('--server of one that no toolset holds ends with 2 and names the default toolset with its place, inline and attached', async () => {
    await using cli = await commandLine()
    await cli.write(
      'trunkline.yaml',
      `servers:\n  a: ${cli.fake('good', 'log')}\n  b: ${cli.fake('good', 'starts')}\ntoolsets:\n  default: { servers: [a] }\n`,
    )
    const refused = {
      code: 2,
      stdout: '',
      errors: [
        expect.stringMatching(/^toolset "default" \(trunkline\.yaml:5:3\).*contains nothing of server "b".*name the server/),
      ],
    }
    expect(await cli.here(...STDIO, '--server', 'b')).toMatchObject(refused)
    expect(existsSync(cli.path('starts'))).toBe(false)
    const up = await cli.up()
    await up.said(/server is ready/)
    expect(await cli.here(...STDIO, '--server', 'b')).toMatchObject(refused)
  })

  test('the end of stdin lets calls under way end, attached as inline', async () => {
    await using cli = await commandLine()
    await configure(cli)
    const talk = INITIALIZE + message(undefined, 'notifications/initialized')
    const wait = (name: string): string => message(9, 'tools/call', { name: 'a__wait', arguments: { until: cli.path(name) } })
    const leave = async (name: string, args: readonly string[], times: number): Promise<void> => {
      const ended = cli.run(args, talk + wait(name))
      await cli.called('log', times)
      await writeFile(cli.path(name), '')
      expect(await ended).toMatchObject({ code: 0, stdout: expect.stringContaining('waited') })
    }
    await leave('one', STDIO, 1)
    const up = await cli.up()
    await up.said(/server is ready/)
    await leave('two', STDIO, 2)
  })

  test('attached hosts share what runs', async () => {
    await using cli = await commandLine()
    await cli.write(
      'trunkline.yaml',
      `servers:\n  a: ${cli.fake('good', 'log').replace(' }', ', lifecycle: { spare: 0, sharing: shared } }')}\n`,
    )
    const up = await cli.up()
    await up.said(/server is ready/)
    const host = cli.spawn(STDIO)
    host.child.stdin!.write(INITIALIZE)
    await once(host.child.stdout!, 'data')
    expect(starts(cli)).toBe(1)
  })

  test('one that serves by itself answers ps, takes no other host, and leaves the socket to up', async () => {
    await using cli = await commandLine()
    await configure(cli)
    const first = cli.spawn(STDIO)
    first.child.stdin!.write(INITIALIZE)
    await first.said(/server is ready/)
    expect(JSON.parse((await cli.run(['ps', '--json'])).stdout)).toMatchObject({ pid: first.pid, urls: [] })
    const second = cli.spawn(STDIO)
    second.child.stdin!.write(INITIALIZE)
    await second.said(/no admin socket: another process/)
    const up = await cli.up()
    expect(JSON.parse((await cli.run(['ps', '--json'])).stdout)).toMatchObject({ pid: up.pid })
    first.child.stdin!.end()
    second.child.stdin!.end()
    expect([await first.ended, await second.ended]).toEqual([0, 0])
    expect(JSON.parse((await cli.run(['ps', '--json'])).stdout)).toMatchObject({ pid: up.pid })
  })

  test('B296 one that starts while the process of an earlier host ends serves at once: that process takes no other host', async () => {
    await using cli = await commandLine()
    await configure(cli)
    const first = cli.spawn(STDIO)
    const wait = message(9, 'tools/call', { name: 'a__wait', arguments: { until: cli.path('go') } })
    const answers = text(first.child.stdout!)
    first.child.stdin!.end(INITIALIZE + message(undefined, 'notifications/initialized') + wait)
    await cli.called('log')
    const second = cli.spawn(STDIO)
    second.child.stdin!.write(INITIALIZE)
    await once(second.child.stdout!, 'data')
    expect(second.lines.filter((line) => line.includes('waits for the next one'))).toEqual([])
    await writeFile(cli.path('go'), '')
    second.child.stdin!.end()
    expect([await first.ended, await second.ended]).toEqual([0, 0])
    expect(await answers).toContain('waited')
  })
})
