/** Messages between a server and its host that are no valid JSON-RPC: each has an end, and costs nothing else (BRIDGING 7.1, 7.2; B271). */
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import type { FakeKind } from '../support/fake-downstream.ts'
import { everyLegacyTransport } from '../support/fake-host.ts'
import { connectHttp } from '../support/fakes/http-hosts.ts'
import { notification } from '../support/fakes/messages.ts'
import type { Message } from '../support/fakes/messages.ts'
import { send } from '../support/fakes/raw-http.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'

const QUESTION = { message: 'go on?', requestedSchema: { type: 'object', properties: {} } }
const ASKS = 'elicitation/create'
const legacyKinds: readonly FakeKind[] = ['legacy http', 'legacy sse', 'legacy stdio']

/** Lets each call of the server ask its host; what it is answered. */
const asking = (gateway: TestGateway): readonly Message[] => {
  const answers: Message[] = []
  gateway.fake('a').on('tools/call', async (turn) => {
    answers.push(await turn.ask(ASKS, QUESTION))
    return { content: [] }
  })
  return answers
}

describe.each(everyLegacyTransport)('a host over $name that answers a question', ({ connect }) => {
  test.each(['"result":null', '"result":[]', '"error":"no"', '"result":{},"error":{"code":1,"message":"no"}'])(
    'B271 with %s: the server gets an error in its place, and the call goes on',
    async (outcome) => {
      await using gateway = await startGateway({ servers: { a: fake.offering('x') } })
      await using host = await connect(gateway, { capabilities: { elicitation: {} } })
      const answers = asking(gateway)
      const call = host.begin('tools/call', { name: 'a__x' })
      const asks = ({ method }: Message): boolean => method === ASKS
      const { id } = await Promise.race([call.messages.until(asks), host.heard.until(asks)])
      host.sendRaw(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},${outcome}}`, 'none')
      expect((await call.response).result).toEqual({ content: [] })
      expect(answers).toMatchObject([{ error: { code: -32603, message: expect.stringContaining('invalid') as string } }])
    },
  )
})

test('B271 an invalid answer in a batch ends its question, too', async () => {
  await using gateway = await startGateway({ servers: { a: fake.offering('x') } })
  await using host = await connectHttp(gateway, { revision: '2025-03-26', capabilities: { elicitation: {} } })
  const answers = asking(gateway)
  const call = host.begin('tools/call', { name: 'a__x' })
  const { id } = await call.messages.until(({ method }) => method === ASKS)
  await send(gateway.url, {
    headers: host.headers(),
    body: `[{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":null},${notification('notifications/x')}]`,
  })
  expect((await call.response).result).toEqual({ content: [] })
  expect(answers).toMatchObject([{ error: { code: -32603 } }])
})

describe.each(everyLegacyTransport)('a host over $name', ({ connect }) => {
  test.each([
    [
      'first',
      (id: string, text: string) => `{"jsonrpc":"2.0","id":${id},"result":{"action":"accept","content":{"x":"${text}"}}}`,
    ],
    ['last', (id: string, text: string) => `{"result":{"action":"accept","content":{"x":"${text}"}},"jsonrpc":"2.0","id":${id}}`],
  ])('B271 whose answer exceeds listen.limits.max_body, its id %s: the question ends with an error', async (_where, write) => {
    await using gateway = await startGateway({ servers: { a: fake.offering('x') }, hostLimits: { maxBodyBytes: 2_000 } })
    await using host = await connect(gateway, { capabilities: { elicitation: {} } })
    const answers = asking(gateway)
    const call = host.begin('tools/call', { name: 'a__x' })
    const asks = ({ method }: Message): boolean => method === ASKS
    const { id } = await Promise.race([call.messages.until(asks), host.heard.until(asks)])
    host.sendRaw(write(JSON.stringify(id), 'x'.repeat(3_000)), 'none')
    expect((await call.response).result).toEqual({ content: [] })
    expect(answers).toMatchObject([
      { error: { code: -32603, message: expect.stringContaining('listen.limits.max_body') as string } },
    ])
  })
})

test.each(['own', 'node'] as const)(
  'B271 the same where the body is sent after the head, to the HTTP server "%s"',
  async (httpServer) => {
    await using gateway = await startGateway({
      servers: { a: fake.offering('x') },
      hostLimits: { maxBodyBytes: 2_000 },
      host: { httpServer },
    })
    await using host = await connectHttp(gateway, { capabilities: { elicitation: {} } })
    const answers = asking(gateway)
    const call = host.begin('tools/call', { name: 'a__x' })
    const { id } = await call.messages.until(({ method }) => method === ASKS)
    const body = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"action":"accept","content":{"x":"${'x'.repeat(3_000)}"}}}`
    const fields = {
      ...host.headers(),
      host: 'localhost',
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'content-length': String(body.length),
    }
    const socket = connect(Number(gateway.url.port), '127.0.0.1').on('error', () => undefined)
    const received = once(socket, 'data') as Promise<[Buffer]>
    socket.write(
      `POST /mcp HTTP/1.1\r\n${Object.entries(fields)
        .map(([name, value]) => `${name}: ${value}\r\n`)
        .join('')}\r\n`,
    )
    // The head is read alone.
    await new Promise((resolve) => setTimeout(resolve, 50))
    socket.write(body)
    expect((await received)[0].toString()).toMatch(/^HTTP\/1.1 413 /)
    expect((await call.response).result).toEqual({ content: [] })
    expect(answers).toMatchObject([{ error: { message: expect.stringContaining('listen.limits.max_body') as string } }])
    socket.destroy()
  },
)

test.each(['own', 'node'] as const)(
  'T-24 a body of which no byte follows is not waited for without end, though its stated length is refused: HTTP server "%s"',
  async (httpServer) => {
    const hostLimits = { maxBodyBytes: 2_000, headersTimeoutMs: 200, requestTimeoutMs: 400 }
    await using gateway = await startGateway({ servers: {}, hostLimits, host: { httpServer } })
    const socket = connect(Number(gateway.url.port), '127.0.0.1')
    const fields = ['Host: localhost', 'Content-Type: application/json', 'Accept: application/json, text/event-stream']
    socket.write(`POST /mcp HTTP/1.1\r\n${fields.join('\r\n')}\r\nContent-Length: 3000\r\n\r\n`)
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 408 [^]*listen\.limits\.request_timeout/)
  },
)

describe.each(legacyKinds)('a server over %s', (kind) => {
  test.each(['"method":"elicitation/create","params":[]', '"method":"elicitation/create","params":{},"result":{}', '"method":7'])(
    'B271 whose request {%s} has the id of the call gets an error, and the call goes on',
    async (rest) => {
      await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['x'] }) } })
      await using host = await connectHttp(gateway)
      const { promise, resolve } = Promise.withResolvers<Message>()
      gateway.fake('a').on('tools/call', async (turn) => {
        turn.say(`{"jsonrpc":"2.0","id":${turn.id},${rest}}`)
        const { message } = await gateway.fake('a').journal.until((each) => each.message.error !== undefined)
        resolve(message)
        return { content: [] }
      })
      const call = host.begin('tools/call', { name: 'a__x' })
      const { id, error } = await promise
      expect([id, error?.code]).toEqual([gateway.fake('a').all('tools/call')[0]?.id, -32600])
      expect((await call.response).result).toEqual({ content: [] })
    },
  )
})

describe.each(legacyKinds)('a server over %s', (kind) => {
  test.each([
    ['first', (id: number, params: string) => `{"jsonrpc":"2.0","id":${id},"method":"${ASKS}","params":${params}}`],
    ['last', (id: number, params: string) => `{"method":"${ASKS}","params":${params},"jsonrpc":"2.0","id":${id}}`],
  ])('F-06 whose request exceeds limits.max_message, its id %s, gets an error, and the call goes on', async (_where, write) => {
    await using gateway = await startGateway({
      servers: { a: fake.of({ kind, tools: ['x'] }) },
      options: { a: { limits: { maxMessageBytes: 64 * 1024 } } },
    })
    await using host = await connectHttp(gateway, { capabilities: { elicitation: {} } })
    const answers: Message[] = []
    gateway.fake('a').on('tools/call', async (turn) => {
      const { id, answer } = turn.connection.expectAnswer()
      turn.say(write(id, JSON.stringify({ ...QUESTION, message: 'x'.repeat(300_000) })))
      answers.push(await answer)
      return { content: [] }
    })
    expect(await host.call('tools/call', { name: 'a__x' })).toEqual({ content: [] })
    expect(answers).toMatchObject([{ error: { code: -32600, message: expect.stringContaining('limits.max_message') as string } }])
  })
})

test('B227 a log line with a method and an id is no request: nothing is answered', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy stdio', tools: ['x'] }) } })
  await using host = await connectHttp(gateway)
  const a = gateway.fake('a').on('tools/call', (turn) => {
    turn.say('{"level":30,"method":"GET","id":7,"params":[]}')
    turn.say('{"jsonrpc":"1.0","method":"GET","id":8}')
    return { content: [] }
  })
  for (let count = 0; count < 2; count++) expect(await host.call('tools/call', { name: 'a__x' })).toEqual({ content: [] })
  expect(a.received.filter(({ message }) => message.method === undefined)).toEqual([])
})

test('T-19 a server that answers notifications with errors without an id is not cut off', async () => {
  await using gateway = await startGateway({ servers: { a: fake.of({ kind: 'legacy stdio', tools: ['x'] }) } })
  await using host = await connectHttp(gateway)
  const a = gateway.fake('a').on('tools/call', fake.never)
  a.on('notifications/cancelled', ({ connection }) =>
    connection.say('{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}'),
  )
  for (let count = 0; count < 12; count++) {
    const call = host.begin('tools/call', { name: 'a__x' }, { id: `c${count}` })
    await a.journal.when(() => a.all('tools/call')[count])
    call.cancel()
    await a.journal.when(() => a.all('notifications/cancelled')[count])
  }
  a.on('tools/call', () => ({ content: [] }))
  expect(await host.call('tools/call', { name: 'a__x' })).toEqual({ content: [] })
  expect(new Set(a.all('tools/call').map(({ connection }) => connection)).size).toBe(1)
})
