/** `trunkline token explain`: what it prints of a token on stdin, and that the token is not among it (T-14). */
import { PassThrough } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkIssuers } from '../../../src/commands/inspect/check-issuers.ts'
import { explainToken } from '../../../src/commands/inspect/token-explain.ts'
import { CommandError } from '../../../src/commands/terminal/io.ts'
import type { Invocation } from '../../../src/commands/terminal/io.ts'
import { hashLine } from '../../../src/auth/inbound/static-tokens.ts'
import { operatorCommand } from '../../../src/operator-command.ts'
import { Redactor } from '../../../src/redactor.ts'
import { startAuthorizationServer } from '../../support/authorization-server.ts'
import type { AuthorizationServer } from '../../support/authorization-server.ts'
import { tokenOf } from '../../support/credentials.ts'
import { yaml } from '../config/workspace.ts'
import { ioWith } from '../../support/io.ts'

const AUDIENCE = 'https://mcp.example.com'
let issuer: AuthorizationServer
beforeAll(async () => {
  issuer = await startAuthorizationServer()
})
afterAll(() => issuer[Symbol.asyncDispose]())

const oauth = (more = '') => `auth:
  tokens: [{ id: ci, hash: "${hashLine(tokenOf('A'))}" }]
  oauth: { issuer: "${issuer.issuer}", audience: "${AUDIENCE}", scopes: [mcp:connect]${more} }
  map: [{ when: { claim: groups, has: dev }, toolsets: [build] }]
toolsets: { build: {} }
`

const explain = async (file: string, input: string | undefined, json = false, { signal } = new AbortController()) => {
  await using files = await yaml(file)
  const [stdin, stdout, stderr] = [
    new PassThrough(),
    new PassThrough({ encoding: 'utf8' }),
    new PassThrough({ encoding: 'utf8' }),
  ]
  const redactor = new Redactor()
  const io = ioWith({ stdin, stdout, stderr, interrupted: signal, redactor })
  const configuration = await files.load()
  const invocation = {
    files: ['trunkline.yaml'],
    command: (...words: readonly string[]) => operatorCommand([], ...words),
    read: () => Promise.resolve({ configuration, sinceMs: 0 }),
    context: { env: {} },
    io,
    json,
  } as unknown as Invocation
  if (input !== undefined) stdin.end(input)
  const ended = await explainToken(invocation).catch((error: unknown) => error as CommandError)
  const out = (stdout.read() as string | null) ?? ''
  const code = ended instanceof CommandError ? ended.exitCode : ended
  return { code, out, message: ended instanceof CommandError ? ended.message : '', configuration }
}

const userToken = async (user: 'alice' | 'bob', resource = AUDIENCE, scope = 'mcp:connect') =>
  (await issuer.userToken(user, { resource, scope })).access_token

test('a good token: every check, the caller, what it may use', async () => {
  const token = await userToken('alice')
  const { code, out } = await explain(oauth(), `Bearer ${token}\n`)
  expect(code).toBe(0)
  expect(out).toMatch(/^ok +issuer +http/m)
  expect(out).toMatch(/^ok +signature +RS256 by key/m)
  expect(out).toMatch(/^principal +\["http.*","sub","alice"\]$/m)
  expect(out).toMatch(/^toolsets +build$/m)
  expect(out).toMatch(/^scopes +mcp:connect$/m)
  expect(out).toMatch(/^valid at +every endpoint$/m)
  expect(out).not.toContain(token)
})

describe('a refused token: which check, and what to change', () => {
  test.each([
    [
      'another audience',
      () => userToken('alice', 'https://other.example.com'),
      /^refused +audience +aud is .*, expected https:\/\/mcp\.example\.com/m,
    ],
    ['no rule of auth.map', () => userToken('bob'), /^refused +toolsets +groups is a list of 1, expected a value/m],
    ['a missing scope', () => userToken('alice', AUDIENCE, 'mcp:a'), /^missing scopes +mcp:connect$/m],
    ['an opaque text', async () => 'opaque-token', /^refused +form .*auth\.oauth\.introspection/m],
  ])('%s', async (_name, token, line) => {
    const { code, out } = await explain(oauth(), await token())
    expect(code).toBe(3)
    expect(out).toMatch(line)
  })
  test('for machines as JSON', async () => {
    const { code, out, message } = await explain(oauth(), await userToken('alice', 'https://other.example.com'), true)
    expect([code, message]).toEqual([3, 'the token is refused; see the checks above'])
    const answer = JSON.parse(out) as { ok: boolean; checks: { check: string; ok: boolean; claim?: string }[] }
    expect(answer.ok).toBe(false)
    expect(answer.checks.find(({ ok }) => !ok)).toMatchObject({ check: 'audience', claim: 'aud', remedy: expect.any(String) })
  })
})

test('Ctrl-C ends the wait for a token', async () => {
  const interrupt = new AbortController()
  const ended = explain(oauth(), undefined, false, interrupt)
  interrupt.abort()
  expect(await ended).toMatchObject({ code: 130, out: '', message: 'interrupted' })
})

test('a static token, an empty input, an endless one, and a configuration without auth', async () => {
  expect((await explain(oauth(), tokenOf('A'))).out).toMatch(/^principal +token:ci$/m)
  expect((await explain(oauth(), '\n\n')).message).toContain('expected a token on stdin')
  expect((await explain(oauth(), 'x'.repeat(200_000))).message).toContain('more than 131072 characters')
  expect((await explain('servers: {}\n', 'x')).message).toContain('no token is needed here')
})

test('an issuer that cannot be reached says nothing about a token; check --live tells why', async () => {
  const away = oauth().replace(issuer.issuer, 'http://127.0.0.1:9')
  const claims = Buffer.from(JSON.stringify({ iss: 'http://127.0.0.1:9' })).toString('base64url')
  const { code, message, configuration } = await explain(away, `eyJhbGciOiJSUzI1NiJ9.${claims}.AAAA`)
  expect([code, message]).toEqual([4, expect.stringContaining('nothing can be said about the token: no')])
  expect(await checkIssuers(configuration)).toEqual([
    {
      issuer: 'http://127.0.0.1:9',
      path: 'auth.oauth',
      keys: undefined,
      error: expect.stringContaining('no metadata of http://127.0.0.1:9'),
    },
  ])
  const { configuration: good } = await explain(oauth(), tokenOf('A'))
  expect(await checkIssuers(good)).toEqual([{ issuer: issuer.issuer, path: 'auth.oauth', keys: 1, error: undefined }])
})
