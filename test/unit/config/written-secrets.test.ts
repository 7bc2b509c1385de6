/** Secrets in entries of hosts: which texts are taken for one, the name each gets, and that all else stays. */
import { expect, test } from 'vitest'
import { variableName, withoutSecrets } from '../../../src/config/build/written-secrets.ts'

const GITHUB = `ghp_${'a'.repeat(20)}`

/** The draft of a server `my-files`, and the values that were taken from it. */
const hidden = (draft: Readonly<Record<string, unknown>>) => {
  const kept: Record<string, string> = {}
  const after = withoutSecrets('my-files', draft, (proposed, value) => {
    kept[proposed] = value
    return proposed
  })
  return { after, kept }
}

const ref = (name: string): string => `\${${name}}`

test.each<[member: string, before: unknown, after: unknown, kept: Readonly<Record<string, string>>]>([
  [
    'env',
    { API_KEY: 'abc', LEVEL: 'debug', EMPTY_KEY: '', PORT: 1 },
    { API_KEY: ref('API_KEY'), LEVEL: 'debug', EMPTY_KEY: '', PORT: 1 },
    { API_KEY: 'abc' },
  ],
  ['env', { 'db-pwd': 'abc' }, { 'db-pwd': ref('DB_PWD') }, { DB_PWD: 'abc' }],
  ['env', { ANY: GITHUB }, { ANY: ref('ANY') }, { ANY: GITHUB }],
  ['env', { A_TOKEN: '${TOKEN}' }, { A_TOKEN: '${TOKEN}' }, {}],
  ['env', { A_TOKEN: 'a$${b' }, { A_TOKEN: ref('A_TOKEN') }, { A_TOKEN: 'a${b' }],
  ['env', { DB: 'pg://me:pass@h/db?x=1' }, { DB: `pg://me:${ref('DB_PASSWORD')}@h/db?x=1` }, { DB_PASSWORD: 'pass' }],
  ['env', null, null, {}],
  ['headers', { Authorization: 'Bearer abc' }, { Authorization: `Bearer ${ref('MY_FILES_TOKEN')}` }, { MY_FILES_TOKEN: 'abc' }],
  [
    'headers',
    { 'X-Api-Key': 'abc', Accept: 'x' },
    { 'X-Api-Key': ref('MY_FILES_API_KEY'), Accept: 'x' },
    { MY_FILES_API_KEY: 'abc' },
  ],
  [
    'url',
    'https://x.test/mcp?api_key=abc&q=1#f',
    `https://x.test/mcp?api_key=${ref('MY_FILES_KEY')}&q=1#f`,
    { MY_FILES_KEY: 'abc' },
  ],
  ['url', `https://x.test/?q=${GITHUB}`, `https://x.test/?q=${ref('MY_FILES_KEY')}`, { MY_FILES_KEY: GITHUB }],
  ['url', 'https://me:pass@x.test/', `https://me:${ref('MY_FILES_KEY_PASSWORD')}@x.test/`, { MY_FILES_KEY_PASSWORD: 'pass' }],
  ['url', 'https://${HOST}/?key=abc', 'https://${HOST}/?key=abc', {}],
  ['args', ['--api-key', 'abc', '--dir', 'd'], ['--api-key', ref('MY_FILES_API_KEY'), '--dir', 'd'], { MY_FILES_API_KEY: 'abc' }],
  ['args', ['--my-files-token', 'abc'], ['--my-files-token', ref('MY_FILES_TOKEN')], { MY_FILES_TOKEN: 'abc' }],
  ['args', ['--token', '-v', '--token', ''], ['--token', '-v', '--token', ''], {}],
  ['args', ['--token', '${T}', 5, '--pwd=${T}'], ['--token', '${T}', 5, '--pwd=${T}'], {}],
  ['args', ['token', 'abc'], ['token', 'abc'], {}],
  ['args', ['--api-key=abc', '--dir=d'], [`--api-key=${ref('MY_FILES_API_KEY')}`, '--dir=d'], { MY_FILES_API_KEY: 'abc' }],
  ['args', [`--x=${GITHUB}`], [`--x=${ref('MY_FILES_X')}`], { MY_FILES_X: GITHUB }],
  ['args', ['-e', 'DB_TOKEN=abc'], ['-e', `DB_TOKEN=${ref('DB_TOKEN')}`], { DB_TOKEN: 'abc' }],
  ['args', ['--db=pg://me:pass@h/'], [`--db=pg://me:${ref('MY_FILES_DB_PASSWORD')}@h/`], { MY_FILES_DB_PASSWORD: 'pass' }],
  [
    'args',
    ['--header', 'Authorization: Bearer abc'],
    ['--header', `Authorization: Bearer ${ref('MY_FILES_TOKEN')}`],
    { MY_FILES_TOKEN: 'abc' },
  ],
  ['args', ['X-Api-Key: abc', 'Accept: abc'], [`X-Api-Key: ${ref('MY_FILES_TOKEN')}`, 'Accept: abc'], { MY_FILES_TOKEN: 'abc' }],
  [
    'args',
    [GITHUB, 'pg://me:pass@h/'],
    [ref('MY_FILES_TOKEN'), `pg://me:${ref('MY_FILES_KEY_PASSWORD')}@h/`],
    { MY_FILES_TOKEN: GITHUB, MY_FILES_KEY_PASSWORD: 'pass' },
  ],
  ['env', { ANY: 'Bearer abc' }, { ANY: `Bearer ${ref('ANY')}` }, { ANY: 'abc' }],
  ['env', { A_TOKEN: '$${OTHER}' }, { A_TOKEN: '$${OTHER}' }, {}],
  ['args', ['Authorization: Bearer $${A_TOKEN}', '--key=$${A}'], ['Authorization: Bearer $${A_TOKEN}', '--key=$${A}'], {}],
  [
    'args',
    ['--header=Authorization: Bearer abc', '--header=Accept: x'],
    [`--header=Authorization: Bearer ${ref('MY_FILES_TOKEN')}`, '--header=Accept: x'],
    { MY_FILES_TOKEN: 'abc' },
  ],
  [
    'args',
    ['--config', '{"apiKey":"ab\\"c","dir":"d", "x" : "y"}', `--config={"x": "${GITHUB}"}`],
    ['--config', `{"apiKey":"${ref('MY_FILES_APIKEY')}","dir":"d", "x" : "y"}`, `--config={"x": "${ref('MY_FILES_X')}"}`],
    { MY_FILES_APIKEY: 'ab\\"c', MY_FILES_X: GITHUB },
  ],
  [
    'credentials',
    { oauth: { client_id: 'me', client_secret: 'abc' } },
    { oauth: { client_id: 'me', client_secret: ref('MY_FILES_CLIENT_SECRET') } },
    { MY_FILES_CLIENT_SECRET: 'abc' },
  ],
  ['credentials', { oauth: { client_secret: '${S}' } }, { oauth: { client_secret: '${S}' } }, {}],
  ['credentials', { oauth: { client_id: 'me' } }, { oauth: { client_id: 'me' } }, {}],
])('%s %j', (member, before, after, kept) => {
  expect(hidden({ command: 'x', [member]: before })).toEqual({ after: { command: 'x', [member]: after }, kept })
})

test.each([
  ['api-key', 'API_KEY'],
  ['-a.b-', 'A_B'],
  ['2nd key', '_2ND_KEY'],
  ['_2nd', '_2ND'],
  ['__x', 'X'],
  ['é', ''],
])('the variable for %s is %s', (text, name) => {
  expect(variableName(text)).toBe(name)
})
