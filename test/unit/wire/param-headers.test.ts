import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  checkParamHeaders,
  headersFor,
  readParamHeaders,
  withoutBadAnnotations,
} from '../../../src/wire/headers/param-headers.ts'
import type { ParamHeader } from '../../../src/wire/headers/param-headers.ts'

const read = (schema: unknown): ReturnType<typeof readParamHeaders> =>
  readParamHeaders(Buffer.from(typeof schema === 'string' ? schema : JSON.stringify(schema)))
const region = { type: 'string', 'x-mcp-header': 'Region' }

describe('x-mcp-header', () => {
  test('annotations reached through properties alone are read, nested ones too', () => {
    const schema = {
      type: 'object',
      properties: { region, at: { type: 'object', properties: { n: { type: 'integer', 'x-mcp-header': 'N' } } } },
    }
    expect(read(schema)).toEqual({
      headers: [
        { name: 'Region', path: ['region'], type: 'string' },
        { name: 'N', path: ['at', 'n'], type: 'integer' },
      ],
    })
  })

  test('a property or data of that name is no annotation', () => {
    const schema = {
      properties: { 'x-mcp-header': { type: 'string' }, a: { default: { 'x-mcp-header': '' }, enum: [{ 'x-mcp-header': 1 }] } },
    }
    expect(read(schema)).toEqual({ headers: [] })
    expect(read({ properties: { properties: { properties: { b: region } } } })).toMatchObject({
      headers: [{ path: ['properties', 'b'] }],
    })
  })

  test.each([
    ['empty', { properties: { a: { ...region, 'x-mcp-header': '' } } }],
    ['no token', { properties: { a: { ...region, 'x-mcp-header': 'a b' } } }],
    ['a line break', { properties: { a: { ...region, 'x-mcp-header': 'a\r\nX: y' } } }],
    ['no string', { properties: { a: { ...region, 'x-mcp-header': 1 } } }],
    ['type number', { properties: { a: { type: 'number', 'x-mcp-header': 'A' } } }],
    ['no type', { properties: { a: { 'x-mcp-header': 'A' } } }],
    ['several types', { properties: { a: { type: ['string', 'null'], 'x-mcp-header': 'A' } } }],
    ['duplicate ignoring case', { properties: { a: region, b: { ...region, 'x-mcp-header': 'REGION' } } }],
    ['at the root', { ...region, properties: {} }],
    ['under items', { properties: { a: { type: 'array', items: region } } }],
    ['under anyOf', { properties: { a: { anyOf: [region] } } }],
    ['under $defs', { $defs: { a: region }, properties: { a: { $ref: '#/$defs/a' } } }],
    ['under then', '{"then":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}'],
    ['under additionalProperties', { additionalProperties: region }],
    ['escaped', '{"properties":{"a":{"type":"number","x\\u002dmcp-header":"A"}}}'],
    ['repeated', '{"properties":{"a":{"type":"string","x-mcp-header":"A","x-mcp-header":"B"}}}'],
  ])('B220 %s: the tool is invalid', (_, schema) =>
    expect(read(schema)).toEqual({ invalid: expect.stringContaining('x-mcp-header') }),
  )

  test('of a pipe server only the bad annotations are removed, no other byte', () => {
    const raw =
      '{"name":"t", "inputSchema":{"properties":{"a":{"x-mcp-header":"","type":"string"},"b":{"type":"number" , "x-mcp-header":"B"}, "c":{"type":"string","x-mcp-header":"C"},"d":{"x-mcp-header":"c"}},"x":1.0}}'
    expect(withoutBadAnnotations(Buffer.from(raw)).toString()).toBe(
      '{"name":"t", "inputSchema":{"properties":{"a":{"type":"string"},"b":{"type":"number"}, "c":{"type":"string","x-mcp-header":"C"},"d":{}},"x":1.0}}',
    )
    const good = Buffer.from('{"name":"t","inputSchema":{}}')
    expect(withoutBadAnnotations(good)).toBe(good)
  })
})

describe('Mcp-Param-* headers', () => {
  const headers: ParamHeader[] = [
    { name: 'S', path: ['s'], type: 'string' },
    { name: 'N', path: ['o', 'n'], type: 'integer' },
    { name: 'B', path: ['b'], type: 'boolean' },
  ]
  const made = (args: string): Record<string, string> => headersFor(headers, Buffer.from(args))
  const checked = (args: string, sent: Record<string, string | string[]>): string | undefined =>
    checkParamHeaders(headers, Buffer.from(args), sent)

  test('values are taken at their exact path', () => {
    expect(made('{"s":"\\u0041é","o":{"n":-7},"b":false,"n":1}')).toEqual({
      'mcp-param-s': '=?base64?QcOp?=',
      'mcp-param-n': '-7',
      'mcp-param-b': 'false',
    })
    expect(made('{"o":{"n":1e3},"s":""}')).toEqual({ 'mcp-param-s': '', 'mcp-param-n': '1000' })
  })

  test('B192 null, absent, and integers outside the safe range have no header', () => {
    expect(made('{"s":null,"o":null}')).toEqual({})
    expect(made('{"o":{"n":9007199254740993},"b":{}}')).toEqual({})
    expect(headersFor(headers, undefined)).toEqual({})
    expect(checked('{"s":null}', {})).toBeUndefined()
    expect(checkParamHeaders(headers, undefined, {})).toBeUndefined()
  })

  test('B192 what has no header by our count may have one: a host may write an unsafe integer or an object', () => {
    for (const args of ['{"o":{"n":9007199254740993}}', '{"o":{"n":{}}}', '{"o":{"n":[1]}}'])
      expect(checked(args, { 'mcp-param-n': '9007199254740993' })).toBeUndefined()
    for (const args of ['{"o":{"n":null}}', '{"o":{}}', '{"o":null}', '{}'])
      expect(checked(args, { 'mcp-param-n': '1' })).toBe('the header Mcp-Param-N is sent without the parameter o.n')
  })

  test('B192 missing, differing, repeated or undecodable headers are told', () => {
    expect(checked('{"s":"a"}', {})).toBe('the header Mcp-Param-S is missing')
    expect(checked('{"s":"a"}', { 'mcp-param-s': 'A' })).toBe('the header Mcp-Param-S differs from the parameter s')
    expect(checked('{"s":"a"}', { 'mcp-param-s': '=?base64?*?=' })).toBe('the header Mcp-Param-S cannot be decoded')
    expect(checked('{"s":"a"}', { 'mcp-param-s': ['a', 'b'] })).toBe('the header Mcp-Param-S cannot be decoded')
    expect(checked('{"b":true}', { 'mcp-param-b': 'True' })).toMatch('differs')
    for (const args of ['{}', '{"s":null}', '{"o":{"s":"a"}}'])
      expect(checked(args, { 'mcp-param-s': 'a' })).toBe('the header Mcp-Param-S is sent without the parameter s')
    expect(checked('{"s":"é","b":true}', { 'mcp-param-s': '=?base64?w6k=?=', 'mcp-param-b': 'true' })).toBeUndefined()
  })

  test('B193 integers are compared as numbers', () => {
    expect(checked('{"o":{"n":42.0}}', { 'mcp-param-n': '42' })).toBeUndefined()
    expect(checked('{"o":{"n":42}}', { 'mcp-param-n': '042' })).toBeUndefined()
    expect(checked('{"o":{"n":42}}', { 'mcp-param-n': '0x2a' })).toMatch('differs')
    expect(checked('{"o":{"n":42}}', { 'mcp-param-n': '43' })).toMatch('differs')
    expect(checked('{"s":"42"}', { 'mcp-param-s': '042' })).toMatch('differs')
  })

  test('B022 what we make is what we accept, for any strings and safe integers', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.maxSafeInteger(), fc.boolean(), (s, n, b) => {
        const args = JSON.stringify({ s, o: { n }, b })
        const sent = Object.fromEntries(Object.entries(made(args)).map(([name, value]) => [name.toLowerCase(), value]))
        expect(checked(args, sent)).toBeUndefined()
      }),
    )
  })
})
