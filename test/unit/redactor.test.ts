import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createLog } from '../../src/log.ts'
import { Redactor } from '../../src/redactor.ts'
import { yaml } from './config/workspace.ts'

describe('the redactor', () => {
  test.each([
    ['as it is', 'x hunter2+"q x', 'x *** x'],
    ['in JSON', JSON.stringify({ a: 'hunter2+"q' }), '{"a":"***"}'],
    ['in a URL', `/?k=${encodeURIComponent('hunter2+"q')}`, '/?k=***'],
    ['in JSON inside JSON', JSON.stringify(JSON.stringify(['hunter2+"q'])), '"[\\"***\\"]"'],
    ['in a URL with small letters', '/?k=hunter2%2b%22q', '/?k=***'],
    ['in a form', new URLSearchParams({ k: 'hunter2+"q' }).toString(), 'k=***'],
    ['in base64', Buffer.from('hunter2+"q').toString('base64'), '***'],
    ['nowhere', 'nothing to hide', 'nothing to hide'],
  ])('T-14 hides a secret %s', (_, text, shown) => {
    expect(new Redactor(['hunter2+"q']).hide(text)).toBe(shown)
  })

  test.each(['u', 'us', 'use', 'user', 'user@host.test'])('T-14 hides a password in the Basic header of %s', (user) => {
    for (const form of ['base64', 'base64url'] as const) {
      const header = `Basic ${Buffer.from(`${user}:p/~?>+ssw0rd`).toString(form)}`
      expect(new Redactor(['p/~?>+ssw0rd']).hide(`{"authorization":"${header}","x":1}`)).toBe(
        '{"authorization":"Basic ***","x":1}',
      )
    }
  })

  // As the libraries of these languages write it; `&<>+='"` and letters beyond ASCII differ most.
  test.each([
    ['JSON of Python', String.raw`"p/\u00e4<&>+='\"${'`'}\\ \ud83d\ude00~!(1)*"`],
    ['JSON of PHP', String.raw`"p\/\u00e4<&>+='\"${'`'}\\ \ud83d\ude00~!(1)*"`],
    ['JSON of Go', String.raw`"p/ä\u003c\u0026\u003e+='\"${'`'}\\ 😀~!(1)*"`],
    ['JSON of .NET', String.raw`"p/\u00E4\u003C\u0026\u003E\u002B=\u0027\u0022\u0060\\ \uD83D\uDE00~!(1)*"`],
    ['JSON of Gson', String.raw`"p/ä\u003c\u0026\u003e+\u003d\u0027\"${'`'}\\ 😀~!(1)*"`],
    ['a path of Python', '"p/%C3%A4%3C%26%3E%2B%3D%27%22%60%5C%20%F0%9F%98%80~%21%281%29%2A"'],
    ['a query of PHP', '"p%2F%C3%A4%3C%26%3E%2B%3D%27%22%60%5C+%F0%9F%98%80%7E%21%281%29%2A"'],
    ['a password in a URL of Go', '"p%2F%C3%A4%3C&%3E+=%27%22%60%5C%20%F0%9F%98%80~%21%281%29%2A"'],
    ['a URL of Node', `"p%2F%C3%A4%3C&%3E+%3D'%22%60%5C%20%F0%9F%98%80~!(1)*"`],
  ])('T-14 hides a secret in %s, also in JSON and in a URL around it', (_, written) => {
    const { hide, hideJson } = new Redactor(['p/ä<&>+=\'"`\\ 😀~!(1)*'])
    expect(hide(written)).toBe('"***"')
    // A tool repeats its structured content as a text, and a process prints what it sent.
    const text = JSON.stringify({ text: written })
    expect(hideJson(text)).toBe(JSON.stringify({ text: '"***"' }))
    expect(hide(text)).toBe(String.raw`{"text":"\"***\""}`)
    expect(hideJson(JSON.stringify({ line: text }))).toBe(JSON.stringify({ line: String.raw`{"text":"\"***\""}` }))
    expect(hide(encodeURIComponent(written))).toBe('%22***%22')
  })

  test('T-14 a text of backslashes or percent signs takes no time, whatever the secret', () => {
    const { hide } = new Redactor([String.raw`\"\"\"\"%25%25%25%25\\\\%"`])
    for (const piece of ['\\', '\\"', '%25', '%', '\\u005c', '%5C']) expect(hide(piece.repeat(50_000))).toBe(piece.repeat(50_000))
  })

  test.each(['abc', 'abcd', 'abcde'])('T-14 hides a secret as short as %j, also where it is the whole text', (secret) => {
    const redactor = new Redactor([secret])
    expect([secret, `x ${secret} x`, 'x ab x'].map(redactor.hide)).toEqual(['***', 'x *** x', 'x ab x'])
  })

  test('T-14 hides a secret of five characters in base64, wherever it stands; shorter ones would be found by chance', () => {
    for (const before of ['', 'x', 'xx', 'xxx']) {
      const [five, four] = ['v3ry!', 'v3r!'].map((secret) => Buffer.from(`${before}${secret}~`).toString('base64'))
      expect(new Redactor(['v3ry!']).hide(`a ${five} b`)).toBe('a *** b')
      expect(new Redactor(['v3r!']).hide(`a ${four} b`)).toBe(`a ${four} b`)
    }
  })

  test('T-14 hides each line of a key, as a process prints it', () => {
    const redactor = new Redactor(['-----BEGIN KEY-----\nMIIEvQIBADANBg\n-----END KEY-----\n'])
    expect(redactor.hide('line 2: MIIEvQIBADANBg')).toBe('line 2: ***')
    const short = new Redactor(['first-line\nof-eight\nseven-7'])
    expect(['it is of-eight', 'it is seven-7'].map(short.hide)).toEqual(['it is ***', 'it is seven-7'])
  })

  test('what is JSON stays JSON, also where a number or a name holds the digits or letters of a secret', () => {
    const redactor = new Redactor(['123456', 'message'])
    const line = JSON.stringify({ time: 9123456789, pin: 123456, message: 'a message', n: [1.5, 'x123456'] })
    expect(JSON.parse(redactor.hideJson(line))).toEqual({ time: 9123456789, pin: '***', message: 'a ***', n: [1.5, 'x***'] })
  })

  test('values that hold no text stay as they are beside one that does', () => {
    const value = { none: null, yes: true, list: [1, null], text: 'a secret' }
    expect(new Redactor(['secret']).hideIn(value)).toEqual({ ...value, text: 'a ***' })
  })

  test.each([
    ['message', 'message'],
    ['user_name', 'user_name'],
    ['hunter2', '***'],
    ['two words', '***'],
    ['is two words', 'is ***'],
    ['sk-abc', '***'],
  ])('T-14 a secret of the same text as the key %j shows it as %j', (key, shown) => {
    const redactor = new Redactor(['message', 'user_name', 'hunter2', 'two words', 'sk-abc'])
    expect(redactor.hideIn({ [key]: 'x' })).toEqual({ [shown]: 'x' })
  })

  test('JSON without a secret stays byte for byte what it is', () => {
    const json = '{"a": 1.0, "b":123456789012345678901, "c":"\\u0041"}'
    expect(new Redactor(['secret-value']).hideJson(json)).toBe(json)
  })

  test('T-14 no text that holds a secret shows it, wherever in whatever it stands', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 6 }), fc.string({ unit: 'binary' }), fc.string(), (secret, before, after) => {
        fc.pre(!'***'.includes(secret))
        const redactor = new Redactor([secret])
        const shown = JSON.parse(redactor.hideJson(JSON.stringify({ list: [before + secret + after] }))) as { list: [string] }
        expect(shown.list[0]).not.toContain(secret)
        const encoded = Buffer.from(before.toWellFormed() + secret + after).toString('base64')
        expect(redactor.hide(`x ${encoded}`)).toBe('x ***')
      }),
    )
  })

  test('hides the longer of two secrets whole, and what it learns later', () => {
    const redactor = new Redactor(['secret'])
    redactor.learn(['secret-and-more'])
    expect(redactor.hide('secret-and-more secret')).toBe('*** ***')
    expect(redactor.hideIn({ list: ['a secret-and-more'] })).toEqual({ list: ['a ***'] })
  })

  test.each(['json', 'pretty'] as const)('T-14 no line of the log (%s) shows one', (format) => {
    const lines: string[] = []
    const stream = { write: (line: string) => lines.push(line) } as never
    createLog({ level: 'info', format }, stream, new Redactor(['hunter2']).hideJson).info({ at: 'hunter2' }, 'it is hunter2')
    expect(lines.join('')).toContain('it is ***')
    expect(lines.join('')).not.toContain('hunter2')
  })
})

test('T-14 secrets of a configuration are its credentials, what variables bring into environments, and what is named so', async () => {
  await using files = await yaml(
    [
      'servers:',
      '  a:',
      '    command: x',
      '    args: ["--key=${API_KEY}", "${FOLDER}", plain-argument]',
      '    env: { FROM: "${VALUE}", PLAIN: plain-value, DB_PASSWORD: literal-password, SHORT: "${ONE}" }',
      '    url: "http://x.test/mcp?token=in-the-url"',
      '    credentials: { bearer: literal-bearer, headers: { X-A: literal-header } }',
      '    headers: { X-B: plain-header }',
    ].join('\n'),
  )
  const env = { API_KEY: 'api-key-value', FOLDER: '/some/folder', VALUE: 'from-variable', ONE: '1' }
  const { secrets } = await files.load(undefined, { env })
  expect([...secrets].sort()).toEqual(
    ['--key=api-key-value', 'from-variable', 'in-the-url', 'literal-bearer', 'literal-header', 'literal-password'].sort(),
  )
})

test('T-14 live tokens are hidden wherever they stand, until they have been replaced twice', () => {
  const redactor = new Redactor()
  const holder = {}
  const [first, second, third] = [
    'first-token-0123456789',
    'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJwIn0.c2lnbmF0dXJl',
    'third/token+abcdefghijkl==',
  ]
  redactor.hold(holder, [first])
  redactor.hold(holder, [second])
  expect(redactor.hide(`a ${first}, "Bearer ${second}".`)).not.toMatch(/0123456789|eyJzdWIi/)
  redactor.hold(holder, [third])
  expect(redactor.hide(third)).not.toContain('abcdefghijkl')
  expect(redactor.hide(first)).toBe(first)
})

test.each<[where: string, text: (token: string) => string]>([
  ['a URL inside of a URL', (token) => `/?to=${encodeURIComponent(`https://x.test/?token=${token}&more=1`)}`],
  ['a URL inside of a URL inside of a URL', (token) => `/?to=${encodeURIComponent(encodeURIComponent(`=${token}`))}`],
  ['a line of a text in JSON', (token) => JSON.stringify({ text: `the token:\n${token}` })],
  ['a line of a text in JSON in JSON', (token) => JSON.stringify(JSON.stringify({ text: `the token:\t${token}` }))],
  ['JSON that escapes more than it must', (token) => `{"a":"?token\\u003d${token}\\u0026"}`],
  ['a text as Python prints it', (token) => `b'\\x00${token}\\x00'`],
])('T-14 a live token is hidden behind the escape before it: in %s', (_, text) => {
  const redactor = new Redactor()
  const token = 'live-token-0123456789'
  redactor.hold({}, [token])
  expect(redactor.hide(text(token))).toBe(text('***'))
  expect(redactor.hideJson(JSON.stringify({ text: text(token) }))).toBe(JSON.stringify({ text: text('***') }))
})

test.each(['\\nothing-to-see-here', '%deadline-token-01'])('T-14 so is one that begins like an escape, in %s', (text) => {
  const redactor = new Redactor()
  redactor.hold({}, [text.slice(1)])
  expect(redactor.hide(text)).toBe(`${text[0]}***`)
})

test('T-14 a token that was replaced twice stays hidden for as long as captured messages may contain it', () => {
  let nowMs = 0
  const redactor = new Redactor([], () => nowMs)
  redactor.retainMs = 1_000
  const holder = {}
  for (const token of ['first-token-0123456789', 'second-token-0123456789', 'third-token-0123456789'])
    redactor.hold(holder, [token])
  expect(redactor.hide('first-token-0123456789')).toBe('***')
  nowMs = 1_000
  redactor.hold(holder, ['fourth-token-0123456789'])
  expect(redactor.hide('first-token-0123456789')).toBe('first-token-0123456789')
  expect(redactor.hide('second-token-0123456789')).toBe('***')
})

test('T-14 the tokens of a holder that has ended are hidden for as long as captured messages may contain them', () => {
  let nowMs = 0
  const redactor = new Redactor([], () => nowMs)
  redactor.retainMs = 1_000
  const holder = {}
  for (const token of ['first-token-0123456789', 'second-token-0123456789']) redactor.hold(holder, [token])
  redactor.hold(holder, [])
  const text = 'first-token-0123456789 second-token-0123456789'
  expect(redactor.hide(text)).toBe('*** ***')
  nowMs = 1_000
  redactor.hold({}, ['token-of-another-0123456789'])
  expect(redactor.hide(text)).toBe(text)
})

test('T-14 where there are live tokens alone, they are hidden in JSON and in data as well', () => {
  const redactor = new Redactor()
  redactor.hold({}, ['live-token-0123456789'])
  expect(redactor.hideIn({ a: ['Bearer live-token-0123456789'] })).toEqual({ a: ['Bearer ***'] })
  expect(redactor.hideJson('{"a":"live-token-0123456789"}')).toBe('{"a":"***"}')
})

test.each(['', 'x:', 'xx:', 'xxx:', 'user@host.test:'])(
  'T-14 a live token is hidden in the base64 of a text that begins with %j',
  (before) => {
    const redactor = new Redactor()
    redactor.hold({}, ['live-token/0123456789-abcdefghijkl'])
    for (const form of ['base64', 'base64url'] as const)
      for (const after of ['', ':x', ':xx']) {
        const encoded = Buffer.from(`${before}live-token/0123456789-abcdefghijkl${after}`).toString(form)
        expect(redactor.hide(`{"authorization":"Basic ${encoded}","x":1}`)).toBe('{"authorization":"Basic ***","x":1}')
        expect(redactor.hide(`data:text/plain;base64,${encoded}`)).toBe('data:text/plain;base64,***')
      }
    const other = Buffer.from('a text without any token, as long as it may be').toString('base64')
    expect(redactor.hide(other)).toBe(other)
  },
)

test('T-14 a token of two holders is hidden until both have replaced it twice', () => {
  const redactor = new Redactor()
  const token = 'shared-token-0123456789'
  const [first, second] = [{}, {}]
  for (const holder of [first, second]) redactor.hold(holder, [token])
  const replace = (holder: object): void => {
    for (const next of ['1', '2']) redactor.hold(holder, [`next-token-${next}-0123456789`])
  }
  replace(first)
  expect(redactor.hide(token)).toBe('***')
  replace(second)
  expect(redactor.hide(token)).toBe(token)
})
