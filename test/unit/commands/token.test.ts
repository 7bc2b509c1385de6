/** `trunkline token new`: what it prints is a line that the configuration takes, and lets its token in (T-31). */
import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { hashLine } from '../../../src/auth/inbound/static-tokens.ts'
import { newToken } from '../../../src/commands/running/token.ts'
import type { TokenOptions } from '../../../src/commands/running/token.ts'
import { yaml } from '../config/workspace.ts'
import { ioWith } from '../../support/io.ts'

const NOW_MS = Date.parse('2027-06-30T12:00:00Z')
const run = async (options: TokenOptions, json = false) => {
  const [stdout, stderr] = [new PassThrough({ encoding: 'utf8' }), new PassThrough({ encoding: 'utf8' })]
  const io = ioWith({ stdout, stderr })
  expect(await newToken(io, json, options, NOW_MS)).toBe(0)
  const said = (stream: PassThrough): string => (stream.read() as string | null) ?? ''
  return { out: said(stdout), err: said(stderr) }
}

test.each<TokenOptions>([
  {},
  { id: 'ci.build_1' },
  { toolset: ['review', 'ops'], expires: '2027-06-30' },
  { expires: '2027-07-01T00:00:00+02:00' },
])('%j: the token, and the line that lets it in', async (options) => {
  const { out, err } = await run(options)
  const [token = '', line = '', ...more] = out.split('\n')
  expect(more).toEqual([''])
  expect(err).not.toContain(token)
  await using files = await yaml(`auth:\n  tokens:\n    ${line}\ntoolsets: { review: {}, ops: {} }\n`)
  const [kept] = (await files.load()).host.auth?.tokens ?? []
  expect(kept).toMatchObject({ id: options.id ?? 'host', toolsets: options.toolset, hash: hashLine(token).slice(7) })
  expect(kept?.expiresMs).toBe(
    options.expires === undefined
      ? Infinity
      : options.expires.length === 10
        ? Date.parse('2027-07-01')
        : Date.parse(options.expires),
  )
})

test('for machines it is one object', async () => {
  const { out, err } = await run({ id: 'ci', toolset: ['review'] }, true)
  const { token, entry } = JSON.parse(out) as { token: string; entry: object }
  expect(entry).toEqual({ id: 'ci', hash: hashLine(token), toolsets: ['review'] })
  expect(err).toBe('')
})

describe('refused', () => {
  test.each<[TokenOptions, string]>([
    [{ id: 'a b' }, '--id takes letters'],
    [{ id: '' }, '--id takes letters'],
    [{ expires: '2027-06-29' }, '--expires 2027-06-29 is in the past'],
    [{ expires: '2027-06-31' }, '--expires takes a date'],
    [{ expires: 'soon' }, '--expires takes a date'],
  ])('%j', async (options, message) => {
    await expect(run(options)).rejects.toThrow(message)
  })
})
