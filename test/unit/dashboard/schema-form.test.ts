/** A form from the input schema of a tool, and the arguments that it makes. */
import { describe, expect, test } from 'vitest'
import { enter, fieldsOf, keyOfField, leave } from '../../../src/dashboard/model/schema-form.ts'
import type { Field, Values } from '../../../src/dashboard/model/schema-form.ts'

const object = (properties: object, required: string[] = [], more: object = {}): object => ({
  type: 'object',
  properties,
  required,
  ...more,
})
const fields = (properties: object, required: string[] = [], more: object = {}): readonly Field[] =>
  fieldsOf(object(properties, required, more)) ?? []
const entered = (all: readonly Field[], texts: Readonly<Record<string, string>>): ReturnType<typeof enter> =>
  enter(all, Object.fromEntries(Object.entries(texts).map(([path, text]) => [keyOfField({ path: path.split('.') }), text])))

describe('fields', () => {
  test.each([
    [{ type: 'string' }, 'text'],
    [{ type: ['string', 'null'] }, 'text'],
    [{ anyOf: [{ type: 'integer' }, { type: 'null' }] }, 'integer'],
    [{ type: 'number' }, 'number'],
    [{ type: 'boolean' }, 'boolean'],
    [{ enum: ['a', 1] }, 'choice'],
    [{ oneOf: [{ const: 'a' }, { const: 'b' }] }, 'choice'],
    [{ type: 'array', items: { type: 'string' } }, 'list'],
    [{ type: 'array', items: { type: 'object' } }, 'json'],
    [{ type: 'array' }, 'json'],
    [{ type: 'object', items: { type: 'string' } }, 'json'],
    [{ type: 'object', properties: { x: { type: 'string' } } }, 'group'],
    [{ type: 'object' }, 'json'],
    [{ anyOf: [{ type: 'string' }, { type: 'object' }] }, 'json'],
    [{ anyOf: [{ type: 'array', items: { type: 'string' } }, { type: 'null' }] }, 'list'],
    [{ anyOf: [{ type: 'string', enum: ['a', 'b'] }, { type: 'null' }] }, 'choice'],
    [{ oneOf: [{ type: 'null' }, { $ref: '#/$defs/Name' }] }, 'text'],
    [{ anyOf: [{ type: 'object', properties: { x: { type: 'string' } } }, { type: 'null' }] }, 'group'],
    [{ allOf: [{ $ref: '#/$defs/Name' }], default: 'a' }, 'text'],
    [{ allOf: [{ type: 'string' }, { minLength: 2 }] }, 'json'],
    [{ anyOf: [{ $ref: '#/$defs/Loop' }, { type: 'null' }] }, 'json'],
    [{ anyOf: [{ type: 'null' }] }, 'json'],
    [{ $ref: '#/$defs/Ring' }, 'json'],
    [true, 'json'],
    [{ $ref: '#/$defs/Name' }, 'text'],
    [{ $ref: '#/$defs/Loop' }, 'json'],
    [{ $ref: 'https://example.com/x' }, 'json'],
  ])('%j is a field of kind %s', (schema, kind) => {
    const $defs = { Name: { type: 'string' }, Loop: { $ref: '#/$defs/Loop' }, Ring: { anyOf: [{ $ref: '#/$defs/Ring' }] } }
    expect(fields({ x: schema }, [], { $defs })).toMatchObject([{ kind }])
  })

  test('a field is labelled by its title, or by its name, and has its example and what the schema says about it', () => {
    const schema = { title: 'Due date', description: 'When', format: 'date', pattern: '^2', default: '2026' }
    expect(fields({ due: schema })).toMatchObject([
      { label: 'Due date', hint: 'When · format: date · pattern: ^2', example: '2026' },
    ])
    expect(fields({ due: { title: 7, description: null } })).toMatchObject([{ label: 'due', hint: '', example: '' }])
    expect(fields({ n: { examples: [[1, 2], 3] }, m: { default: 5, examples: [6] } })).toMatchObject([
      { example: '[1,2]' },
      { example: '5' },
    ])
  })

  test('a value that may be null keeps the limits, the title and the choices of its other form', () => {
    const either = (schema: object): object => ({ title: 'Outer', default: null, anyOf: [schema, { type: 'null' }] })
    const [size, colour] = fields({
      size: either({ type: 'integer', title: 'Inner', minimum: 1, maximum: 9 }),
      colour: either({ enum: ['red'] }),
    })
    expect(size).toMatchObject({ kind: 'integer', label: 'Outer', example: '', limits: { least: 1, most: 9 } })
    expect(colour).toMatchObject({ kind: 'choice', choices: ['"red"', 'null'] })
    expect(leave([size!], '{"size":null}')).toBeUndefined()
  })

  test('a schema that contains itself is read no further than a form has fields', () => {
    let reads = 0
    const node = {
      type: 'object',
      get title() {
        reads++
        return ''
      },
      properties: Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`p${at}`, { $ref: '#/$defs/Node' }])),
    }
    expect(fieldsOf({ type: 'object', properties: { start: { $ref: '#/$defs/Node' } }, $defs: { Node: node } })).toBeUndefined()
    expect(reads).toBeLessThan(1_000)
  })

  test('groups are groups down to the fourth level, and JSON below', () => {
    const kinds = (some: readonly Field[]): unknown =>
      some.map(({ kind, fields: inner }) => [kind, ...(kinds(inner) as unknown[])])
    const nested = (levels: number): object => (levels === 0 ? { type: 'string' } : object({ x: nested(levels - 1) }))
    expect(kinds(fields({ x: nested(2) }))).toEqual([['group', ['group', ['text']]]])
    expect(kinds(fields({ x: nested(6) }))).toEqual([['group', ['group', ['group', ['json']]]]])
    expect(kinds(fields({ x: { type: 'object', properties: {} } }))).toEqual([['json']])
  })

  test('100 fields and 500 choices are the most, groups and their fields counted', () => {
    const members = (count: number, schema: object = {}): object =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`m${at}`, schema]))
    expect(fieldsOf(object(members(100)))).toHaveLength(100)
    expect(fieldsOf(object(members(101)))).toBeUndefined()
    expect(fieldsOf(object(members(9, object(members(10)))))).toHaveLength(9)
    expect(fieldsOf(object(members(10, object(members(10)))))).toBeUndefined()
    const choices = (count: number): object => ({ enum: Array.from({ length: count }, (_, at) => at) })
    expect(fields({ a: choices(500), b: choices(501) }).map(({ kind }) => kind)).toEqual(['choice', 'json'])
  })

  test('a reference to what the schema inherits, or does not have, is a field for JSON', () => {
    expect(fields({ a: { $ref: '#/constructor/prototype' }, b: { $ref: '#/$defs/None/x' } }).map(({ kind }) => kind)).toEqual([
      'json',
      'json',
    ])
  })

  test('a schema that nests into itself ends', () => {
    const node = { type: 'object', properties: { next: { $ref: '#/$defs/Node' } } }
    const [field] = fields({ x: { $ref: '#/$defs/Node' } }, [], { $defs: { Node: node } })
    expect(JSON.stringify(field).length).toBeLessThan(5_000)
  })

  test('what is no object, or has hundreds of members, has no form', () => {
    expect(fieldsOf({ type: 'string' })).toBeUndefined()
    expect(fieldsOf(null)).toBeUndefined()
    expect(fieldsOf(object(Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`m${at}`, {}]))))).toBeUndefined()
    expect(fieldsOf({ type: 'object' })).toEqual([])
  })
})

describe('arguments', () => {
  const all = fields(
    {
      text: { type: 'string', minLength: 2, maxLength: 4 },
      big: { type: 'integer' },
      share: { type: 'number', minimum: 0, maximum: 1 },
      tags: { type: 'array', items: { type: 'string' } },
      range: object({ from: { type: 'string' } }, ['from']),
      any: { type: 'object' },
      flag: { type: 'boolean' },
      flags: { type: 'array', items: { type: 'boolean' } },
      counts: { type: 'array', items: { type: 'integer' } },
    },
    ['text'],
  )

  test('what is empty is left out, numbers keep their spelling, lines are items', () => {
    const { json, problems } = entered(all, {
      text: 'abc',
      big: '12345678901234567890',
      share: '0.50',
      tags: 'a\n\nb c',
      any: '{"x": 1.0}',
      flags: 'true\n false',
      counts: '1\n12345678901234567890',
    })
    expect([json, problems]).toEqual([
      '{"text":"abc","big":12345678901234567890,"share":0.50,"tags":["a","b c"],"any":{"x":1.0},"flags":[true,false],"counts":[1,12345678901234567890]}',
      {},
    ])
  })

  test.each([
    [{}, 'text', 'is required'],
    [{ text: 'a' }, 'text', 'needs at least 2 characters'],
    [{ text: '👍👍👍👍👍' }, 'text', 'has at most 4 characters'],
    [{ text: 'ab', big: '1.5' }, 'big', 'is not a whole number'],
    [{ text: 'ab', big: '0x10' }, 'big', 'is not a whole number'],
    [{ text: 'ab', share: '2' }, 'share', 'must be at most 1'],
    [{ text: 'ab', share: '-0.1' }, 'share', 'must be at least 0'],
    [{ text: 'ab', any: '{' }, 'any', 'is not JSON'],
    [{ text: 'ab', flags: 'true\nyes' }, 'flags', 'line 2 is not true or false'],
    [{ text: 'ab', counts: '1.5' }, 'counts', 'line 1 is not a whole number'],
  ])('%j: %s %s', (texts, name, problem) => {
    expect(entered(all, texts as Record<string, string>).problems).toEqual({ [keyOfField({ path: [name] })]: problem })
  })

  test.each([
    { text: 'ab', share: '0' },
    { text: 'abcd', share: '1' },
  ])('limits themselves are allowed: %j', (texts) => {
    expect(entered(all, texts).problems).toEqual({})
  })

  test('a choice that exists is selected, and another one is edited as JSON', () => {
    const choice = fields({ size: { enum: ['s', 1] } })
    expect(leave(choice, '{"size":1}')?.values).toEqual({ '["size"]': '1' })
    expect(leave(choice, '{"size":"m"}')).toBeUndefined()
  })

  test('a group that may be left out needs nothing while it is empty', () => {
    expect(entered(all, { text: 'ab' })).toEqual({ json: '{"text":"ab"}', problems: {} })
    const needed = fields({ range: object({ from: { type: 'string' } }, ['from']) }, ['range'])
    expect(entered(needed, {}).problems).toEqual({ '["range","from"]': 'is required' })
  })

  test('what was entered in a group that may be left out is reported or sent, never left out', () => {
    const group = fields({ range: object({ from: { type: 'integer' }, to: { type: 'integer' } }, ['to']) })
    expect(entered(group, { 'range.from': 'abc' }).problems).toEqual({
      [keyOfField({ path: ['range', 'from'] })]: 'is not a whole number',
      [keyOfField({ path: ['range', 'to'] })]: 'is required',
    })
  })

  test('a group that may be left out needs nothing while it is empty, also if it needs a group itself', () => {
    const login = object({ token: { type: 'string' } }, ['token'])
    const outer = fields({ options: object({ login }, ['login']) })
    expect(entered(outer, {})).toEqual({ json: '{}', problems: {} })
    expect(entered(outer, { 'options.login.token': 'x' })).toEqual({ json: '{"options":{"login":{"token":"x"}}}', problems: {} })
  })

  test('a choice whose digits are lost in the page is entered by hand', () => {
    const id = JSON.parse('{"type":"integer","enum":[9007199254740993,1]}') as object
    expect(fields({ id })).toMatchObject([{ kind: 'integer' }])
    expect(fields({ id: { enum: [1.5, 2, -9007199254740991] } })).toMatchObject([{ kind: 'choice' }])
    expect(fields({ id: { oneOf: [{ const: { n: [2 ** 60] } }] } })).toMatchObject([{ kind: 'json' }])
  })

  test('arguments that exist come back as they were, members that the schema does not name among them', () => {
    const json = '{"text":"abc","big":12345678901234567890,"tags":["a","b"],"range":{"from":"x"},"more":[1.0]}'
    const { values, extra } = leave(all, json) as { values: Values; extra: Values }
    expect(enter(all, values, extra).json).toBe(json)
  })

  test.each([
    '{"text":1}',
    '{"tags":[1]}',
    '{"tags":[]}',
    '{"tags":["a\\nb"]}',
    '{"range":{"other":1}}',
    '{"range":{}}',
    '{"text":""}',
    '{"big":null}',
    '{"share":true}',
    '{"flag":null}',
    '{"flag":1}',
    '{"flags":[null]}',
    '{"counts":[true]}',
    '[]',
    'x',
  ])('a form does not pretend to hold %s', (json) => {
    expect(leave(all, json)).toBeUndefined()
  })

  test('names such as __proto__ are names', () => {
    const odd = fields(JSON.parse('{"__proto__":{"type":"string"}}') as object)
    expect(entered(odd, { __proto__x: '' }).json).toBe('{}')
    expect(enter(odd, { '["__proto__"]': 'x' }).json).toBe('{"__proto__":"x"}')
    const { values, extra } = leave(all, '{"__proto__":{"a":1},"toString":2}') as { values: Values; extra: Values }
    expect(enter(all, values, extra).json).toBe('{"__proto__":{"a":1},"toString":2}')
  })
})
