/** What is hidden of a captured message by the names of its members. */
import { expect, test } from 'vitest'
import { withoutSecrets } from '../../../src/observe/capture/body.ts'

const same = (text: string): string => text

test.each([
  ['{"password":"hunter2","a":1}', '{"password":"***","a":1}'],
  ['{"Api-Key" : "a\\"b\\\\","b":"c"}', '{"Api-Key" : "***","b":"c"}'],
  ['{"db_password":-1.5e3,"client_secret":"x"}', '{"db_password":"***","client_secret":"***"}'],
  ['{"password":"","x":"y"}', '{"password":"***","x":"y"}'],
  ['{"password":null,"passwords":"many","word":"x"}', '{"password":null,"passwords":"many","word":"x"}'],
  ['… "password":"cut at the e', '… "password":"***"'],
  ['{"password":"\\"secret\\":\\"x\\"","y":"z"}', '{"password":"***","y":"z"}'],
  // Lists and objects as a whole.
  ['{"token":["a","b"],"x":1}', '{"token":"***","x":1}'],
  ['{"credentials":{"x":"s","y":{"z":["}",1]}},"after":"]"}', '{"credentials":"***","after":"]"}'],
  ['{"api_key" : [ { "a" : "\\"]" } ] , "b":2}', '{"api_key" : "***" , "b":2}'],
  ['{"password":[],"secret":{}}', '{"password":"***","secret":"***"}'],
  ['[{"secret":{"cut":"at the e', '[{"secret":"***"'],
  [
    '{"session_token":["a"],"page_token":"p2","nextPageToken":"p3","tokens":7}',
    '{"session_token":"***","page_token":"p2","nextPageToken":"p3","tokens":7}',
  ],
  [
    '{"progressToken":1,"max_tokens":2,"next_token":"c","token_type":"Bearer"}',
    '{"progressToken":1,"max_tokens":2,"next_token":"c","token_type":"Bearer"}',
  ],
  // As libraries of JavaScript and AWS spell them.
  [
    '{"accessKeyId":"a","secretAccessKey":"b","sessionToken":"c","authToken":"d","nextToken":"e"}',
    '{"accessKeyId":"a","secretAccessKey":"***","sessionToken":"***","authToken":"***","nextToken":"e"}',
  ],
  [
    '{"dbPassword":"a","webhookSecret":"b","signing_key":"c","master-key":"d","primaryKey":"e","keyToken":"f"}',
    '{"dbPassword":"***","webhookSecret":"***","signing_key":"***","master-key":"***","primaryKey":"e","keyToken":"f"}',
  ],
])('T-14 %s', (text, shown) => {
  expect(withoutSecrets(text, same)).toBe(shown)
})

test('T-14 JSON in a text, as tools repeat structured content, has no secrets either', () => {
  const lists = { token: ['a"]\\', { b: '}' }], credentials: { x: { y: '"' } } }
  const value = { user: 'ann', password: 'hun"ter\\2', api_key: 'a\\', pin: { secret: 4711 }, ...lists, note: '"password"' }
  const hidden = { token: '***', credentials: '***' }
  const shown = { user: 'ann', password: '***', api_key: '***', pin: { secret: '***' }, ...hidden, note: '"password"' }
  let [text, wanted] = [JSON.stringify(value), JSON.stringify(shown)]
  for (const depth of [0, 1, 2, 3]) {
    expect(withoutSecrets(text, same), `at depth ${depth}`).toBe(wanted)
    ;[text, wanted] = [JSON.stringify({ text, after: 'x' }), JSON.stringify({ text: wanted, after: 'x' })]
  }
  const cut = JSON.stringify({ text: '{"password":"hunter', after: 'x' })
  expect(withoutSecrets(cut, same)).toBe('{"text":"{\\"password\\":\\"***\\"","after":"x"}')
  const inList = JSON.stringify({ text: '{"token":["hunter', after: 'x' })
  expect(withoutSecrets(inList, same)).toBe('{"text":"{\\"token\\":\\"***\\"","after":"x"}')
})

test('a secret of many megabytes is hidden like any other', () => {
  const text = `{"password":"${'a'.repeat(20_000_000)}","x":1}`
  expect(withoutSecrets(text, same)).toBe('{"password":"***","x":1}')
  const many = `{"token":[${'{"token":["a"]},'.repeat(500_000)}1],"x":1}`
  expect(withoutSecrets(many, same)).toBe('{"token":"***","x":1}')
})
