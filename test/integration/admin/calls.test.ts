/** Calls as they are captured: what is shown of them, to whom, and what is not kept. */
import { describe, expect, test } from 'vitest'
import { hashLine, makeToken } from '../../../src/auth/inbound/static-tokens.ts'
import { callTool, exchange, openAdmin } from '../../support/admin.ts'
import type { Admin } from '../../support/admin.ts'
import { commandLine } from '../../support/cli.ts'
import type { Cli } from '../../support/cli.ts'

const BOUND = 'admin: { bind: "127.0.0.1:0" }\n'

const serving = async (more = ''): Promise<Cli & { readonly url: string }> => {
  const cli = await commandLine()
  await cli.write('trunkline.yaml', `${BOUND}servers:\n  one: ${cli.fake()}\n${more}`)
  const { url } = await cli.up()
  return Object.assign(cli, { url })
}

type Row = Record<string, unknown> & { id: number; ms: Record<string, number> }

const rows = async ({ ask }: Admin, filter = ''): Promise<Row[]> =>
  ((await ask('GET', `/api/calls?filter=${encodeURIComponent(filter)}`)).json as { calls: Row[] }).calls

describe('a row', () => {
  test('says who called what, how it ended and where the time went', async () => {
    await using cli = await serving()
    const admin = await openAdmin(cli)
    await callTool(cli.url, 'one__echo', { text: 'x' })
    await callTool(cli.url, 'one__fail', {})
    await callTool(cli.url, 'one__refuse', {})
    await callTool(cli.url, 'zz__nothing', {})
    const [unknown, refused, failed, good] = await rows(admin)
    expect(good).toMatchObject({
      state: 'done',
      host: 'tester 9',
      transport: 'http',
      era: 'modern',
      revision: '2026-07-28',
      principal: 'local',
      method: 'tools/call',
      name: 'one__echo',
      server: 'one',
      original: 'echo',
      outcome: 'ok',
      error: null,
      lanes: 1,
    })
    expect(good?.ms['downstream']).toBeGreaterThan(0)
    expect(good?.ms['total']).toBeGreaterThanOrEqual(good?.ms['downstream'] ?? Infinity)
    expect([failed?.['outcome'], refused?.['outcome'], unknown?.['outcome']]).toEqual(['tool_error', 'error', 'refused'])
    expect((await rows(admin, 'err')).map(({ id }) => id)).toEqual([unknown?.id, refused?.id, failed?.id])
    expect(await rows(admin, 'tool:one__e* ok')).toHaveLength(1)
    const bad = await admin.ask('GET', '/api/calls?filter=sever:x')
    expect([bad.status, bad.json]).toMatchObject([400, { error: { code: 'filter', at: 0 } }])
  })

  test('pages go on where the one before ended', async () => {
    await using cli = await serving()
    const { ask } = await openAdmin(cli)
    for (let at = 0; at < 5; at++) await callTool(cli.url, 'one__echo', { text: String(at) })
    const first = (await ask('GET', '/api/calls?limit=2')).json as { calls: Row[]; next: number }
    const second = (await ask('GET', `/api/calls?limit=2&before=${first.next}`)).json as { calls: Row[]; next: number }
    const third = (await ask('GET', `/api/calls?limit=2&before=${second.next}`)).json as { calls: Row[]; next: null }
    const ids = [first, second, third].flatMap(({ calls }) => calls.map(({ id }) => id))
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => b - a))
    expect([ids.length, third.next]).toEqual([5, null])
  })
})

describe('what is kept', () => {
  test('both hops as bytes, and each change between them with its rule', async () => {
    await using cli = await serving('ui: { capture: { bodies: all } }\n')
    const admin = await openAdmin(cli)
    const answer = await callTool(cli.url, 'one__echo', { text: 'x' })
    const [{ id } = { id: 0 }] = await rows(admin)
    const { json } = await admin.ask('GET', `/api/calls/${id}`)
    expect(json['response']).toEqual({ bytes: Buffer.byteLength(answer), text: answer })
    const [hop] = json['hops'] as { request: { text: string }; response: { text: string } }[]
    expect(JSON.parse(hop?.request.text ?? '')).toMatchObject({
      method: 'tools/call',
      params: { name: 'echo', arguments: { text: 'x' } },
    })
    const { request, response } = json['diff'] as Record<
      string,
      { path: string[]; change: string; rule: string; from: string; to: string }[]
    >
    expect(request).toContainEqual(
      expect.objectContaining({ path: ['params', 'name'], change: 'replaced', from: '"one__echo"', to: '"echo"', rule: '4.2' }),
    )
    expect(request?.every(({ rule }) => rule !== '')).toBe(true)
    expect(response).toContainEqual(
      expect.objectContaining({ path: ['result', 'resultType'], change: 'added', to: '"complete"' }),
    )
    expect(response?.every(({ rule }) => rule !== '')).toBe(true)
  })

  test('by default the bodies of calls that went wrong, and no others', async () => {
    await using cli = await serving()
    const admin = await openAdmin(cli)
    await callTool(cli.url, 'one__echo', { text: 'x' })
    await callTool(cli.url, 'one__refuse', {})
    const [bad, good] = await rows(admin)
    expect((await admin.ask('GET', `/api/calls/${bad?.id}`)).json).toMatchObject({
      request: { text: expect.stringContaining('host-1') as string },
    })
    const { json } = await admin.ask('GET', `/api/calls/${good?.id}`)
    expect([json['request'], json['diff']]).toEqual([undefined, null])
  })

  test('T-14 without secrets, by value and by the name of the member', async () => {
    await using cli = await serving('ui: { capture: { bodies: all } }\n')
    cli.env['MY_TOKEN'] = 'planted-sentinel-1234'
    await using other = await commandLine({}, { MY_TOKEN: 'planted-sentinel-1234' })
    await other.write(
      'trunkline.yaml',
      `${BOUND}ui: { capture: { bodies: all } }\nservers:\n  one: { command: ${JSON.stringify(process.execPath)}, args: ${other.fake().slice(other.fake().indexOf('args: ') + 6, -2)}, env: { SECRET: "\${MY_TOKEN}" } }\n`,
    )
    const { url } = await other.up()
    const admin = await openAdmin(other)
    await callTool(url, 'one__echo', { text: 'planted-sentinel-1234', password: 'typed-by-a-person', api_key: 'k-1' })
    const [{ id } = { id: 0 }] = await rows(admin)
    const { text } = await admin.ask('GET', `/api/calls/${id}`)
    for (const secret of ['planted-sentinel-1234', 'typed-by-a-person', 'k-1"']) expect(text).not.toContain(secret)
    expect(text).toContain('***')
  })

  test('of a large message the beginning and the end', async () => {
    await using cli = await serving('ui: { capture: { bodies: all, body: 2KiB } }\n')
    const admin = await openAdmin(cli)
    await callTool(cli.url, 'one__echo', { text: `begin${'x'.repeat(100_000)}end` })
    const [{ id } = { id: 0 }] = await rows(admin)
    const { json } = await admin.ask('GET', `/api/calls/${id}`)
    const { head, tail, omitted } = json['request'] as { head: string; tail: string; omitted: number }
    expect([head.length, tail.length]).toEqual([1_024, 1_024])
    expect([head.includes('begin'), omitted > 90_000, json['diff']]).toEqual([true, true, null])
  })

  test('within ui.capture.ring, the oldest going first', async () => {
    await using cli = await serving('ui: { capture: { bodies: all, ring: 64KiB } }\n')
    const admin = await openAdmin(cli)
    for (let at = 0; at < 12; at++) await callTool(cli.url, 'one__echo', { text: 'y'.repeat(5_000) })
    const { calls, kept } = (await admin.ask('GET', '/api/calls')).json as {
      calls: Row[]
      kept: { calls: number; bytes: number }
    }
    expect(kept.bytes).toBeLessThanOrEqual(64 * 1024)
    expect(kept.calls).toBeLessThan(12)
    const last = calls[0]?.id ?? 0
    expect((await admin.ask('GET', `/api/calls/${last - 11}`)).json).toMatchObject({ error: { code: 'gone' } })
  })
})

test('only an operator sees the calls of another caller, and its messages', async () => {
  const [a, b, op] = [makeToken(), makeToken(), makeToken()]
  const tokens = [`{ id: a, hash: "${hashLine(a)}" }`, `{ id: b, hash: "${hashLine(b)}" }`]
  await using cli = await serving(
    `ui: { write: true, capture: { bodies: all } }\nauth: { tokens: [${tokens.join(', ')}, { id: op, hash: "${hashLine(op)}", operator: true }] }\n`,
  )
  const admin = await openAdmin(cli)
  await callTool(cli.url, 'one__echo', { text: 'of a' }, a)
  await callTool(cli.url, 'one__echo', { text: 'of b' }, b)
  const as = (token: string, path: string, method = 'GET', body?: object) =>
    exchange(
      admin.origin,
      method,
      path,
      { Authorization: `Bearer ${token}`, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
      body === undefined ? '' : JSON.stringify(body),
    )
  const all = await rows(admin)
  expect(all.map(({ principal }) => principal)).toEqual(['token:b', 'token:a'])
  const [ofB, ofA] = all.map(({ id }) => id)
  const own = (await as(a, '/api/calls')).json as { calls: Row[] }
  expect(own.calls.map(({ principal }) => principal)).toEqual(['token:a'])
  expect((await as(a, `/api/calls/${ofB}`)).json).toMatchObject({ error: { code: 'gone' } })
  expect((await as(a, `/api/calls/${ofA}`)).text).toContain('of a')
  expect((await as(a, '/api/session')).json).toMatchObject({ role: 'user', write: false })
  for (const path of ['/api/status', '/api/tools', '/api/hidden', '/api/settings', '/api/stats', '/api/plan', '/api/history'])
    expect((await as(a, path)).json, path).toMatchObject({ error: { code: 'operator_only' } })
  expect((await as(a, '/api/replay', 'POST', { id: ofB })).json).toMatchObject({ error: { code: 'operator_only' } })

  expect((await as(op, '/api/session')).json).toMatchObject({ role: 'operator', write: true })
  const seen = (await as(op, '/api/calls')).json as { calls: Row[] }
  expect(seen.calls.map(({ principal }) => principal)).toEqual(['token:b', 'token:a'])
  for (const [id, words] of [
    [ofA, 'of a'],
    [ofB, 'of b'],
  ] as const) {
    const { json } = await as(op, `/api/calls/${id}`)
    expect(JSON.stringify([json['request'], json['response'], json['hops']]).split(words).length).toBeGreaterThan(4)
  }
})
