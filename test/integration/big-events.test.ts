/**
 * Big events of servers over HTTP, as servers write that nobody here wrote: in several `data` lines, with any line ends, in pieces; on a
 * stream that stays open; on one that stops in the middle (B281; decision 0012).
 */
import type { ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import { fake } from '../support/fake-downstream.ts'
import { everyTransport, legacyHttp, modernHttp } from '../support/fake-host.ts'
import type { Host } from '../support/fake-host.ts'
import type { JsonMap } from '../support/fakes/messages.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { markedText, randomMark } from '../support/marked-text.ts'

const PIECE_BYTES = 50_001

interface Asked {
  readonly id: number
  readonly params?: { readonly arguments: { readonly mark: string; readonly length: number } }
}

const start = (): Promise<TestGateway> => startGateway({ servers: { a: fake.of({ kind: 'legacy http', tools: ['x'] }) } })

/** Answers each call by `answer`, everything else as usual. */
const answerCalls = (gateway: TestGateway, answer: (response: ServerResponse, asked: Asked) => unknown): void => {
  gateway.fake('a').intercept = (_request, response, body) => {
    if (!body.includes('"tools/call"')) return false
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    void answer(response, JSON.parse(body) as Asked)
    return true
  }
}

/** In pieces that end anywhere. */
const writeInPieces = async (response: ServerResponse, text: string): Promise<void> => {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    await new Promise((resolve) => response.write(bytes.subarray(at, at + PIECE_BYTES), resolve))
  }
}

const textsOf = (result: JsonMap | undefined): string[] =>
  ((result ?? {})['content'] as { text: string }[]).map(({ text }) => text)
const call = async (host: Host, mark: string, length: number): Promise<readonly string[]> =>
  textsOf((await host.begin('tools/call', { name: 'a__x', arguments: { mark, length } }).response).result)

test.each(
  everyTransport.flatMap((transport) =>
    ['\n', '\r\n', '\r'].map((lineEnd) => ({ ...transport, lineEnd, shown: JSON.stringify(lineEnd) })),
  ),
)(
  'B281 $name: an answer in several data lines that end with $shown, with a big message behind it on a stream that stays open',
  async ({ connect, lineEnd }) => {
    await using gateway = await start()
    answerCalls(gateway, async (response, { id, params }) => {
      const { mark = '', length = 0 } = params?.arguments ?? {}
      const block = (of: string): string => JSON.stringify({ type: 'text', text: markedText(of, length) })
      const lines = [`{"jsonrpc":"2.0","id":${id},"result":{"content":[`, `${block(mark)},`, block(`${mark}2`), ']}}']
      const late = JSON.stringify({
        jsonrpc: '2.0',
        method: 'notifications/message',
        params: { level: 'info', data: markedText('late', length) },
      })
      const events = [['event: message', `id: ${mark}`, ...lines.map((line) => `data: ${line}`)], [`data:${late}`]]
      await writeInPieces(response, events.map((event) => `${event.join(lineEnd)}${lineEnd}${lineEnd}`).join(''))
    })
    await using host = await connect(gateway)
    await Promise.all(
      Array.from({ length: 6 }, async (_, at) => {
        const [mark, length] = [randomMark(), [200, 70_000, 400_000][at % 3] ?? 0]
        expect(await call(host, mark, length)).toEqual([markedText(mark, length), markedText(`${mark}2`, length)])
      }),
    )
  },
)

test('streams that stopped in the middle of a big event harm no answer beside them, and fail as broken when they break', async () => {
  await using gateway = await start()
  const stopped: ServerResponse[] = []
  const begun = Promise.withResolvers<undefined>()
  answerCalls(gateway, async (response, { id, params }) => {
    const { mark = '', length = 0 } = params?.arguments ?? {}
    const event = `data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: markedText(mark, length) }] } })}\n\n`
    if (!mark.startsWith('sick')) {
      await writeInPieces(response, event)
      return response.end()
    }
    await writeInPieces(response, event.slice(0, event.length / 2))
    if (stopped.push(response) === 4) begun.resolve(undefined)
  })
  await using first = await legacyHttp.connect(gateway)
  await using second = await modernHttp.connect(gateway)
  const sick = [first, second, first, second].map(
    (host, at) => host.begin('tools/call', { name: 'a__x', arguments: { mark: `sick${at}`, length: 900_000 } }).response,
  )
  await begun.promise
  for (const length of [300_000, 1_100_000, 70_000, 700_000]) {
    await Promise.all(
      [first, second, first, second].map(async (host) => {
        const mark = randomMark()
        expect(await call(host, mark, length)).toEqual([markedText(mark, length)])
      }),
    )
  }
  for (const response of stopped) response.destroy()
  for (const { result } of await Promise.all(sick)) {
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('outcome unknown') as string }] })
  }
  expect(await call(first, 'after', 900_000)).toEqual([markedText('after', 900_000)])
})
