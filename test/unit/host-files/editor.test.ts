/** One change to a text: what it says afterwards, and that all else stays as it was written. */
import { expect, test } from 'vitest'
import { setIn } from '../../../src/host-files/edit/editor.ts'

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
