import { afterEach, describe, expect, test } from 'vitest'
import { Overflow } from '../../../src/gateway/limits/overflow.ts'
import { join } from '../../../src/wire/message/payload.ts'

let opened: Overflow[] = []

// One left open, whose clock stands still, would set its timer again without end.
afterEach(() => {
  for (const overflow of opened) overflow.close()
  opened = []
})

const open = (options: { ttlMs?: number; maxBytes?: number } = {}) => {
  const clock = { nowMs: 0 }
  const overflow = new Overflow(
    () => ({ ttlMs: 1_000, maxBytes: 10_000, ...options }),
    () => undefined,
    () => clock.nowMs,
  )
  opened.push(overflow)
  const read = (principal: string, uri: string | undefined): string | undefined => {
    const result = overflow.read(principal, uri ?? '')
    if (result === undefined) return undefined
    const { contents } = JSON.parse(join(result.parts()).toString()) as { contents: { uri: string; text: string }[] }
    expect(contents).toEqual([{ uri, mimeType: 'text/plain', text: contents[0]!.text }])
    return contents[0]!.text
  }
  return { overflow, clock, read }
}

describe('what did not fit into a result', () => {
  test('is read part by part, each saying how to read on', () => {
    const { overflow, read } = open()
    const text = 'abcdefgh'.repeat(10)
    let uri = overflow.keep('p', text, 30)
    let whole = ''
    for (let parts = 1; uri !== undefined; parts++) {
      const [part, more] = (read('p', uri) ?? '').split('\n\n')
      whole += part
      const [, tokens, next] = /^\[About (\d+) more tokens follow: read (\S+)\]$/.exec(more ?? '') ?? []
      if (next !== undefined) expect(Number(tokens)).toBe(Math.ceil((text.length - whole.length) / 4))
      else expect(parts).toBe(3)
      uri = next
    }
    expect(whole).toBe(text)
  })

  test('T-05 is found by 128 random bits, and by nobody but the principal', () => {
    const { overflow, read } = open()
    const uri = overflow.keep('p', 'text', 100)
    expect(uri).toMatch(/^gateway\+result:\/\/\/[\w-]{22}$/)
    expect(overflow.keep('p', 'text', 100)).not.toBe(uri)
    expect(read('p', uri)).toBe('text')
    expect(read('q', uri)).toBeUndefined()
    for (const wrong of ['?from=4', '?from=-1', '?from=0&x', '/../x', 'x', '?from=99999999999'])
      expect(read('p', `${uri}${wrong}`)).toBeUndefined()
  })

  test('is gone after its time', () => {
    const { overflow, clock, read } = open()
    const uri = overflow.keep('p', 'text', 100)
    clock.nowMs = 999
    expect(read('p', uri)).toBe('text')
    clock.nowMs = 1_000
    expect(read('p', uri)).toBeUndefined()
  })

  test('makes room for what comes later, the oldest first, and is refused if it alone is too much', () => {
    const { overflow, read } = open({ maxBytes: 100 })
    const [first, second, third] = ['a', 'b', 'c'].map((letter) => overflow.keep('p', letter.repeat(20), 100))
    expect([first, second, third].map((uri) => read('p', uri)?.[0])).toEqual([undefined, 'b', 'c'])
    expect(overflow.keep('p', 'd'.repeat(51), 100)).toBeUndefined()
    expect(read('p', third)?.[0]).toBe('c')
  })
})
