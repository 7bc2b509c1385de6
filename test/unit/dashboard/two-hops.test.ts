/** Both sides of a message beside each other, and JSON that keeps its spelling. */
import { expect, test } from 'vitest'
import { indentJson, memberIn, MOST_IN_TREE, readJson, writeJson } from '../../../src/values/json-tree.ts'
import { changesBetween, compareHops, foldLines, formatPath } from '../../../src/dashboard/model/two-hops.ts'
import { diffMessages } from '../../../src/observe/capture/diff.ts'

const beside = (from: string, to: string): string[] =>
  (compareHops(from, to, diffMessages(from, to, 'down')) ?? []).map(
    ({ from, to, change }) => `${from?.text ?? ''} | ${to?.text ?? ''}${change === undefined ? '' : ` (${change.rule})`}`,
  )

test('a member that was replaced, one that was added and one that was removed stand at their lines, with the rule', () => {
  const from =
    '{"id":"a","params":{"name":"gh__x","arguments":{"q":1.0},"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"h"}}}}'
  const to = '{"id":7,"params":{"name":"x","arguments":{"q":1.0,"org":"acme"},"_meta":{}}}'
  expect(beside(from, to)).toEqual([
    '{ | {',
    '"id": "a", | "id": 7, (4)',
    '"params": { | "params": {',
    '"name": "gh__x", | "name": "x", (4.2)',
    '"arguments": { | "arguments": {',
    '"q": 1.0 | "q": 1.0,',
    ' | "org": "acme" (tools.*.args)',
    '}, | },',
    '"_meta": { | "_meta": {',
    '"io.modelcontextprotocol/clientInfo": { |  (B013)',
    '"name": "h" |  (B013)',
    '} |  (B013)',
    '} | }',
    '} | }',
    '} | }',
  ])
})

test.each([
  [
    'an added member in front',
    '{"id":1,"b":2}',
    '{"c":3,"id":1,"b":2}',
    ['{ | {', '"id": 1, | "id": 1,', '"b": 2 | "b": 2,', ' | "c": 3 ()', '} | }'],
  ],
  ['other order', '{"a":1,"b":2}', '{"b":2,"a":1}', ['{ | {', '"a": 1, | "a": 1,', '"b": 2 | "b": 2', '} | }']],
  ['a last member removed', '{"a":1,"b":2}', '{"a":1}', ['{ | {', '"a": 1, | "a": 1', '"b": 2 |  ()', '} | }']],
])('a comma stands between the lines of each side: %s', (_, from, to, lines) => {
  expect(beside(from, to)).toEqual(lines)
})

test('between two definitions, a removed member has only its old value, and an added one only its new value', () => {
  expect(changesBetween('{"name":"x","title":"X"}', '{"name":"x","icons":[]}')).toMatchObject([
    { path: ['title'], change: 'removed', from: '"X"', to: null },
    { path: ['icons'], change: 'added', from: null, to: '[]' },
  ])
})

test('a value of another kind is a change as a whole', () => {
  expect(changesBetween('{"a":{"b":1},"c":[1]}', '{"a":[1],"c":[2]}')).toMatchObject([
    { path: ['a'], change: 'replaced', from: '{"b":1}', to: '[1]' },
    { path: ['c', 0], change: 'replaced', from: '1', to: '2' },
  ])
  expect(beside('{"id":{"b":1}}', '{"id":[1]}')).toEqual([
    '{ | {',
    '"id": { | "id": [ (4)',
    '"b": 1 | 1 (4)',
    '} | ] (4)',
    '} | }',
  ])
})

test('values of different kinds stand beside each other, also where no change is named', () => {
  const lines = compareHops('[[1]]', '[{"b":1}]', []) ?? []
  expect(lines.map(({ from, to }) => `${from?.text} | ${to?.text}`)).toEqual(['[ | [', '[ | {', '1 | "b": 1', '] | }', '] | ]'])
})

test('both sides are indented by how deep a line is', () => {
  const lines = compareHops('{"a":{"b":[1]},"c":{"d":1}}', '{"a":{"b":[1]},"e":{"f":2}}', []) ?? []
  expect(lines.map(({ from, to }) => [from?.depth, to?.depth])).toEqual([
    [0, 0],
    [1, 1],
    [2, 2],
    [3, 3],
    [2, 2],
    [1, 1],
    [1, undefined],
    [2, undefined],
    [1, undefined],
    [undefined, 1],
    [undefined, 2],
    [undefined, 1],
    [0, 0],
  ])
})

test('what is the same and far from every change is folded, and nothing is lost', () => {
  const members = Array.from({ length: 30 }, (_, at) => `"m${at}":${at}`).join(',')
  const lines =
    compareHops(
      `{"id":1,${members}}`,
      `{"id":2,${members}}`,
      diffMessages(`{"id":1,${members}}`, `{"id":2,${members}}`, 'down'),
    ) ?? []
  const folded = foldLines(lines)
  expect(folded).toHaveLength(5)
  expect(folded.flatMap((line) => ('folded' in line ? line.folded : [line]))).toEqual(lines)
})

test('lines that are few, or next to a change, are not folded', () => {
  const members = Array.from({ length: 12 }, (_, at) => `"m${at}":${at}`).join(',')
  const shapeOf = (some: string): (number | string)[] => {
    const [a, b] = [`{"id":1,${some},"jsonrpc":1}`, `{"id":2,${some},"jsonrpc":2}`]
    const lines = compareHops(a, b, changesBetween(a, b)) ?? []
    return foldLines(lines).map((line) => ('folded' in line ? line.folded.length : (line.from?.text ?? '')))
  }
  expect(shapeOf(members)).toEqual(['{', '"id": 1,', '"m0": 0,', '"m1": 1,', 8, '"m10": 10,', '"m11": 11,', '"jsonrpc": 1', '}'])
  // Two lines between those around the changes: a mark would be as long as what it hides.
  expect(shapeOf('"a":1,"b":2,"c":3,"d":4,"e":5,"f":6')).toHaveLength(10)
})

test('a text that is too long for a tree is neither compared nor indented', () => {
  const long = JSON.stringify(['x'.repeat(MOST_IN_TREE)])
  expect(indentJson(long)).toBe(long)
  expect(compareHops(long, '[]', [])).toBeUndefined()
  expect(changesBetween('[]', long)).toEqual([])
  expect(indentJson('{"a":[1,{}]}')).toBe('{\n  "a": [\n    1,\n    {}\n  ]\n}')
  expect(indentJson('{"a":')).toBe('{"a":')
})

test('a text nested without end is not read, in objects as in arrays', () => {
  expect(readJson(`${'['.repeat(90)}${']'.repeat(90)}`)).toBeDefined()
  expect(readJson(`${'{"a":'.repeat(90)}1${'}'.repeat(90)}`)).toBeDefined()
  expect(readJson(`${'{"a":'.repeat(200)}1${'}'.repeat(200)}`)).toBeUndefined()
})

test.each(['{"a":01}', '[1.2.3]', '[1.]', '[-]', '["\\x"]', '["a\nb"]', '["\\u12"]', '{"\\x":1}'])('%s is no JSON', (text) => {
  expect(readJson(text)).toBeUndefined()
})

test('a member is looked up by its name', () => {
  const node = readJson('{"a":1,"b":2}')
  expect(memberIn(node, 'b')).toEqual({ kind: 'literal', raw: '2' })
  expect(memberIn(node, 'c')).toBeUndefined()
  expect(memberIn(readJson('[1]'), 'a')).toBeUndefined()
})

test('what is no JSON is not compared', () => {
  expect(compareHops('{}', '{', [])).toBeUndefined()
  expect(changesBetween('{}', '{')).toEqual([])
  expect(compareHops('{', '{}', [])).toBeUndefined()
  for (const text of ['', '{"a":}', '[1,]', '{"a" 1}', 'nul', '01x', `${'['.repeat(200)}${']'.repeat(200)}`, '{} {}'])
    expect(readJson(text), text).toBeUndefined()
})

test.each(['1.0', '12345678901234567890', '"\\u0041"', '{"a":{},"b":[]}', '[1,[2,{"c":null}],true]', '1e400'])(
  'the spelling of %s is kept',
  (text) => {
    expect(writeJson(readJson(text) as never)).toBe(text)
    expect(indentJson(text).replaceAll(/\s/g, '')).toBe(text)
  },
)

test('a path is written as people write it', () => {
  expect(formatPath(['result', 'content', 0, 'uri'])).toBe('result.content[0].uri')
  expect(formatPath(['params', '_meta', 'io.x/y'])).toBe('params._meta["io.x/y"]')
})
