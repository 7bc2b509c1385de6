/** One change to a text: what it says afterwards, and that all else stays as it was written. */
import { expect, test } from 'vitest'
import { diffLines } from '../../../src/host-files/edit/diff.ts'
import { replaceScalar } from '../../../src/host-files/edit/edit-yaml.ts'
import { appendIn, removeIn, setIn } from '../../../src/host-files/edit/editor.ts'
import type { Steps } from '../../../src/host-files/edit/text-format.ts'

const LINES = `servers:
  - name: one # the first
  - name: two # the second
more: 1 # behind
`
const JSON_LINES = `{
  // ours
  "servers": [
    { "name": "one" }, // the first
    { "name": "two" } // the second
  ]
}
`

test.each([
  ['lines of YAML', 'a.yaml', LINES, LINES.replace('  - name: one # the first\n', '').replace('more', '  - name: new\nmore')],
  [
    'YAML on one line',
    'a.yaml',
    'servers: [{ name: one }, { name: two }] # x\n',
    'servers: [{ name: two }, { name: "new" }] # x\n',
  ],
  [
    'lines of JSON',
    'a.json',
    JSON_LINES,
    JSON_LINES.replace('    { "name": "one" }, // the first\n', '').replace(
      '} // the second',
      '}, // the second\n    {\n      "name": "new"\n    }',
    ),
  ],
  [
    'JSON on one line',
    'a.json',
    '{"servers": [{"name":"one"}, {"name":"two"}]}',
    '{"servers": [{"name":"two"}, {"name":"new"}]}',
  ],
])('in %s another item of a list is written behind the last, in place of the old one', (_name, file, text, expected) => {
  expect(setIn(file, text, ['servers', 0], { name: 'new' })).toBe(expected)
  const again = setIn(file, expected, ['servers', 1], { name: 'other' })
  expect(again).toBe(expected.replace('new', 'other'))
})

type Edit = (file: string, text: string) => string
const set =
  (steps: Steps, value: unknown): Edit =>
  (file, text) =>
    setIn(file, text, steps, value)
const remove =
  (...steps: Steps): Edit =>
  (file, text) =>
    removeIn(file, text, steps)
const append =
  (steps: Steps, ...values: readonly unknown[]): Edit =>
  (file, text) =>
    appendIn(file, text, steps, values)

test.each<[file: string, text: string, edit: Edit, expected: string]>([
  // JSON
  ['a.json', '{"a":null}', set(['a', 'b'], 1), '{"a":{"b":1}}'],
  ['a.json', '{"a":null,"c":2}', set(['a'], 1), '{"c":2, "a": 1}'],
  ['a.json', '{ "a": 1, }', set(['b'], 2), '{ "a": 1, "b": 2, }'],
  ['a.json', '{\n  "a": 1,\n}\n', set(['b'], 2), '{\n  "a": 1,\n  "b": 2,\n}\n'],
  ['a.json', '{\n  "a": 1 /* x */\n}\n', set(['b'], 2), '{\n  "a": 1, /* x */\n  "b": 2\n}\n'],
  ['a.json', '{\n\t"a": {\n\t}\n}\n', set(['a', 'b'], { c: 1 }), '{\n\t"a": {\n\t\t"b": {\n\t\t\t"c": 1\n\t\t}\n\t}\n}\n'],
  ['a.json', '{\n  "a": {\n    // none\n  }\n}\n', set(['a', 'b'], 1), '{\n  "a": {\n    // none\n    "b": 1\n  }\n}\n'],
  ['a.json', '\n   \n{\n    "a": 1\n}', set(['b'], 2), '\n   \n{\n    "a": 1,\n    "b": 2\n}'],
  ['a.json', '{ "a": 1, "b": 2 }', remove('a'), '{ "b": 2 }'],
  ['a.json', '{ "a": 1, "b": 2 }', remove('b'), '{ "a": 1 }'],
  ['a.json', '{ "a": 1, "b": 2, }', remove('b'), '{ "a": 1, }'],
  ['a.json', '{ "a": 1 }', remove('a'), '{  }'],
  ['a.json', '{ "a": 1, }', remove('a'), '{  }'],
  ['a.json', '{\n  "a": 1,\n  "b": 2\n}\n', remove('b'), '{\n  "a": 1\n}\n'],
  ['a.json', '{\n  "a": 1,\n  "b": 2,\n}\n', remove('b'), '{\n  "a": 1,\n}\n'],
  ['a.json', '{\n  "a": 1, "b": 2\n}\n', remove('b'), '{\n  "a": 1\n}\n'],
  ['a.json', '{\n  "a": 1, "b": 2\n}\n', remove('a'), '{\n  "b": 2\n}\n'],
  ['a.json', '{\n  "a": 1 // x\n  , "b": 2\n}\n', remove('c'), '{\n  "a": 1 // x\n  , "b": 2\n}\n'],
  ['a.json', '{"a":[1,2,3]}', remove('a', 1), '{"a":[1,3]}'],
  ['a.json', '{"a":[1]}', append(['a'], 2, 3), '{"a":[1, 2, 3]}'],
  ['a.json', '', set(['a', 'b'], 1), '{\n  "a": {\n    "b": 1\n  }\n}\n'],
  // TOML
  ['a.toml', '', set(['a', 'b'], { c: 1 }), '[a.b]\nc = 1\n'],
  ['a.toml', 'x = 1', set(['a', 'b'], { c: 1 }), 'x = 1\n\n[a.b]\nc = 1\n'],
  ['a.toml', 'x = 1\n', set(['a', 'b'], { c: 1 }), 'x = 1\n\n[a.b]\nc = 1\n'],
  ['a.toml', 'x = 1\n\n', set(['a', 'b'], { c: 1 }), 'x = 1\n\n[a.b]\nc = 1\n'],
  ['a.toml', 'x = 1\r\n\r\n', set(['a', 'b'], { c: 1 }), 'x = 1\r\n\r\n[a.b]\r\nc = 1\r\n'],
  ['a.toml', '[a.b] # x\nc = 1\n\n# of d\n[d]\ne = 1\n', remove('a', 'b'), '\n# of d\n[d]\ne = 1\n'],
  ['a.toml', '[a.\'b c\']\nc = 1\n[a."b c".env]\nd = 1\n[a.x]\ny = 1\n', remove('a', 'b c'), '[a.x]\ny = 1\n'],
  ['a.toml', '[a.b]\n# of c\nc = 1\n\n# at the end\n', remove('a', 'b'), '# at the end\n'],
  // YAML
  ['a.yaml', '', set(['a', 'b'], 1), 'a:\n  b: 1\n'],
  ['a.yaml', 'x: 1', set(['a', 'b'], 1), 'x: 1\na:\n  b: 1\n'],
  ['a.yaml', '# only\n', set(['a'], 1), '# only\na: 1\n'],
  ['a.yaml', '# only', set(['a'], 1), '# only\na: 1\n'],
  ['a.yaml', 'a:\nx: 1\n', set(['a', 'b'], 1), 'a:\n  b: 1\nx: 1\n'],
  ['a.yaml', 'a: # none\nx: 1\n', set(['a', 'b'], 1), 'a: # none\n  b: 1\nx: 1\n'],
  ['a.yaml', 'a: {} # none\nx: 1\n', set(['a', 'b'], 1), 'a: # none\n  b: 1\nx: 1\n'],
  ['a.yaml', 'a: {}', set(['a', 'b'], 1), 'a:\n  b: 1\n'],
  ['a.yaml', 'o:\n  a: {}\n  x: 1\n', set(['o', 'a', 'b'], 1), 'o:\n  a:\n    b: 1\n  x: 1\n'],
  ['a.yaml', 'o:\n  a:\n  x: 1\n', set(['o', 'a', 'b'], 1), 'o:\n  a:\n    b: 1\n  x: 1\n'],
  ['a.yaml', 'a: { b: { c: 1 } }\n', set(['a', 'b', 'd'], 2), 'a: { b: { c: 1, d: 2 } }\n'],
  ['a.yaml', 'a: { b: { } }\n', set(['a', 'b', 'd'], 'x y'), 'a: { b: {d: "x y" } }\n'],
  ['a.yaml', 'a: { b: 1 }\n', set(['a', 'c d'], [1, { e: 2 }]), 'a: { b: 1, "c d": [1, { e: 2 }] }\n'],
  ['a.yaml', 'a: [1]\n', append(['a'], 2, 3), 'a: [1, 2, 3]\n'],
  ['a.yaml', 'a:\n  - 1 # one\nx: 1\n', append(['a'], 2), 'a:\n  - 1 # one\n  - 2\nx: 1\n'],
  ['a.yaml', 'a:\n  b:\n    c: 1\n\n# of x\nx: 1\n', set(['a', 'd'], 2), 'a:\n  b:\n    c: 1\n  d: 2\n\n# of x\nx: 1\n'],
  ['a.yaml', 'a:\r\n  b: 1\r\n', set(['a', 'c'], 2), 'a:\r\n  b: 1\r\n  c: 2\r\n'],
  ['a.yaml', 'a:\n  b:\n', set(['a', 'c'], 2), 'a:\n  b:\n  c: 2\n'],
  ['a.yaml', 'a:\n  b: ~ # x\n', set(['a', 'c'], 2), 'a:\n  b: ~ # x\n  c: 2\n'],
  ['a.yaml', 'a:\n  b: |\n    text\nx: 1\n', set(['a', 'c'], 2), 'a:\n  b: |\n    text\n  c: 2\nx: 1\n'],
  ['a.yaml', 'a:\n  b: 1\n  c: 2\n', remove('a', 'b'), 'a:\n  c: 2\n'],
  ['a.yaml', 'a: { b: 1, c: 2 }\n', remove('a', 'b'), 'a: { c: 2 }\n'],
  ['a.yaml', 'a: { b: 1, c: 2 }\n', remove('a', 'c'), 'a: { b: 1 }\n'],
  ['a.yaml', 'a: { b: 1 }\n', remove('a', 'b'), 'a: {  }\n'],
  ['a.yaml', 'a:\n- b: 1\n  c: 2\n', remove('a', 0, 'b'), 'a:\n  - c: 2\n'],
  ['a.yaml', 'a:\r\n- b: 1\r\n  c: 2\r\n', remove('a', 0, 'b'), 'a:\r\n  - c: 2\r\n'],
  // Texts in place.
  ['a.yaml', 'a: old # x\nb: 1\n', set(['a'], 'new one.'), 'a: new one. # x\nb: 1\n'],
  ['a.yaml', 'a: old # x\n', set(['a'], 'yes: no'), 'a: "yes: no" # x\n'],
  ['a.yaml', 'a: old\n', set(['a'], 'true'), 'a: "true"\n'],
  ['a.yaml', 'a: old\n', set(['a'], 'x '), 'a: "x "\n'],
  ['a.yaml', 'a: 1\nb: 2\n', set(['a'], 3), 'b: 2\na: 3\n'],
  ['a.yaml', 'a: |\n  old\nb: 2\n', set(['a'], 'new'), 'b: 2\na: new\n'],
])('in %s %j is edited, and nothing beside', (file, text, edit, expected) => {
  expect(edit(file, text)).toBe(expected)
})

test.each<[file: string, text: string, message: RegExp]>([
  ['a.json', '{"a":1,\n  b}', /^does not parse as JSON \(InvalidSymbol at line 2, column 3\)/],
  ['a.json', '[]', /does not contain a JSON object/],
  ['a.json', '5', /does not contain a JSON object/],
  ['a.json', 'null', /does not contain a JSON object/],
  ['a.toml', 'a = 1\nb', /^does not parse as TOML \(line 2, column \d+\)/],
  ['a.yaml', 'a: 1\nb: [', /^does not parse as YAML \(.* at line 2, column \d+\)/],
  ['a.yaml', '- a\n', /does not hold a mapping/],
  ['a.yml', 'text', /does not hold a mapping/],
  ['a.yaml', 'a: *x\n', /^does not parse as YAML \(Unresolved alias.*: x\)/],
])('%s with %j is refused', (file, text, message) => {
  for (const edit of [set(['x'], 1), remove('x')]) expect(() => edit(file, text)).toThrow(message)
})

test('a text that is written in another place, too, is not replaced', () => {
  expect(() => set(['a'], 'new')('a.yaml', 'a: &x old\nb: *x\n')).toThrow(/cannot be changed without damage/)
})

test.each<[text: string, steps: Steps, value: string, expected: string | undefined]>([
  ['a: { b: old, c: 1 }', ['a', 'b'], 'x/y-1.0', 'a: { b: x/y-1.0, c: 1 }'],
  ['a: { b: old, c: 1 }', ['a', 'b'], 'x, y', 'a: { b: "x, y", c: 1 }'],
  ['a: [old]', ['a', 0], 'new', 'a: [new]'],
  ['a: |\n  old\n', ['a'], 'new', undefined],
  ['a:\n', ['a'], 'new', undefined],
  ['a: { b: 1 }', ['a'], 'new', undefined],
  ['a: 1', ['a', 'b'], 'new', undefined],
  ['a: 1', ['b'], 'new', undefined],
])('the value in %j at %j becomes %j', (text, steps, value, expected) => {
  const replaced = (): string => replaceScalar(text, steps, value)
  if (expected === undefined) expect(replaced).toThrow(`holds no one-line value at ${steps.join('.')}`)
  else expect(replaced()).toBe(expected)
})

test.each<[before: string, after: string, lines: readonly string[]]>([
  ['', 'a\n', ['+ a']],
  ['a\n', '', ['- a']],
  ['a\r\nb\r\n', 'a\nc\n', ['  a', '- b', '+ c']],
  ['1\n2\n3\n4\n5\n6\n', '1\n2\n3\n4\n5\nx\n', ['  3', '  4', '  5', '- 6', '+ x']],
  ['a\n', 'a\n', []],
  [
    'x\n1\n2\n3\n4\n5\n6\n7\ny\n',
    'X\n1\n2\n3\n4\n5\n6\n7\nY\n',
    ['- x', '+ X', '  1', '  2', '  3', '⋮', '  5', '  6', '  7', '- y', '+ Y'],
  ],
])('the change from %j to %j is shown with three lines around it', (before, after, lines) => {
  expect(diffLines(before, after)).toEqual(lines)
})
