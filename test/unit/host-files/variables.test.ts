/** Variables of hosts in our form, and paths that do not depend on a folder. */
import { expect, test } from 'vitest'
import { FORMS } from '../../../src/config/read/host-file.ts'
import { treeOf } from '../../../src/config/syntax/tree.ts'
import type { MapTree } from '../../../src/config/syntax/tree.ts'
import { translate } from '../../../src/host-files/variables.ts'
import type { HostVariables } from '../../../src/host-files/variables.ts'

const translated = (draft: object, kind: keyof typeof FORMS = 'common', more: Partial<HostVariables> = {}) =>
  // Cast: the tree of an object.
  translate(treeOf(draft, 'x:1:1') as MapTree, {
    form: FORMS[kind],
    isOpen: kind === 'gemini',
    constants: { workspaceFolder: '/work', odd: '${x}' },
    inputs: new Map([
      ['region', 'eu'],
      ['gh-token', undefined],
    ]),
    env: { SET: 'x' },
    folder: '/work',
    ...more,
  })

test.each<[text: string, kind: keyof typeof FORMS, ours: string, variables: readonly (readonly [string, string?])[]]>([
  ['a ${A} b', 'common', 'a ${A} b', [['A']]],
  ['${A:-x y}', 'common', '${A:-x y}', [['A', 'x y']]],
  ['${env:A}', 'common', '${A}', [['A']]],
  ['${env:A:-x}', 'common', '${A:-x}', [['A', 'x']]],
  ['${workspaceFolder}/x', 'common', '/work/x', []],
  ['${odd}', 'common', '$${x}', []],
  ['${toString}', 'common', '${toString}', [['toString']]],
  ['${input:region}', 'vscode', '${INPUT_REGION:-eu}', [['INPUT_REGION', 'eu']]],
  ['${input:gh-token}', 'vscode', '${INPUT_GH_TOKEN}', [['INPUT_GH_TOKEN']]],
  ['${file:k.txt}', 'common', '${file:/work/k.txt}', []],
  ['${file:/k.txt}', 'common', '${file:/k.txt}', []],
  ['{file:~/k.txt}', 'opencode', '${file:~/k.txt}', []],
  ['${command:a}', 'common', '$${command:a}', []],
  ['${not a name}', 'common', '$${not a name}', []],
  ['$A and $SET and ${B} and ${C:-x}', 'gemini', '$A and ${SET} and ${B} and ${C:-x}', [['SET'], ['B'], ['C', 'x']]],
  ['$API_KEY', 'gemini', '${API_KEY}', [['API_KEY']]],
  ['Bearer $API_KEY', 'gemini', 'Bearer ${API_KEY}', [['API_KEY']]],
  ['pa$word', 'gemini', 'pa$word', []],
  ['$word', 'gemini', '$word', []],
  ['${A', 'gemini', '$${A', []],
  ['${A} {env:B}', 'opencode', '$${A} ${B}', [['B']]],
  ['${{ secrets.A }}', 'continue', '${A}', [['A']]],
])('%s of %s is %s', (text, kind, ours, variables) => {
  const found = translated({ command: 'x', args: [text], env: { N: 1 } }, kind)
  expect(found.draft).toEqual({ command: 'x', args: [ours], env: { N: 1 } })
  expect(found.variables.map(({ name, fallback }) => [name, ...(fallback === undefined ? [] : [fallback])])).toEqual(variables)
})

test('a variable of the entry itself is left to the started program, unless the host has it, too', () => {
  const entry = {
    command: 'npx',
    args: ['--header', 'Authorization:${HEADER}', '${SET}', '${HEADER:-x}', '${OTHER}'],
    env: { HEADER: '${HEADER}', SET: 'y' },
  }
  const { draft, variables } = translated(entry)
  expect(draft).toEqual({
    command: 'npx',
    args: ['--header', 'Authorization:$${HEADER}', '${SET}', '${HEADER:-x}', '${OTHER}'],
    env: { HEADER: '${HEADER}', SET: 'y' },
  })
  expect(variables.map(({ name }) => name)).toEqual(['SET', 'HEADER', 'OTHER'])
  expect(translated({ args: ['$A_KEY', '${A_KEY}'], env: { A_KEY: 'x' } }, 'gemini').draft).toEqual({
    args: ['$A_KEY', '$${A_KEY}'],
    env: { A_KEY: 'x' },
  })
})

test.each<[path: string, ours: string, variables: readonly unknown[]]>([
  ['env_vars.A', '${A:-}', [{ name: 'A', fallback: '' }]],
  ['env_vars.SET', '${SET}', [{ name: 'SET' }]],
  ['bearer_token_env_var', '${A}', [{ name: 'A' }]],
  ['args', '$${A}', []],
])('of Codex, a name in %s is %s', (path, ours, variables) => {
  const text = path.endsWith('SET') ? '${SET}' : '${A}'
  const scalar = { kind: 'scalar', value: text, source: text, variables: true, path, place: 'x:1:1' } as const
  const tree: MapTree = { kind: 'map', entries: new Map([['x', scalar]]), path: '', place: 'x:1:1' }
  const options = {
    form: FORMS.codex,
    isOpen: false,
    constants: {},
    inputs: new Map<string, string>(),
    env: { SET: 'x' },
    folder: '/',
  }
  expect(translate(tree, options)).toEqual({ draft: { x: ours }, variables })
})

test.each<[draft: object, absolute: object]>([
  [
    { command: 'npx', cwd: 'a' },
    { command: 'npx', cwd: '/work/a' },
  ],
  [
    { command: './run.sh', cwd: '/a' },
    { command: '/work/run.sh', cwd: '/a' },
  ],
  [
    { command: 'bin\\run', cwd: '~/a' },
    { command: '/work/bin\\run', cwd: '~/a' },
  ],
  [
    { command: '/bin/x', cwd: '${HOME}/a' },
    { command: '/bin/x', cwd: '${HOME}/a' },
  ],
  [{ command: '~/run.sh' }, { command: '~/run.sh' }],
  [{ command: '${HOME}/run.sh' }, { command: '${HOME}/run.sh' }],
  [{ url: 'https://x.test/a' }, { url: 'https://x.test/a' }],
  [
    { command: 5, cwd: 5 },
    { command: 5, cwd: 5 },
  ],
])('%j runs with %j', (draft, absolute) => {
  const found = translated(draft).draft
  expect(found).toEqual(absolute)
  expect(Object.keys(found)).toEqual(Object.keys(absolute))
})
