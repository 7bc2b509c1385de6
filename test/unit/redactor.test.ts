import { describe, expect, test } from 'vitest'
import { createLog } from '../../src/log.ts'
import { Redactor } from '../../src/redactor.ts'
import { yaml } from './config/workspace.ts'

describe('the redactor', () => {
  test.each([
    ['as it is', 'x hunter2+"q x', 'x *** x'],
    ['in JSON', JSON.stringify({ a: 'hunter2+"q' }), '{"a":"***"}'],
    ['in a URL', `/?k=${encodeURIComponent('hunter2+"q')}`, '/?k=***'],
    ['in base64', Buffer.from('hunter2+"q').toString('base64'), '***'],
    ['nowhere', 'nothing to hide', 'nothing to hide'],
  ])('T-14 hides a secret %s', (_, text, shown) => {
    expect(new Redactor(['hunter2+"q']).hide(text)).toBe(shown)
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
    createLog({ level: 'info', format }, stream, new Redactor(['hunter2']).hide).info({ at: 'hunter2' }, 'it is hunter2')
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
