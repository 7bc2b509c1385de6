/** Sampling between hosts and servers of different revisions (BRIDGING 3.14; 8.5). */
import { describe, expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import type { FakeSpec } from '../support/fake-downstream.ts'
import { legacyHttp } from '../support/fake-host.ts'
import { RpcError } from '../support/fakes/messages.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'

const text = (words: string): JsonMap => ({ type: 'text', text: words })
const ask = (...contents: readonly unknown[]): JsonMap => ({
  maxTokens: 10,
  messages: contents.map((content) => ({ role: 'user', content })),
})
const sampled = (content: unknown): JsonMap => ({ role: 'assistant', model: 'm', content })

/** A tool that samples with these params and tells what came back. */
const sampling = (params: JsonMap, spec: FakeSpec = {}): FakeSpec =>
  fake.of({
    tools: ['x'],
    on: {
      'tools/call': async (turn) => {
        const { result, error } = await turn.ask('sampling/createMessage', params)
        return { content: [text(JSON.stringify(result ?? error))] }
      },
    },
    ...spec,
  })

/** What the host heard, and what its answer looked like to the server. */
const run = async (
  spec: FakeSpec,
  revision: string,
  answer: JsonMap = sampled(text('yes')),
  capabilities: JsonMap = { sampling: { tools: {} } },
): Promise<{ heard: JsonMap[]; told: JsonMap }> => {
  await using gateway = await startGateway({ servers: { a: spec, b: fake.offering('other') } })
  await using host = await legacyHttp.connect(gateway, { revision, capabilities })
  const heard: JsonMap[] = []
  host.answer('sampling/createMessage', (params) => (heard.push(params), answer))
  const { content } = (await host.call('tools/call', { name: 'a__x' })) as { content: { text: string }[] }
  return { heard, told: JSON.parse(content[0]!.text) as JsonMap }
}

describe('to hosts before 2025-11-25', () => {
  test.each(['2024-11-05', '2025-03-26', '2025-06-18'])('a list of one block is that block (%s)', async (revision) => {
    const { heard, told } = await run(sampling(ask([text('a')], text('b'))), revision)
    expect(heard).toEqual([ask(text('a'), text('b'))])
    expect(told).toEqual(sampled(text('yes')))
  })
  test.each([
    ['2025-06-18', [text('a'), text('b')]],
    ['2025-06-18', [{ type: 'tool_use', id: '1', name: 'n', input: {} }]],
    ['2025-03-26', { type: 'tool_result', toolUseId: '1', content: [] }],
    ['2024-11-05', { type: 'audio', data: '', mimeType: 'audio/wav' }],
  ])('%s cannot be asked %j', async (revision, content) => {
    const { heard, told } = await run(sampling(ask(content)), revision)
    expect(heard).toEqual([])
    expect(told).toMatchObject({ code: -32602 })
  })
  test('2025-03-26 knows audio', async () => {
    const audio = { type: 'audio', data: '', mimeType: 'audio/wav' }
    expect((await run(sampling(ask([audio])), '2025-03-26')).heard).toEqual([ask(audio)])
  })
})

describe('answers to servers before 2025-11-25', () => {
  test('a list of one block is that block; of several there is an error', async () => {
    const spec = sampling(ask(text('a')), { revision: '2025-06-18' })
    expect((await run(spec, '2025-11-25', sampled([text('one')]))).told).toEqual(sampled(text('one')))
    expect((await run(spec, '2025-11-25', sampled([text('one'), text('two')]))).told).toMatchObject({ code: -32603 })
  })
})

test('B095 what includes the context of other servers leaves without it', async () => {
  for (const includeContext of ['thisServer', 'allServers', 'none']) {
    const { heard } = await run(sampling({ ...ask(text('a')), includeContext }), '2025-11-25')
    expect(heard).toEqual([includeContext === 'none' ? { ...ask(text('a')), includeContext } : ask(text('a'))])
  }
})

test('B096 tools inside a sampling request keep their names', async () => {
  const params = {
    ...ask([{ type: 'tool_use', id: '1', name: 'x', input: {} }]),
    tools: [{ name: 'x', inputSchema: { type: 'object' } }],
  }
  const { heard, told } = await run(
    sampling(params),
    '2025-11-25',
    sampled([{ type: 'tool_use', id: '2', name: 'x', input: {} }]),
  )
  expect(heard).toEqual([params])
  expect(told).toEqual(sampled([{ type: 'tool_use', id: '2', name: 'x', input: {} }]))
})

test('B097 tools are not sent to a host that did not declare them', async () => {
  const { heard, told } = await run(sampling({ ...ask(text('a')), tools: [] }), '2025-11-25', undefined, { sampling: {} })
  expect(heard).toEqual([])
  expect(told).toMatchObject({ code: -32602 })
})

test('B098 the refusal of a person reaches the server as it is', async () => {
  await using gateway = await startGateway({ servers: { a: sampling(ask(text('a'))) } })
  await using host = await legacyHttp.connect(gateway, { capabilities: { sampling: {} } })
  host.answer('sampling/createMessage', () => {
    throw new RpcError({ code: -1, message: 'User rejected' })
  })
  const result = await host.call('tools/call', { name: 'a__x' })
  expect(result).toEqual({ content: [text('{"code":-1,"message":"User rejected"}')] })
})

test('more than ten in one call are refused', async () => {
  const codes: unknown[] = []
  await using gateway = await startGateway({
    servers: {
      a: fake.of({
        tools: ['x'],
        on: {
          'tools/call': async (turn) => {
            for (let n = 0; n < 12; n++) codes.push((await turn.ask('sampling/createMessage', ask(text('a')))).error?.code)
            return { content: [] }
          },
        },
      }),
    },
  })
  await using host = await legacyHttp.connect(gateway, { capabilities: { sampling: {} } })
  host.answer('sampling/createMessage', () => sampled(text('yes')))
  await host.call('tools/call', { name: 'a__x' })
  expect(codes).toEqual([...Array.from({ length: 10 }), -1, -1])
})
