import { describe, expect, test } from 'vitest'
import { readArguments } from '../../../src/commands/terminal/arguments.ts'

const SCHEMA = {
  type: 'object',
  properties: {
    text: { type: 'string' },
    number: { type: 'number' },
    list: { type: 'array' },
    // As Pydantic describes an optional text.
    maybe: { anyOf: [{ type: 'string' }, { type: 'null' }], default: null },
    either: { type: ['string', 'integer'] },
    count: { oneOf: [{ type: 'integer' }, { type: 'null' }] },
  },
}

describe('arguments of trunkline call', () => {
  test.each([
    ['a text stays one', ['text=12'], '{"text":"12"}'],
    ['a number keeps its digits', ['number=1.0'], '{"number":1.0}'],
    ['a value may hold =', ['text=a=b'], '{"text":"a=b"}'],
    ['a list is JSON', ['list=[1, 2]'], '{"list":[1, 2]}'],
    ['what the schema does not know is JSON if it reads so', ['other=true', 'more=word'], '{"other":true,"more":"word"}'],
    ['a text that may be null stays one', ['maybe=12'], '{"maybe":"12"}'],
    ['a text that may be null is null', ['maybe=null'], '{"maybe":null}'],
    ['a text or a whole number is what it reads as', ['either=12'], '{"either":12}'],
    ['a text or a whole number is a text', ['either=1.5'], '{"either":"1.5"}'],
    ['a number that may be null', ['count=7'], '{"count":7}'],
    [
      'one object is relayed as it is typed',
      [' {"big": 12345678901234567890, "text": "a=b"}'],
      ' {"big": 12345678901234567890, "text": "a=b"}',
    ],
    ['none', [], '{}'],
  ])('%s', (_, pairs, json) => {
    expect(readArguments(pairs, undefined, SCHEMA)).toBe(json)
  })

  test('--args is relayed as it is typed', () => {
    expect(readArguments([], '{"big": 12345678901234567890}', SCHEMA)).toBe('{"big": 12345678901234567890}')
  })

  test.each([
    [['number=many'], undefined, /number is of type number by the tool's schema, got "many"; write it as JSON/],
    [['count=many'], undefined, /count is of type integer or null by the tool's schema, got "many"; write it as JSON/],
    [['word'], undefined, /expected key=value, got "word"; or give all of them with --args JSON/],
    [['{"text": "a=b"'], undefined, /the arguments are not a JSON object: {"text": "a=b"/],
    [['text=a', 'number=1', 'text=b'], undefined, /text is given twice; write a list as text='\[1,2\]'/],
    [[], '[1]', /--args is not a JSON object/],
    [['a=1'], '{}', /not both/],
  ])('%j %s is refused with what to do', (pairs, json, words) => {
    expect(() => readArguments(pairs, json, SCHEMA)).toThrow(words)
  })
})
