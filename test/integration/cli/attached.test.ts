/** An attached `trunkline stdio` when the gateway restarts: its host keeps its pipe and its session (B296). */
import { writeFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { describe, expect, test } from 'vitest'
import { commandLine, INITIALIZE, message } from '../../support/cli.ts'
import type { Cli, Serving } from '../../support/cli.ts'
import { Journal } from '../../support/fakes/journal.ts'

interface Said {
  readonly id?: unknown
  readonly method?: string
  readonly params?: { readonly _meta?: Readonly<Record<string, unknown>> }
  readonly result?: { readonly isError?: boolean; readonly content?: readonly { readonly text: string }[] }
  readonly error?: unknown
}

const STDIO = ['stdio', '-c', 'trunkline.yaml']
const CALL = { name: 'a__echo', arguments: { text: 'x' } }
const ERA = {
  _meta: {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  },
}
const CHANGED = ['tools', 'prompts', 'resources'].map((list) => `notifications/${list}/list_changed`)

/** A host on the pipe of `trunkline stdio`. */
const attach = (cli: Cli): { said: Journal<Said>; process: Serving; write: (line: string) => void } => {
  const process = cli.spawn(STDIO)
  const said = new Journal<Said>()
  createInterface({ input: process.child.stdout! }).on('line', (line) => said.push(JSON.parse(line) as Said))
  return { said, process, write: (line) => void process.child.stdin!.write(line) }
}
const answerTo = (said: Journal<Said>, id: number): Promise<Said> =>
  said.until((one) => one.id === id && one.method === undefined)
const start = async (cli: Cli) => {
  const up = await cli.up()
  await up.said(/server is ready/)
  return up
}
const configure = (cli: Cli): Promise<void> => cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake('good', 'log')}\n`)
const wait = (cli: Cli, id: number, name: string, more: object = {}): string =>
  message(id, 'tools/call', { name: 'a__wait', arguments: { until: cli.path(name) }, ...more })

describe.each(['SIGTERM', 'SIGKILL'] as const)('B296 the gateway ends by %s and is started again', (signal) => {
  test('a legacy host keeps its pipe and its session, is told once that lists may differ, and what it sent meanwhile is answered', async () => {
    await using cli = await commandLine()
    await configure(cli)
    const up = await start(cli)
    const { said, process, write } = attach(cli)
    write(INITIALIZE + message(undefined, 'notifications/initialized') + message(1, 'tools/call', CALL))
    await answerTo(said, 1)
    up.signal(signal)
    await up.ended
    write(message(2, 'tools/call', CALL) + message(3, 'tools/list'))
    await using _next = await start(cli)
    expect((await answerTo(said, 2)).result?.isError).not.toBe(true)
    await answerTo(said, 3)
    expect(said.entries.flatMap(({ method }) => method ?? []).filter((method) => CHANGED.includes(method))).toEqual(CHANGED)
    expect(said.entries.filter(({ id }) => id === 0)).toHaveLength(1)
    expect(said.entries.filter(({ id }) => typeof id === 'string')).toEqual([])
    process.child.stdin!.end()
    expect(await process.ended).toBe(0)
  })

  test('a modern host keeps its pipe and its listen, which is told once that lists may differ', async () => {
    await using cli = await commandLine()
    await configure(cli)
    const up = await start(cli)
    const { said, write } = attach(cli)
    write(message(7, 'subscriptions/listen', { ...ERA, notifications: { toolsListChanged: true } }))
    await said.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
    up.signal(signal)
    await up.ended
    write(message(8, 'tools/call', { ...CALL, ...ERA }))
    await using _next = await start(cli)
    expect((await answerTo(said, 8)).result?.isError).not.toBe(true)
    const changed = await said.until(({ method }) => method === 'notifications/tools/list_changed')
    expect(changed.params?._meta).toEqual({ 'io.modelcontextprotocol/subscriptionId': 7 })
    expect(said.entries.filter(({ method }) => method?.startsWith('notifications/'))).toHaveLength(2)
    expect(said.entries.filter(({ id }) => id === 7)).toEqual([])
  })
})

describe('B296 a call under way', () => {
  test('ends within the drain time of an orderly stop', async () => {
    await using cli = await commandLine()
    await configure(cli)
    const up = await start(cli)
    const { said, write } = attach(cli)
    write(INITIALIZE + message(undefined, 'notifications/initialized') + wait(cli, 1, 'go'))
    await cli.called('log')
    up.signal('SIGTERM')
    await writeFile(cli.path('go'), '')
    expect((await answerTo(said, 1)).result).toMatchObject({ content: [{ text: 'waited' }] })
    expect(await up.ended).toBe(0)
  })

  test.each([
    ['legacy', INITIALIZE + message(undefined, 'notifications/initialized'), {}, undefined],
    ['modern', '', ERA, 'complete'],
  ])('of a %s host is answered where the gateway was killed, and the next one works', async (_, first, more, resultType) => {
    await using cli = await commandLine()
    await configure(cli)
    const up = await start(cli)
    const { said, write } = attach(cli)
    write(first + wait(cli, 1, 'never', more))
    await cli.called('log')
    up.signal('SIGKILL')
    const { result } = await answerTo(said, 1)
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('outcome unknown') as string }] })
    expect(result).toHaveProperty('_meta')
    expect((result as { resultType?: string }).resultType).toBe(resultType)
    await up.ended
    await using _next = await start(cli)
    write(message(2, 'tools/call', { ...CALL, ...more }))
    expect((await answerTo(said, 2)).result?.isError).not.toBe(true)
  })
})

test('B296 a host that leaves while no gateway runs ends its process', async () => {
  await using cli = await commandLine()
  await configure(cli)
  const up = await start(cli)
  const { said, process, write } = attach(cli)
  write(INITIALIZE)
  await answerTo(said, 0)
  up.signal('SIGKILL')
  await up.ended
  await process.said(/waits for the next one/)
  process.child.stdin!.end()
  expect(await process.ended).toBe(0)
})

test('B296 one that is started while the gateway stops waits for the next one, and starts no servers', async () => {
  await using cli = await commandLine()
  await configure(cli)
  const up = await start(cli)
  const first = attach(cli)
  first.write(INITIALIZE + message(undefined, 'notifications/initialized') + wait(cli, 1, 'go'))
  await cli.called('log')
  up.signal('SIGTERM')
  await expect.poll(async () => (await fetch(new URL('/readyz', up.url)).catch(() => undefined))?.status ?? 503).toBe(503)
  const second = attach(cli)
  await second.process.said(/waits for the next one/)
  await writeFile(cli.path('go'), '')
  expect(await up.ended).toBe(0)
  second.write(INITIALIZE)
  await using _next = await start(cli)
  await answerTo(second.said, 0)
  expect(second.process.lines.some((line) => line.includes('server is ready'))).toBe(false)
})
