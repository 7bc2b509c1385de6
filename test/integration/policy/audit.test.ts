/** Every call and every denial is in the audit log, wherever it came in (`telemetry.log.audit`). */
import { mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Audit } from '../../../src/gateway/audit.ts'
import type { ToolsetOptions } from '../../../src/catalog/view/toolset.ts'
import { startGateway } from '../../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../../support/gateway.ts'
import { fake } from '../../support/fake-downstream.ts'
import { bearer, staticToken, tokenOf } from '../../support/credentials.ts'
import { toolsetOf } from '../../support/toolsets.ts'
import { everyTransport, legacyHttp, modernHttp, modernPipe } from '../../support/fake-host.ts'

type Line = Readonly<Record<string, unknown>>

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trunkline-audit-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const file = (): string => join(folder, 'audit.ndjson')
const audited = (setup: GatewaySetup, bodies = false): Promise<TestGateway> =>
  startGateway({ ...setup, audit: { file: file(), bodies, onFailure: 'refuse' } })

/** The lines of a gateway that has ended. */
const linesOf = async (gateway: TestGateway): Promise<readonly Line[]> => {
  await gateway.running.stop()
  return (await readFile(file(), 'utf8'))
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line)
}

const offer = fake.of({ kind: 'legacy stdio', tools: ['x', 'bad'], resources: ['file:///r'] })

test.each(everyTransport)('calls of a host over $name are one line each', async ({ connect, era }) => {
  await using gateway = await audited({ servers: { a: offer } })
  gateway
    .fake('a')
    .on('tools/call', (turn) => (turn.params['name'] === 'bad' ? turn.fail(-5, 'no') : { content: [], isError: true }))
  {
    await using host = await connect(gateway)
    await host.call('tools/list')
    await host.call('tools/call', { name: 'a__x', arguments: { word: 'not to be written' } })
    await host.call('tools/call', { name: 'a__bad' }).catch(() => undefined)
    await host.call('tools/call', { name: 'z__gone' }).catch(() => undefined)
  }
  const lines = (await linesOf(gateway)).filter(({ method }) => String(method).startsWith('tools/'))
  const common = { principal: 'local', ...(era === 'legacy' && { session: expect.stringMatching(/^[0-9a-f]{12}$/) as unknown }) }
  expect(lines).toEqual([
    expect.objectContaining({ ...common, method: 'tools/list', decision: 'allowed', outcome: 'ok' }),
    expect.objectContaining({ ...common, name: 'a__x', server: 'a', original: 'x', decision: 'allowed', outcome: 'tool_error' }),
    expect.objectContaining({ ...common, name: 'a__bad', server: 'a', original: 'bad', outcome: 'error', code: -5 }),
    expect.objectContaining({ ...common, name: 'z__gone', decision: 'denied', reason: 'unknown' }),
  ])
  expect(JSON.stringify(lines)).not.toContain('not to be written')
})

describe('what is turned away before it is a call', () => {
  const post = (gateway: TestGateway, body: string, headers: Record<string, string> = {}, path = '/mcp'): Promise<Response> =>
    fetch(new URL(path, gateway.url), {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers },
      body,
    })

  test('over HTTP is a line each, with its status and why, and reaches no server', async () => {
    await using gateway = await audited({ servers: { a: offer }, hostLimits: { maxBodyBytes: 1_000 } })
    const list = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    const answers = [
      await post(gateway, list, { Origin: 'https://evil.test' }),
      await post(gateway, list, {}, '/mcp/no-such-toolset'),
      await post(gateway, list, {}, '/servers/gone/mcp'),
      await post(gateway, list, { 'Mcp-Session-Id': 'a-stolen-session' }),
      await post(gateway, list),
      await post(gateway, 'no json'),
      await post(gateway, list, { 'Content-Type': 'text/plain' }),
      await post(gateway, list, { Accept: 'text/html' }),
      await post(gateway, ' '.repeat(2_000)),
      await fetch(gateway.url, { method: 'PUT' }),
      await fetch(new URL('/sse', gateway.url), { method: 'DELETE' }),
      await post(gateway, list, {}, '/messages?sessionId=gone'),
    ]
    expect(gateway.fake('a').journal.entries).toEqual([])
    const lines = await linesOf(gateway)
    expect(lines.map(({ status, reason }) => [status, reason])).toEqual([
      [403, 'origin'],
      [404, 'path'],
      [404, 'path'],
      [404, 'session'],
      [400, 'invalid'],
      [400, 'invalid'],
      [415, 'invalid'],
      [406, 'invalid'],
      [413, 'too_large'],
      [405, 'invalid'],
      [405, 'invalid'],
      [404, 'session'],
    ])
    expect(lines.map(({ status }) => status)).toEqual(answers.map(({ status }) => status))
    expect(lines.every(({ decision }) => decision === 'denied')).toBe(true)
    expect(await readFile(file(), 'utf8')).not.toContain('a-stolen-session')
  })

  test.each([modernHttp, modernPipe])('over $name: what no era knows', async ({ connect }) => {
    await using gateway = await audited({ servers: { a: offer } })
    await using host = await connect(gateway)
    await host.call('tools/explode').catch(() => undefined)
    expect(await linesOf(gateway)).toMatchObject([
      { decision: 'denied', reason: 'invalid', method: 'tools/explode', detail: 'Method not found: tools/explode' },
    ])
  })

  test('in a session, with the session and its principal', async () => {
    await using gateway = await audited({ servers: { a: offer }, hostLimits: { maxInFlightPerSession: 1 } })
    gateway.fake('a').on('tools/call', fake.never)
    await using host = await legacyHttp.connect(gateway)
    const open = host.begin('tools/call', { name: 'a__x' })
    await gateway.fake('a').until('tools/call')
    await host.call('tools/call', { name: 'a__x' })
    await host.call('tools/explode').catch(() => undefined)
    open.cancel()
    await gateway.fake('a').until('notifications/cancelled')
    const lines = await linesOf(gateway)
    expect(lines).toMatchObject([
      { reason: 'overloaded', principal: 'local', session: expect.stringMatching(/^[0-9a-f]{12}$/) as unknown },
      { reason: 'invalid', method: 'tools/explode' },
      { name: 'a__x', decision: 'allowed', outcome: 'cancelled' },
    ])
  })

  test('on the pages of sign-ins is a line each, without the link', async () => {
    await using gateway = await audited({ servers: { a: offer } })
    const visit = async (path: string, method = 'GET'): Promise<number> =>
      (await fetch(new URL(path, gateway.url), { method, redirect: 'manual' })).status
    const gone = '/connect/AAAAAAAAAAAAAAAAAAAAAA'
    const answers = [
      await visit(gone),
      await visit(gone, 'DELETE'),
      await visit('/connect/callback?code=a-code&state=a-state'),
      await visit('/connect/a/b'),
    ]
    const denied = (await linesOf(gateway)).map(({ decision, reason, status, path }) => ({ decision, reason, status, path }))
    expect(answers).toEqual([404, 405, 400, 404])
    expect(denied).toEqual([
      { decision: 'denied', reason: 'path', status: 404, path: '/connect' },
      { decision: 'denied', reason: 'invalid', status: 405, path: '/connect' },
      { decision: 'denied', reason: 'invalid', status: 400, path: '/connect/callback' },
      { decision: 'denied', reason: 'path', status: 404, path: '/connect' },
    ])
  })
})

describe('who is kept from what', () => {
  const toolset = (name: string, more: Partial<ToolsetOptions> = {}): ToolsetOptions =>
    toolsetOf({ tools: ['a__x'] }, { name, ...more })

  test('a name that a toolset hides, or a rule of its server, is told with what hides it; a name of nothing without', async () => {
    const place = 'trunkline.yaml:9:1'
    const deny = [{ glob: 'secret', path: 'servers.a.filter.deny[0]', place }]
    const list = { allow: undefined, deny: [] }
    const curation = {
      tools: { allow: undefined, deny, hints: [] },
      resources: list,
      prompts: list,
      edits: new Map(),
      aliases: new Map(),
    }
    await using gateway = await audited({
      servers: { a: fake.of({ kind: 'modern http', tools: ['x', 'bad', 'secret'] }) },
      options: { a: { curation } },
      gateway: { toolsets: [toolset('ops')] },
    })
    {
      await using host = await modernHttp.connect(gateway, { path: '/mcp/ops' })
      for (const name of ['a__bad', 'a__secret', 'a__gone']) await host.call('tools/call', { name }).catch(() => undefined)
    }
    const refused = (await linesOf(gateway)).map(({ name, toolset, reason, rule }) => [name, toolset, reason, rule])
    expect(refused.filter(([name]) => name !== undefined)).toEqual([
      ['a__bad', 'ops', 'unknown', 'toolsets.ops'],
      ['a__secret', 'ops', 'unknown', `servers.a.filter.deny[0] (${place})`],
      ['a__gone', 'ops', 'unknown', undefined],
    ])
  })

  test.each(['accept', 'decline'] as const)('what a person is asked about, by a host of either era: %s', async (action) => {
    await using gateway = await audited({ servers: { a: offer }, gateway: { toolsets: [toolset('ops', { confirm: ['a__x'] })] } })
    for (const { connect } of [legacyHttp, modernHttp]) {
      await using host = await connect(gateway, { path: '/mcp/ops', capabilities: { elicitation: { form: {} } } })
      host.answer('elicitation/create', () => ({ action, content: {} }))
      const { requestState } = await host.call('tools/call', { name: 'a__x' })
      if (requestState !== undefined)
        await host.call('tools/call', { name: 'a__x', requestState, inputResponses: { confirm: { action, content: {} } } })
    }
    const decided =
      action === 'accept' ? ['allowed', undefined, undefined, 'a'] : ['denied', 'declined', 'toolsets.ops.confirm', 'a']
    const calls = (await linesOf(gateway)).filter(({ method }) => method === 'tools/call')
    expect(calls.map(({ decision, reason, rule, server }) => [decision, reason, rule, server])).toEqual([
      decided,
      ['allowed', undefined, undefined, 'a'],
      decided,
    ])
    expect(calls[1]).toMatchObject({ outcome: 'input_required' })
    expect(gateway.fake('a').all('tools/call')).toHaveLength(action === 'accept' ? 2 : 0)
  })

  test('who has no credential, a bad one, or not the toolset', async () => {
    const auth = { tokens: [staticToken('A', { toolsets: ['ops'] })], oauth: undefined, map: [] }
    const toolsets = [toolset('ops'), toolset('night')]
    await using gateway = await audited({ servers: { a: offer }, gateway: { toolsets }, host: { auth } })
    const ask = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
      fetch(new URL(path, gateway.url), { method: 'POST', headers })
    await ask('/mcp')
    await ask('/mcp', bearer(tokenOf('Z')))
    await ask('/mcp?access_token=x')
    await ask('/mcp/night', bearer(tokenOf('A')))
    await ask('/mcp/ops', bearer(tokenOf('A')))
    expect((await linesOf(gateway)).map(({ status, reason, principal, path }) => [status, reason, principal, path])).toEqual([
      [401, 'unauthorized', undefined, '/mcp'],
      [401, 'unauthorized', undefined, '/mcp'],
      [400, 'invalid', undefined, '/mcp'],
      [404, 'path', 'token:A', '/mcp/night'],
      [415, 'invalid', 'token:A', '/mcp/ops'],
    ])
    expect(await readFile(file(), 'utf8')).not.toContain(tokenOf('Z'))
  })

  test('a toolset has one rate for all who have it, at each of its paths', async () => {
    const rate = { amount: 2, periodMs: 3_600_000, text: '2/h' }
    const rates = [{ option: 'toolsets.default.limits.rate', rate, of: { kind: 'toolset', toolset: 'default' } as const }]
    await using gateway = await audited({ servers: { a: offer }, gateway: { rates, toolsets: [toolset('default')] } })
    const kinds: unknown[] = []
    for (const path of ['/mcp', '/mcp/default', '/servers/a/mcp']) {
      await using host = await modernHttp.connect(gateway, { path })
      const { _meta } = await host.call('tools/call', { name: path.startsWith('/mcp') ? 'a__x' : 'x' })
      kinds.push((_meta as Record<string, { kind?: string }>)['dev.trunkline/gateway']?.kind)
    }
    expect(kinds).toEqual([undefined, undefined, 'rate_limited'])
    const denied = (await linesOf(gateway)).filter(({ decision }) => decision === 'denied')
    expect(denied).toMatchObject([{ reason: 'rate_limited', rule: 'toolsets.default.limits.rate', toolset: 'default' }])
  })
})

test('a rate that is reached is told to the host with its option and how long, and is in the log and in the counts', async () => {
  const rate = { amount: 1, periodMs: 3_600_000, text: '1/h' }
  const rates = [{ option: 'servers.a.limits.rate', rate, of: { kind: 'server', server: 'a' } as const }]
  await using gateway = await audited({ servers: { a: offer, b: offer }, gateway: { rates } })
  {
    await using host = await modernHttp.connect(gateway)
    await host.call('tools/call', { name: 'a__x' })
    expect(await host.call('tools/call', { name: 'a__x' })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/^servers\.a\.limits\.rate \(1\/h\) is reached; retry after \d+ s$/) as unknown }],
      _meta: {
        'dev.trunkline/gateway': {
          kind: 'rate_limited',
          executed: 'no',
          retryable: true,
          retryAfterMs: expect.any(Number) as unknown,
        },
      },
    })
    await host.call('tools/call', { name: 'b__x' })
  }
  expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
  expect(gateway.running.gateway.rates.counts).toEqual([{ option: 'servers.a.limits.rate', rate: '1/h', refused: 1 }])
  const calls = (await linesOf(gateway)).filter(({ method }) => method === 'tools/call')
  expect(calls).toMatchObject([
    { outcome: 'ok' },
    { decision: 'denied', reason: 'rate_limited', rule: 'servers.a.limits.rate', server: 'a' },
    { outcome: 'ok', server: 'b' },
  ])
})

test('a file that was renamed is opened anew by its name; where that cannot be, lines go on where they went', async () => {
  await using gateway = await audited({ servers: { a: offer } })
  await using host = await modernHttp.connect(gateway)
  const { running } = gateway
  await rename(folder, `${folder}-away`)
  await expect(running.reopen()).rejects.toThrow(/^telemetry\.log\.audit: .* cannot be opened \(ENOENT\)/)
  await rename(`${folder}-away`, folder)
  await host.call('tools/call', { name: 'a__x' })
  await rename(file(), `${file()}.1`)
  await running.reopen()
  await host.call('tools/list')
  expect((await linesOf(gateway)).map(({ method }) => method)).toEqual(['tools/list'])
  expect(await readFile(`${file()}.1`, 'utf8')).toContain('a__x')
})

test('while the log cannot be written no server is called, and the host is told why', async () => {
  await using gateway = await startGateway({ servers: { a: offer } })
  const full = { trouble: 'ENOSPC', write: () => undefined }
  gateway.running.gateway.auditBy(
    new Audit({ sink: full, bodies: false, hideJson: (json) => json, toolsetOf: () => undefined, hiddenBy: () => undefined }),
  )
  await using host = await modernHttp.connect(gateway)
  const text = 'the audit log cannot be written (ENOSPC), so that no call is made (telemetry.log.audit); retry after 1 s'
  expect(await host.call('tools/call', { name: 'a__x' })).toMatchObject({ isError: true, content: [{ text }] })
  await expect(host.call('tools/list')).rejects.toMatchObject({ message: text })
  expect(gateway.fake('a').all('tools/call')).toEqual([])
})

test('what a configuration changes: another file, and none', async () => {
  await using gateway = await audited({ servers: { a: offer } })
  const { running } = gateway
  {
    await using host = await modernHttp.connect(gateway)
    await host.call('tools/call', { name: 'a__x' })
    const other = { file: join(folder, 'other.ndjson'), bodies: true, onFailure: 'drop' } as const
    await running.apply({ ...running.configuration, audit: other }, new Set())
    await host.call('tools/call', { name: 'a__x', arguments: { word: 'written' } })
    await running.apply({ ...running.configuration, audit: undefined }, new Set())
    expect(running.audit).toBeUndefined()
    await host.call('tools/call', { name: 'a__x' })
    const bad = { file: join(folder, 'none', 'x'), bodies: false, onFailure: 'drop' } as const
    await expect(running.apply({ ...running.configuration, audit: bad }, new Set())).rejects.toThrow('cannot be opened (ENOENT)')
    await host.call('tools/call', { name: 'a__x' })
  }
  expect(await linesOf(gateway)).toHaveLength(1)
  expect((await readFile(join(folder, 'other.ndjson'), 'utf8')).split('\n')).toEqual([expect.stringContaining('written'), ''])
})

test('F-25 a call that is under way while the file changes is in the next one', async () => {
  await using gateway = await audited({ servers: { a: offer } })
  const { promise, resolve } = Promise.withResolvers<{ content: [] }>()
  gateway.fake('a').on('tools/call', () => promise)
  await using host = await modernHttp.connect(gateway)
  const end = host.call('tools/call', { name: 'a__x' })
  await gateway.fake('a').until('tools/call')
  const { running } = gateway
  const next = { file: join(folder, 'next.ndjson'), bodies: false, onFailure: 'refuse' } as const
  await running.apply({ ...running.configuration, audit: next }, new Set())
  resolve({ content: [] })
  await end
  expect(await linesOf(gateway)).toEqual([])
  expect((await readFile(next.file, 'utf8')).split('\n')).toEqual([expect.stringContaining('a__x'), ''])
})

describe('each round of a call is a line with its server and tool', () => {
  test('B262 of a question of a legacy server', async () => {
    await using gateway = await audited({ servers: { a: offer }, policy: { otherwise: 'allow' } })
    gateway.fake('a').on('tools/call', async (turn) => {
      await turn.ask('elicitation/create', { message: 'Which?', requestedSchema: { type: 'object', properties: {} } })
      return { content: [] }
    })
    await using host = await modernHttp.connect(gateway, { capabilities: { elicitation: { form: {} } } })
    const { inputRequests, requestState } = await host.call('tools/call', { name: 'a__x' })
    const inputResponses = { [Object.keys(inputRequests as object)[0]!]: { action: 'accept', content: {} } }
    await host.call('tools/call', { name: 'a__x', requestState, inputResponses })
    const policy = { decision: 'allow', rule: 'policy.default' }
    const round = { method: 'tools/call', name: 'a__x', server: 'a', original: 'x', policy }
    expect((await linesOf(gateway)).filter(({ method }) => method === 'tools/call')).toEqual([
      expect.objectContaining({ ...round, outcome: 'input_required' }),
      expect.objectContaining({ ...round, outcome: 'ok' }),
    ])
  })

  test('of a confirmation, also one that is declined', async () => {
    const toolsets = [toolsetOf({}, { name: 'default', confirm: ['a__x'] })]
    await using gateway = await audited({ servers: { a: offer }, gateway: { toolsets } })
    await using host = await modernHttp.connect(gateway, { capabilities: { elicitation: { form: {} } } })
    const { requestState } = await host.call('tools/call', { name: 'a__x' })
    await host.call('tools/call', { name: 'a__x', requestState, inputResponses: { confirm: { action: 'decline' } } })
    expect((await linesOf(gateway)).filter(({ method }) => method === 'tools/call')).toEqual([
      expect.objectContaining({ server: 'a', original: 'x', outcome: 'input_required' }),
      expect.objectContaining({ server: 'a', original: 'x', decision: 'denied', reason: 'declined' }),
    ])
  })
})
