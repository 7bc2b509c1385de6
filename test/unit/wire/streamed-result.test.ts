/** A result that passes on while it comes is the one that would have left after it had come, however its bytes were cut. */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { exposeResult } from '../../../src/catalog/view/expose-result.ts'
import { readServerMessage } from '../../../src/wire/message/envelope.ts'
import type { Failure } from '../../../src/wire/message/failure.ts'
import { join } from '../../../src/wire/message/payload.ts'
import type { Payload } from '../../../src/wire/message/payload.ts'
import { StreamedResult } from '../../../src/wire/result/streamed-result.ts'

interface Ended {
  readonly text: string
  readonly failure: Failure | undefined
}

const free = { pause: () => undefined, resume: () => undefined, abort: () => undefined }

/** What leaves of `message`, cut at `cuts`, when its way out is known at once or only after its end; `undefined`: it is read whole. */
const pass = (message: string, cuts: readonly number[], change: (result: Payload) => void = () => undefined, isLate = false) => {
  const bytes = Buffer.from(message)
  const edges = [...new Set(cuts.map((cut) => cut % bytes.length)), bytes.length].sort((a, b) => a - b)
  const out: Buffer[] = []
  let ended: Ended | undefined
  let result: StreamedResult | undefined
  let from = 0
  const end = (failure?: Failure): void => void (ended = { text: Buffer.concat(out).toString(), failure })
  const pipe = (): void => result?.pipe({ write: (piece) => void out.push(Buffer.from(piece)), end, fail: end })
  for (const edge of edges) {
    if (result === undefined) {
      const begun = StreamedResult.begin(bytes.subarray(0, edge), '7', free)
      if (begun === undefined) return undefined
      if (begun === 'more') continue
      result = begun
      change(result)
      if (!isLate) pipe()
    } else {
      // Lent: whatever is kept must have been copied.
      const lent = Buffer.from(bytes.subarray(from, edge))
      result.push(lent)
      lent.fill(0)
    }
    from = edge
  }
  result?.finish()
  if (isLate) pipe()
  return ended
}

const word = (result: Payload): void => {
  result.set('resultType', '"complete"')
  result.delete('ttlMs')
  result.setIn('_meta', 'io.modelcontextprotocol/serverInfo', '{"name":"trunkline"}')
  exposeResult(result, 'content', (uri) => `a+${uri}`)
}

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('"resource', '\\', '\\"', '}]', '{"type":"resource_link"', '𝄞é'),
)
const blocks = fc.oneof(
  fc.record({ type: fc.constant('text'), text }),
  fc.record({ text, type: fc.constant('text') }),
  fc.record({ uri: fc.constant('file:///x'), name: text, type: fc.constant('resource_link') }),
  fc.record({ type: fc.constant('resource'), resource: fc.record({ uri: fc.constant('x:y'), text }) }),
  fc.record({ type: fc.constant('later'), more: fc.jsonValue() }),
)
const results = fc
  .record(
    {
      isError: fc.boolean(),
      _meta: fc.oneof(fc.record({ a: fc.jsonValue() }), fc.constant(null), fc.constant([])),
      resultType: fc.constant('complete'),
      ttlMs: fc.nat(),
      structuredContent: fc.jsonValue(),
      other: fc.jsonValue(),
    },
    { requiredKeys: [] },
  )
  .chain((rest) =>
    fc.record({
      content: fc.array(blocks, { maxLength: 4 }),
      order: fc.shuffledSubarray([...Object.keys(rest), 'content'], { minLength: Object.keys(rest).length + 1 }),
      rest: fc.constant(rest),
    }),
  )
  .map(({ content, order, rest }) =>
    Object.fromEntries(order.map((key) => [key, key === 'content' ? content : rest[key as 'other']])),
  )
const messages = fc.tuple(results, fc.boolean(), fc.constantFrom(undefined, 1, '\t')).map(([result, idLast, space]) => {
  const message = idLast ? { result, jsonrpc: '2.0', id: 7 } : { jsonrpc: '2.0', id: 7, result }
  return JSON.stringify(message, undefined, space)
})
const cuts = fc.array(fc.nat(), { maxLength: 40 })

describe('a result that passes while it comes', () => {
  test('leaves byte for byte as it came where nothing is changed, however it was cut', () => {
    fc.assert(
      fc.property(messages, cuts, (message, at) => {
        const { result } = readServerMessage(Buffer.from(message))
        expect(pass(message, at)?.text).toBe(join(result!.parts()).toString())
        expect(pass(message, at, undefined, true)?.text).toBe(join(result!.parts()).toString())
      }),
      { numRuns: 300 },
    )
  })

  test('leaves and changes alike where texts and values are long enough for the kernel, however they were cut', () => {
    const long = fc.tuple(
      results,
      fc.constantFrom('"resource', '\\"', '"', 'plain words ', '{"a":[1,"\\\\"]},'),
      fc.integer({ min: 20, max: 400 }),
    )
    fc.assert(
      fc.property(long, cuts, ([result, piece, count], at) => {
        const text = piece.repeat(count)
        const many = { type: 'resource', resource: { uri: 'x:y', text, deep: [[{ text }]] }, annotations: { text } }
        const whole = {
          ...result,
          content: [{ type: 'text', text }, many],
          extra: { text, list: [text, { text }] },
        }
        const message = JSON.stringify({ jsonrpc: '2.0', id: 7, result: whole })
        const untouched = readServerMessage(Buffer.from(message)).result!
        expect(pass(message, at)?.text).toBe(join(untouched.parts()).toString())
        word(untouched)
        expect(JSON.parse(pass(message, at, word)?.text ?? '')).toEqual(JSON.parse(join(untouched.parts()).toString()))
      }),
      { numRuns: 200 },
    )
  })

  test('walks on by itself where the kernel doubts: what only looks like JSON passes as it does without the kernel, brackets are checked', () => {
    const value = `{"deep":[[{"a":01,"text":"${'x'.repeat(300)}\\""`
    const message = (end: string): string =>
      `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"x"}],"structuredContent":${value}${end}}}`
    for (const cut of [[], [150], [100, 200, 300, 400, 440]]) {
      expect(pass(message('}]]}'), cut)?.failure).toBeUndefined()
      expect(pass(message('}]]]'), cut)?.failure?.message).toContain('brackets that do not match')
    }
  })

  test('says the same as one that was changed when it was whole', () => {
    fc.assert(
      fc.property(messages, cuts, (message, at) => {
        const { result } = readServerMessage(Buffer.from(message))
        word(result!)
        for (const isLate of [false, true]) {
          const ended = pass(message, at, word, isLate)
          expect(ended?.failure).toBeUndefined()
          expect(JSON.parse(ended?.text ?? '')).toEqual(JSON.parse(join(result!.parts()).toString()))
        }
      }),
      { numRuns: 500 },
    )
  })

  test.each(['null', '[]', ' null ', '"text"'])('B282 %s in place of `_meta` is absent, wherever it stands', (meta) => {
    for (const result of [`{"content":[],"_meta":${meta},"isError":false}`, `{"_meta":${meta},"content":[]}`]) {
      const ended = pass(`{"jsonrpc":"2.0","id":7,"result":${result}}`, [60], (each) => each.setIn('_meta', 'ours', '3'))
      expect(ended?.failure).toBeUndefined()
      expect(JSON.parse(ended?.text ?? '')).toMatchObject({ content: [], _meta: { ours: 3 } })
    }
  })

  test('is read whole where it is none: an error, another result, or one that has not said its kind', () => {
    const begin = (message: string, after?: string) => StreamedResult.begin(Buffer.from(message), '7', free, after)
    const whole = (message: string, after?: string): void => expect(begin(message, after)).toBeUndefined()
    whole('{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"no"}}')
    whole('{"jsonrpc":"2.0","id":7,"result":{"tools":[]}}')
    whole('{"jsonrpc":"2.0","id":7,"result":{"content":"no list"}}')
    whole('{"jsonrpc":"2.0","id":7,"result":{"content":[],"resultType":"complete"}}', 'resultType')
    whole('{"jsonrpc":"2.0","method":"m","params":{"result":{"content":[]}}}')
    whole(`{"jsonrpc":"2.0","id":7,"result":{"structuredContent":"${'x'.repeat(20_000)}","content":[]}}`)
    const said = '{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[]}}'
    expect(begin(said, 'resultType')).toBeInstanceOf(StreamedResult)
  })

  test.each([
    ['it ends in the middle', '{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","te'],
    ['it answers 8', '{"jsonrpc":"2.0","id":8,"result":{"content":[]}}'],
    ['jsonrpc must be "2.0"', '{"id":7,"result":{"content":[]}}'],
    ['duplicate key', '{"jsonrpc":"2.0","id":7,"result":{"content":[]},"id":7}'],
    ['duplicate key "isError"', '{"jsonrpc":"2.0","id":7,"result":{"isError":true,"content":[],"isError":false}}'],
    ['duplicate key "content"', '{"jsonrpc":"2.0","id":7,"result":{"content":[],"content":[]}}'],
    ['duplicate key "isError"', '{"jsonrpc":"2.0","id":7,"result":{"isError":true,"content":[],"is\\u0045rror":false}}'],
    ['only in case', '{"jsonrpc":"2.0","id":7,"result":{"content":[],"IsError":false}}'],
    ['bad escape', '{"jsonrpc":"2.0","id":7,"result":{"content":[],"is\\x45rror":false}}'],
    ['brackets', '{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text"]}}}'],
    ['brackets', `{"jsonrpc":"2.0","id":7,"result":{"content":[],"a":${'['.repeat(600)}${']'.repeat(599)}}}}`],
    ['behind the result', `{"jsonrpc":"2.0","id":7,"result":{"content":[]},"x":"${'y'.repeat(9_000)}"}`],
  ])('breaks visibly, and never as if it were complete: %s', (reason, message) => {
    const ended = pass(message, [60])
    expect(ended?.failure?.kind).toBe('bad_response')
    expect(ended?.failure?.message).toContain(reason)
  })

  test('B269 keys are found however they are escaped; those that decide nothing may be repeated', () => {
    const members =
      '"\\u0072esultType":"complete","x":1,"c\\u006fntent":[{"\\u0074ype":"resource_link","uri":"x:y"}],"x":2,"caf\\u00e9":1,"café":1'
    const message = `{"jsonrpc":"2.0","id":7,"result":{${members},"_met\\u0061":{"a":1,"a":2}}}`
    for (const at of [[], [60], Array.from({ length: message.length }, (_, cut) => cut)]) {
      const ended = pass(message, at, (result) => {
        word(result)
        result.setIn('_meta', 'ours', '3')
      })
      expect(ended?.failure).toBeUndefined()
      const { result } = readServerMessage(Buffer.from(message))
      word(result!)
      result!.setIn('_meta', 'ours', '3')
      expect(JSON.parse(ended?.text ?? '')).toEqual(JSON.parse(join(result!.parts()).toString()))
      expect(ended?.text).toContain('"caf\\u00e9":1,"café":1')
    }
  })

  test('bytes that are not UTF-8 break it, wherever they are cut', () => {
    const message = Buffer.concat([
      Buffer.from('{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"'),
      Buffer.from([0xe2, 0x82, 0x22]),
      Buffer.from('}]}}'),
    ])
    for (let cut = 60; cut < message.length; cut++) {
      const result = StreamedResult.begin(message.subarray(0, cut), '7', free)
      if (!(result instanceof StreamedResult)) throw new Error('not begun')
      let failure: Failure | undefined
      result.pipe({ write: () => undefined, end: () => undefined, fail: (reason) => (failure = reason) })
      result.push(message.subarray(cut))
      result.finish()
      expect(failure?.message).toContain('UTF-8')
    }
  })

  test('waits until somebody takes it, and takes nothing more once nobody wants it', () => {
    const calls: string[] = []
    const begun = StreamedResult.begin(Buffer.from('{"jsonrpc":"2.0","id":7,"result":{"content":['), '7', {
      pause: () => calls.push('pause'),
      resume: () => calls.push('resume'),
      abort: () => calls.push('abort'),
    }) as StreamedResult
    const written: Uint8Array[] = []
    begun.pipe({ write: (bytes) => void written.push(bytes), end: () => calls.push('end'), fail: () => calls.push('fail') })
    const before = written.length
    begun.abort()
    begun.push(Buffer.from('1]}}'))
    begun.finish()
    expect(written).toHaveLength(before)
    expect(calls).toEqual(['resume', 'abort'])
  })
})
