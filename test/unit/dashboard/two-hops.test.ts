/** Both sides of a message beside each other, and JSON that keeps its spelling. */
import { expect, test } from 'vitest'
import { indentJson, readJson, writeJson } from '../../../src/dashboard/model/json-tree.ts'
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

test('between two definitions, a removed member has only its old value, and an added one only its new value', () => {
  expect(changesBetween('{"name":"x","title":"X"}', '{"name":"x","icons":[]}')).toMatchObject([
    { path: ['title'], change: 'removed', from: '"X"', to: null },
    { path: ['icons'], change: 'added', from: null, to: '[]' },
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

test('what is no JSON is not compared', () => {
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
