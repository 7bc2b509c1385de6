/** Who comes in at the admin listener: hosts and origins, keys and tokens, and the files of the page (T-01, T-37). */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { checkOrigin, tokenOf, viewerOf } from '../../../src/admin/http/access.ts'
import { folderAssets } from '../../../src/admin/http/assets.ts'
import { AdminCredentials, readTokenFile } from '../../../src/admin/http/credentials.ts'
import { LOCAL } from '../../../src/auth/identity.ts'
import { DEFAULT_OBSERVE } from '../../../src/observe/options.ts'
import type { HttpRequest } from '../../../src/transport/http1/server/request/http-request.ts'

/** A request with these header lines. Cast: only these are read. */
const requestOf = (...lines: readonly (readonly [name: string, value: string])[]): HttpRequest =>
  ({
    header: (name: string) => lines.find(([key]) => key === name)?.[1],
    count: (name: string) => lines.filter(([key]) => key === name).length,
  }) as unknown as HttpRequest

const scratch = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'tl-admin-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

describe('T-01 a request', () => {
  const admin = {
    ...DEFAULT_OBSERVE.admin,
    allowedHosts: ['box.test'],
    addresses: [
      { host: 'FD00::1', port: 1 },
      { host: 'LAN', port: 2 },
    ],
  }
  const own = ['host', 'box.test:7'] as const

  test.each([
    [[['host', 'localhost:7421']]],
    [[own]],
    [[['host', '[fd00::1]:1']]],
    [[['host', 'lan']]],
    [[own, ['origin', 'http://box.test:7']]],
    [[own, ['origin', 'https://box.test:7']]],
    [[own, ['sec-fetch-site', 'same-origin']]],
    [[own, ['sec-fetch-site', 'none']]],
    [[own, ['sec-fetch-site', 'cross-site'], ['sec-fetch-mode', 'navigate']]],
  ] as const)('with %j is accepted', (lines) => {
    expect(() => checkOrigin(requestOf(...lines), admin)).not.toThrow()
  })

  test.each([
    [[], 'host'],
    [[['host', 'evil.test']], 'host'],
    [[own, own], 'host'],
    [[own, ['origin', 'http://box.test:8']], 'origin'],
    [[own, ['origin', 'null']], 'origin'],
    [[own, ['origin', 'http://evil.test'], ['sec-fetch-site', 'same-origin']], 'origin'],
    [[own, ['sec-fetch-site', 'cross-site']], 'origin'],
    [[own, ['sec-fetch-site', 'same-site'], ['sec-fetch-mode', 'cors']], 'origin'],
  ] as const)('with %j is refused for its %s', (lines, code) => {
    expect(() => checkOrigin(requestOf(...lines), admin)).toThrow(expect.objectContaining({ status: 403, code }) as Error)
  })
})

test.each([
  [['Bearer abc'], 'abc'],
  [['bearer  a-b_c.d~e+f/g== '], 'a-b_c.d~e+f/g=='],
  [['Basic abc'], undefined],
  [['Bearer '], undefined],
  [['Bearer a b'], undefined],
  [['Bearer a', 'Bearer b'], undefined],
  [[], undefined],
])('T-37 of Authorization %j the token is %s', (values, token) => {
  expect(tokenOf(requestOf(...values.map((value) => ['authorization', value] as const)))).toBe(token)
})

test.each<[what: string, token: string, identity: object | undefined, viewer: object | undefined]>([
  ['of the file', 'file', undefined, { principal: 'local', isOperator: true }],
  ['that is unknown', 'x', undefined, undefined],
  ['of a caller', 'x', {}, { principal: 'p', isOperator: false }],
  ['of a caller with other scopes', 'x', { scopes: ['a'] }, { principal: 'p', isOperator: false }],
  ['of a caller with the scope', 'x', { scopes: ['a', 'op'] }, { principal: 'p', isOperator: true }],
  ['of an operator', 'x', { isOperator: true }, { principal: 'p', isOperator: true }],
])('T-37 the viewer of a token %s', async (_what, token, identity, viewer) => {
  const identityOf = async () => (identity === undefined ? undefined : { ...LOCAL, principal: 'p', ...identity })
  expect(await viewerOf(token, new AdminCredentials('file'), identityOf, 'op')).toEqual(viewer)
})

describe('T-37 a link', () => {
  const scene = () => {
    const clock = { ms: 0 }
    return { clock, credentials: new AdminCredentials(undefined, () => clock.ms) }
  }

  test('is valid once, for ten minutes', () => {
    const { clock, credentials } = scene()
    const [first, second, third] = [credentials.mintKey(), credentials.mintKey(), credentials.mintKey()]
    clock.ms = 600_000 - 1
    expect(credentials.trade(first)).toMatch(/^tlk_/)
    expect(credentials.trade(first)).toBeUndefined()
    clock.ms = 600_000
    expect(credentials.trade(second)).toBeUndefined()
    clock.ms = 0
    expect([credentials.trade(second), credentials.trade('x'), credentials.trade(third)]).toEqual([
      undefined,
      undefined,
      expect.any(String),
    ])
  })

  test('gives a token that is valid until it is ended, or was not used for twelve hours', () => {
    const { clock, credentials } = scene()
    const tokenFor = (): string => credentials.trade(credentials.mintKey()) ?? ''
    const [used, ended, idle] = [tokenFor(), tokenFor(), tokenFor()]
    credentials.end(ended)
    expect([credentials.admits(used), credentials.admits(ended), credentials.admits('')]).toEqual([true, false, false])
    clock.ms = 12 * 3_600_000 - 1
    expect(credentials.admits(used)).toBe(true)
    clock.ms++
    expect([credentials.admits(idle), credentials.admits(used)]).toEqual([false, true])
    clock.ms = 0
    expect(credentials.admits(idle)).toBe(false)
  })

  test('of many is kept, and of their tokens, the latest 64; a token that is used counts as late', () => {
    const { credentials } = scene()
    const keys = Array.from({ length: 65 }, () => credentials.mintKey())
    const tokens = keys.map((key) => credentials.trade(key))
    expect(tokens.map((token) => token !== undefined)).toEqual([false, ...Array.from({ length: 64 }, () => true)])
    expect(credentials.admits(tokens[1] ?? '')).toBe(true)
    const more = credentials.trade(credentials.mintKey())
    expect([tokens[1], tokens[2], more].map((token) => credentials.admits(token ?? ''))).toEqual([true, false, true])
  })
})

describe('T-37 the token file', () => {
  const TOKEN = `tlk_${'a'.repeat(43)}`

  test('is made for its owner alone, and kept', async () => {
    const file = join(scratch(), 'token')
    const token = await readTokenFile(file)
    expect(token).toMatch(/^tlk_[\w-]{43}$/)
    expect([readFileSync(file, 'utf8'), statSync(file).mode & 0o777]).toEqual([`${token}\n`, 0o600])
    expect(await readTokenFile(file)).toBe(token)
  })

  test.each([
    [`${TOKEN}\n`, 0o600, true],
    [`${TOKEN}\n`, 0o400, true],
    // Others may have read it.
    [`${TOKEN}\n`, 0o644, false],
    [`${TOKEN}\n`, 0o640, false],
    [`${TOKEN}x`, 0o600, false],
    ['', 0o644, false],
  ])('that holds %j with mode %i is private afterwards, and its token kept: %s', async (text, mode, isKept) => {
    const file = join(scratch(), 'token')
    writeFileSync(file, text)
    chmodSync(file, mode)
    expect((await readTokenFile(file)) === TOKEN).toBe(isKept)
    expect(statSync(file).mode & 0o077).toBe(0)
  })

  test('is not read where it is no file', async () => {
    await expect(readTokenFile(scratch())).rejects.toThrow(/is not a file; remove it/)
  })
})

test('files of the page are served by path, screens with its HTML, and nothing else', () => {
  const folder = scratch()
  mkdirSync(join(folder, 'assets'))
  writeFileSync(join(folder, 'index.html'), '<p>')
  writeFileSync(join(folder, 'assets', 'index-3f2a_b-1.js'), '1')
  writeFileSync(join(folder, 'icon.svg'), '<svg>')
  writeFileSync(join(folder, 'secret.txt'), 'x')
  const assets = folderAssets(folder)
  const shown = (path: string) => {
    const { type, body, isImmutable } = assets(path) ?? {}
    return [type, body?.toString(), isImmutable]
  }
  const page = ['text/html; charset=utf-8', '<p>', false]
  expect(['/', '/index.html', '/tools', '/calls/7'].map(shown)).toEqual([page, page, page, page])
  expect(shown('/assets/index-3f2a_b-1.js')).toEqual(['text/javascript; charset=utf-8', '1', true])
  expect(shown('/icon.svg')).toEqual(['image/svg+xml', '<svg>', false])
  for (const path of ['/secret.txt', '/other', '/assets', '', '/../icon.svg']) expect(assets(path), path).toBeUndefined()
  expect(folderAssets(join(folder, 'none'))('/')?.body.toString()).toContain('not built')
})
