import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { unaliasArguments } from '../../../src/catalog/names/unalias.ts'
import { exposeUri } from '../../../src/catalog/names/uris.ts'

const unaliased = (json: string): string => unaliasArguments(Buffer.from(json), 'fs').toString()

describe('B167 exposed URIs in arguments', () => {
  test.each([
    ['{"uri":"fs+file:///a"}', '{"uri":"file:///a"}'],
    ['{"a":["fs+m:1",{"b":"ui://~fs/x"}],"fs+m:key":"fs+git+ssh://h"}', '{"a":["m:1",{"b":"ui://x"}],"fs+m:key":"git+ssh://h"}'],
    ['[1e+1,"fs+m:1",1e+1]', '[1e+1,"m:1",1e+1]'],
    ['["~","ui://~fs/x","~"]', '["~","ui://x","~"]'],
    ['{"a" : "fs+m:\\"q\\\\" , "b":9007199254740993}', '{"a" : "m:\\"q\\\\" , "b":9007199254740993}'],
  ])('%s becomes %s', (json, expected) => expect(unaliased(json)).toBe(expected))

  test.each([
    '{"a":"see fs+file:///a"}',
    '{"a":"db+file:///a","b":"ui://~db/x","c":"fs+relative","d":"fs+","e":"fs+1:x","f":"fs+:"}',
    '{"a":"\\u0066s+file:///a"}',
    '{"fs+m:x" :1,"b":"x \\"fs+m:1"}',
    '{"a":"\\\\","b":"\\"fs+m:1\\""}',
  ])('%s passes as it is', (json) => expect(unaliased(json)).toBe(json))

  test('what does not hold the prefix is the same buffer', () => {
    const args = Buffer.from('{"a":"file:///x"}')
    expect(unaliasArguments(args, 'fs')).toBe(args)
  })

  test.each([0, 1, 4_095, 4_096, 4_097, 20_000])('a URI behind %i other + and ~ is found, and one before them', (marks) => {
    const others = ['"x"', ...Array.from({ length: marks }, () => '"+~"')].join(',')
    for (const [exposed, own] of [
      ['"fs+m:1"', '"m:1"'],
      ['"ui://~fs/x"', '"ui://x"'],
    ] as const) {
      expect(unaliased(`[${others},${exposed}]`)).toBe(`[${others},${own}]`)
      expect(unaliased(`[${exposed},${others}]`)).toBe(`[${own},${others}]`)
    }
    const none = Buffer.from(`["s+","fs ",${others},"ui://~f"]`)
    expect(unaliasArguments(none, 'fs')).toBe(none)
  })

  test('T-26 B019 any arguments: exposed strings come back, all other bytes stay', () => {
    const uri = fc.constantFrom('file:///a', 'ui://x/y', 'm:"\\', 'git+ssh://h')
    const odd = fc.constantFrom(
      '9007199254740993',
      '1.0',
      '-0',
      '1e400',
      '"\\ud800"',
      '"fs+"',
      '"ui://~fsx/"',
      '{"__proto__":1,"__proto__":2}',
      '" fs+m:1"',
    )
    const value = fc.oneof(
      uri.map((text) => ({ sent: JSON.stringify(exposeUri('fs', text)), kept: JSON.stringify(text) })),
      odd.map((text) => ({ sent: text, kept: text })),
      fc.jsonValue().map((any) => ({ sent: JSON.stringify(any, undefined, 1), kept: JSON.stringify(any, undefined, 1) })),
    )
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string(), value)), (members) => {
        const print = (pick: 'sent' | 'kept'): string =>
          `{${members.map(([key, text]) => `${JSON.stringify(key)} :\t${text[pick]}`).join(' , ')},"fs+m:k":["fs+fs+m:1"]}`.replace(
            '{,',
            '{',
          )
        expect(unaliased(print('sent'))).toBe(print('kept').replace(/"fs\+fs\+m:1"\]\}$/, '"fs+m:1"]}'))
      }),
    )
  })
})
