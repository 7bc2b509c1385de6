import { describe, expect, test } from 'vitest'
import type { Overflow } from '../../../src/catalog/curation.ts'
import { cutAt, limitResult } from '../../../src/gateway/limits/result-limit.ts'
import { join, Payload } from '../../../src/wire/message/payload.ts'

const TEXT = 'x'.repeat(100)
const block = (text: string): object => ({ type: 'text', text })

/** 20 tokens are 80 bytes. */
const limited = (result: object | string, overflow: Overflow = 'resource', maxTokens = 20) => {
  const kept: string[] = []
  const payload = Payload.at(Buffer.from(typeof result === 'string' ? result : JSON.stringify(result)))
  const out = limitResult(payload, { maxTokens, overflow }, (text) => {
    kept.push(text)
    return 'gateway+result:///id'
  })
  const value = JSON.parse(join(out.parts()).toString()) as { content: { type: string; text?: string; uri?: string }[] }
  return { isSame: out === payload, kept, value }
}

describe('what fits', () => {
  test('passes as it is, however it is spelled', () => {
    for (const result of [
      { content: [block('x'.repeat(80))] },
      { content: [block('x'.repeat(40)), block('y'.repeat(40))] },
      { content: [{ type: 'image', data: 'A'.repeat(1_000), mimeType: 'image/png' }, block('short')] },
      `{"content":[{"type":"text","text":"${'\\u0078'.repeat(80)}"}]}`,
      { structuredContent: { a: 'x'.repeat(60) } },
      { content: 'no list' },
      {},
    ])
      expect(limited(result)).toMatchObject({ isSame: true, kept: [] })
  })
})

describe('what does not', () => {
  test('begins in place and goes on behind a link; other blocks stay', () => {
    const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' }
    const { kept, value } = limited({ content: [block('first'), image, block(TEXT), block('last')], isError: false, x: 1.5 })
    expect(value).toEqual({
      content: [
        block('first'),
        image,
        block('x'.repeat(75)),
        block(
          '[The result goes on: about 8 of 28 tokens are not shown. Read the resource gateway+result:///id for what follows; it is kept for a while.]',
        ),
        expect.objectContaining({
          type: 'resource_link',
          uri: 'gateway+result:///id',
          mimeType: 'text/plain',
          name: 'rest-of-result',
        }),
      ],
      isError: false,
      x: 1.5,
    })
    expect(kept).toEqual([`${'x'.repeat(25)}\n\nlast`])
  })

  test('nothing is lost: head and rest together are the text', () => {
    const text = Array.from({ length: 40 }, (_, at) => `line ${at} é😀`).join('\n')
    const { kept, value } = limited({ content: [block(text)] })
    expect(`${value.content[0]!.text}${kept[0]}`).toBe(text)
    expect(value.content[0]!.text?.endsWith('\n')).toBe(true)
  })

  test('is cut and told, where it is to be lost', () => {
    const { kept, value } = limited({ content: [block(TEXT)] }, 'truncate')
    expect(value.content).toEqual([block('x'.repeat(80)), block('[The result is cut here: about 5 of 25 tokens are not shown.]')])
    expect(kept).toEqual([])
  })

  test('fails, where that is asked for', () => {
    const { kept, value } = limited({ content: [block(TEXT)], structuredContent: {} }, 'error')
    expect(value).toEqual({
      content: [block('the result has about 25 tokens, and no more than 20 are allowed here: ask for less')],
      isError: true,
    })
    expect(kept).toEqual([])
  })

  test('embedded text counts, and goes as a whole', () => {
    const resource = (text: string): object => ({ type: 'resource', resource: { uri: 'a:b', text } })
    const { kept, value } = limited({ content: [resource('y'.repeat(50)), resource(TEXT)] })
    expect(value.content.map(({ type }) => type)).toEqual(['resource', 'text', 'resource_link'])
    expect(kept).toEqual([TEXT])
  })

  test('structured content that a text repeats is left to the text', () => {
    const structured = { rows: ['x'.repeat(90)] }
    const { kept, value } = limited({ content: [block(JSON.stringify(structured, null, 2))], structuredContent: structured })
    expect(value).not.toHaveProperty('structuredContent')
    expect(JSON.parse(`${value.content[0]!.text}${kept[0]}`)).toEqual(structured)
  })

  test('structured content that stands alone, or says more than the text, is not lost', () => {
    const structured = JSON.stringify({ rows: ['x'.repeat(90)] })
    const alone = limited(`{"structuredContent":${structured}}`)
    expect(`${alone.value.content[0]!.text}${alone.kept[0]}`).toBe(structured)
    const beside = limited(`{"content":[{"type":"text","text":"two rows"}],"structuredContent":${structured}}`)
    expect(beside.value.content.map(({ type }) => type)).toEqual(['text', 'text', 'resource_link'])
    expect(beside.kept).toEqual([structured])
  })

  test('URIs that were replaced inside stay so', () => {
    const payload = Payload.at(
      Buffer.from(JSON.stringify({ content: [{ type: 'resource_link', uri: 'a:b', name: 'n' }, block(TEXT)] })),
    )
    const at = payload.bytes.indexOf('"a:b"')
    payload.replace({ start: at, end: at + 5 }, '"p+a:b"')
    const out = limitResult(payload, { maxTokens: 20, overflow: 'truncate' }, () => undefined)
    expect(join(out.parts()).toString()).toContain('{"type":"resource_link","uri":"p+a:b","name":"n"}')
  })
})

describe('a part', () => {
  test('never ends inside a character, and always goes on', () => {
    const text = 'é😀'.repeat(50)
    for (let from = 0; from < text.length;) {
      const to = cutAt(text, from, 7)
      expect(to).toBeGreaterThan(from)
      const part = text.slice(from, to)
      expect(part.isWellFormed()).toBe(true)
      expect(Buffer.byteLength(part)).toBeLessThanOrEqual(7)
      from = to
    }
  })
})
