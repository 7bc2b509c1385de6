/** Faults that the configuration injects (`faults`, `--allow-faults`): what hosts see of each, and how visible they are. */
import { describe, expect, test } from 'vitest'
import type { FaultRule } from '../../../src/gateway/faults.ts'
import { commandLine } from '../../support/cli.ts'
import { everyFakeKind, fake } from '../../support/fake-downstream.ts'
import { everyTransport, legacyHttp, modernHttp } from '../../support/fake-host.ts'
import { KEY, metaOf } from '../../support/fakes/messages.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import { startGateway } from '../../support/gateway.ts'

const FAULT = 'dev.trunkline/fault'
const rule = (more: Partial<FaultRule>): FaultRule => ({
  name: 'faults[0]',
  server: 'a',
  tools: ['bad_*'],
  methods: ['tools/call'],
  delayMs: undefined,
  kind: undefined,
  code: -32603,
  message: 'injected fault',
  every: 1,
  share: 1,
  ...more,
})
const injecting = (more: Partial<FaultRule>, kind: (typeof everyFakeKind)[number] = 'legacy http') =>
  startGateway({ servers: { a: fake.of({ kind, tools: ['bad_one', 'good'] }) }, faults: [rule(more)] })

describe.each(everyTransport)('a host over $name', ({ connect }) => {
  test.each(everyFakeKind)('meets an error in place of the answer of a %s server, which says that it is meant', async (kind) => {
    await using gateway = await injecting({ kind: 'error', code: -1234, message: 'no luck' }, kind)
    await using host = await connect(gateway)
    await expect(host.call('tools/call', { name: 'a__bad_one' })).rejects.toMatchObject({
      code: -1234,
      message: 'no luck',
      data: { [FAULT]: 'faults[0]' },
    })
    expect(gateway.fake('a').all('tools/call')).toEqual([])
    expect(await host.call('tools/call', { name: 'a__good' })).not.toHaveProperty(['_meta', FAULT])
  })
})

const gatewayOf = (result: JsonMap): JsonMap => (metaOf({ result })[KEY.gateway] ?? {}) as JsonMap

test('a tool error is a result that says so', async () => {
  await using gateway = await injecting({ kind: 'tool_error', message: 'out of paper' })
  await using host = await modernHttp.connect(gateway)
  expect(await host.call('tools/call', { name: 'a__bad_one' })).toMatchObject({
    isError: true,
    content: [{ type: 'text', text: 'out of paper' }],
    _meta: { [FAULT]: 'faults[0]' },
  })
})

test('a call that is cut reaches its server, and its outcome is unknown', async () => {
  await using gateway = await injecting({ kind: 'cut' })
  await using host = await legacyHttp.connect(gateway)
  const result = await host.call('tools/call', { name: 'a__bad_one' })
  expect(result).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining('injected on purpose: faults[0]') as unknown }],
  })
  expect(gatewayOf(result)).toMatchObject({ kind: 'lost', executed: 'unknown', injected: 'faults[0]' })
  expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
})

test('lost credentials are a sign-in that is needed', async () => {
  await using gateway = await injecting({ kind: 'lost_auth' })
  await using host = await modernHttp.connect(gateway)
  const result = await host.call('tools/call', { name: 'a__bad_one' })
  expect(gatewayOf(result)).toMatchObject({ kind: 'auth_required', executed: 'no', injected: 'faults[0]' })
})

test.each(everyFakeKind)('a %s server that answers as one of the other era is asked, and goes on', async (kind) => {
  await using gateway = await injecting({ kind: 'wrong_era' }, kind)
  await using host = await modernHttp.connect(gateway)
  await expect(host.call('tools/call', { name: 'a__bad_one' })).rejects.toMatchObject({
    code: -32603,
    data: { original: { data: { [FAULT]: 'faults[0]' } } },
  })
  expect(await host.call('tools/call', { name: 'a__good' })).toHaveProperty('content')
})

test('a server that hangs is a time-out of silence; a host that cancels does not wait for it', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.offering('bad_one') },
    options: { a: { timeouts: { idleMs: 300 } } },
    faults: [rule({ kind: 'hang' })],
  })
  await using host = await modernHttp.connect(gateway)
  const result = await host.call('tools/call', { name: 'a__bad_one' })
  expect(gatewayOf(result)).toMatchObject({ kind: 'timeout', injected: 'faults[0]' })
  const pending = host.begin('tools/call', { name: 'a__bad_one' })
  pending.response.catch(() => undefined)
  pending.cancel()
  await pending.over
})

test('a delayed answer is passed on and marked', async () => {
  await using gateway = await injecting({ delayMs: 20 })
  await using host = await modernHttp.connect(gateway)
  const result = await host.call('tools/call', { name: 'a__bad_one' })
  expect(result).toMatchObject({ content: expect.any(Array) as unknown, _meta: { [FAULT]: 'faults[0]' } })
})

test('every third call is every third call; prompts and resources are meant where methods says so', async () => {
  await using gateway = await startGateway({
    servers: { a: fake.of({ tools: ['bad_one'], prompts: ['p'] }) },
    faults: [
      rule({ kind: 'error', every: 3 }),
      rule({ kind: 'error', tools: undefined, methods: ['prompts/get'], name: 'faults[1]' }),
    ],
  })
  gateway.fake('a').on('prompts/get', () => ({ messages: [] }))
  await using host = await modernHttp.connect(gateway)
  const ends: string[] = []
  for (let n = 0; n < 6; n++)
    ends.push(
      await host.call('tools/call', { name: 'a__bad_one' }).then(
        () => 'ok',
        () => 'fault',
      ),
    )
  expect(ends).toEqual(['ok', 'ok', 'fault', 'ok', 'ok', 'fault'])
  await expect(host.call('prompts/get', { name: 'a__p' })).rejects.toMatchObject({ data: { [FAULT]: 'faults[1]' } })
  expect(gateway.running.faults).toEqual([
    { rule: 'faults[0]', what: 'a bad_*: error -32603, one of 3 calls', calls: 6, injected: 2 },
    { rule: 'faults[1]', what: 'a prompts/get: error -32603', calls: 1, injected: 1 },
  ])
})

test('a reload changes them, and the log says at once what is injected now', async () => {
  await using gateway = await injecting({ kind: 'error' })
  await using host = await modernHttp.connect(gateway)
  const said = (text: string) =>
    gateway.log.until(({ level, facts }) => level === 'warn' && String(facts['faults']).includes(text))
  await said('error -32603')
  const { configuration } = gateway.running
  await gateway.running.apply({ ...configuration, faults: [rule({ kind: 'tool_error' })] }, new Set())
  await said('tool error')
  expect(await host.call('tools/call', { name: 'a__bad_one' })).toMatchObject({ isError: true })
  await gateway.running.apply({ ...configuration, faults: [] }, new Set())
  expect(await host.call('tools/call', { name: 'a__bad_one' })).not.toHaveProperty('isError')
})

describe('the command line', () => {
  const file = (fake: string): string => `servers: { a: ${fake} }\nfaults:\n  - { server: a, tools: "*", fault: tool_error }\n`

  test('refuses faults without --allow-faults, with the place and the remedy', async () => {
    await using cli = await commandLine()
    await cli.write('trunkline.yaml', file(cli.fake()))
    for (const words of [['up'], ['check'], ['stdio', '-c', 'trunkline.yaml']]) {
      const { code, errors } = await cli.here(...words)
      expect([code, errors]).toEqual([
        2,
        ['trunkline.yaml:2:1 faults: faults would be injected into calls; start with --allow-faults, or remove them'],
      ])
    }
    expect(await cli.here('check', '--allow-faults')).toMatchObject({ code: 0 })
  })

  test('shows them at the start, in ps and in the log while they are on', async () => {
    await using cli = await commandLine()
    await cli.write('trunkline.yaml', file(cli.fake()))
    await using up = await cli.up('--allow-faults')
    await up.said(/FAULT faults\[0\] \(--allow-faults\): a \*: tool error/)
    await up.said(/faults are injected on purpose/)
    expect((await cli.here('ps')).stdout).toContain(
      'FAULT faults[0] (--allow-faults): a *: tool error; injected into 0 of 0 calls',
    )
    expect(JSON.parse((await cli.here('ps', '--json')).stdout)).toMatchObject({ faults: [{ rule: 'faults[0]', injected: 0 }] })
  })

  test('names the place of every rule that does nothing or is about nothing', async () => {
    const faults = [
      'servers: { a: { command: x } }',
      'faults:',
      '  - { server: b, delay: 1s }',
      '  - { server: a }',
      '  - { fault: cut }',
      '  - { server: a, fault: cut, code: 5 }',
      '  - { server: a, tools: x, methods: prompts/get, fault: cut }',
      '  - { server: a, fault: melt, share: 2 }',
    ]
    await using cli = await commandLine({ 'trunkline.yaml': faults.slice(0, -1).join('\n') })
    const { code, errors } = await cli.here('check', '--allow-faults')
    expect(code).toBe(2)
    expect(errors).toEqual([
      expect.stringMatching(/^trunkline\.yaml:3:7 faults\[0\]\.server: there is no server "b"; name a key/),
      expect.stringMatching(/^trunkline\.yaml:4:5 faults\[1\]: does nothing; add delay/),
      expect.stringMatching(/^trunkline\.yaml:5:5 faults\[2\]: names no server; add server: KEY/),
      expect.stringMatching(/^trunkline\.yaml:6:\d+ faults\[3\]\.code: "code" has no effect here; remove it/),
      expect.stringMatching(/^trunkline\.yaml:7:\d+ faults\[4\]\.tools: tools are called by tools\/call only/),
    ])
    await cli.write('trunkline.yaml', [faults[0], faults[1], faults.at(-1)].join('\n'))
    const bad = await cli.here('check', '--allow-faults')
    expect(bad.errors.join('\n')).toMatch(
      /faults\[0\]\.fault: expected one of error, .*\n.*faults\[0\]\.share: expected a number from 0 to 1/,
    )
  })
})
