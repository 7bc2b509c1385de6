/** `policy.rules`: what callers may do, whatever path their call takes to its server, and what lists show of it. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { DEFAULT_POLICY } from '../../../src/policy/options.ts'
import type { PolicyOptions, PolicyRule } from '../../../src/policy/options.ts'
import { startAuthorizationServer } from '../../support/authorization-server.ts'
import { oauthOf } from '../../support/credentials.ts'
import { everyFakeKind, fake } from '../../support/fake-downstream.ts'
import { everyTransport, legacyHttp, legacyPipe, legacySse, modernHttp, modernPipe } from '../../support/fake-host.ts'
import type { Host } from '../../support/fake-host.ts'
import { connectHttp } from '../../support/fakes/http-hosts.ts'
import { request } from '../../support/fakes/messages.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import { send } from '../../support/fakes/raw-http.ts'
import { startGateway } from '../../support/gateway.ts'
import type { GatewaySetup, TestGateway } from '../../support/gateway.ts'
import { identityOf, toolsetOf } from '../../support/toolsets.ts'
import { TASKS, taskServer } from '../tasks/task-server.ts'

type GivenRule = Pick<PolicyRule, 'when' | 'decision'> & { readonly reason?: string }

const policyOf = (rules: readonly GivenRule[], more: Partial<PolicyOptions> = {}): Partial<PolicyOptions> => ({
  rules: rules.map(({ when, decision, reason }, at) => ({ id: `policy.rules[${at}]`, when, decision, reason })),
  ...more,
})
const ALLOW = { when: 'true', decision: 'allow' } as const
const OFFER = fake.of({
  tools: ['pay', { name: 'list', annotations: { readOnlyHint: true }, inputSchema: { type: 'object' } }, 'drop'],
  resources: ['file:///open', 'file:///secret'],
  templates: ['file:///{name}'],
  prompts: ['greet', 'curse'],
})

const start = (rules: readonly GivenRule[], setup: Partial<GatewaySetup> = {}): Promise<TestGateway> =>
  startGateway({ servers: { a: OFFER }, policy: policyOf(rules), options: { a: { trusted: true } }, ...setup })

const namesOf = async (host: Host, method = 'tools/list', member = 'tools', key = 'name'): Promise<unknown[]> =>
  ((await host.call(method))[member] as JsonMap[]).map((entry) => entry[key])

const deniedBy = (reason: string): unknown =>
  expect.objectContaining({
    isError: true,
    content: [{ type: 'text', text: `denied by policy: ${reason}` }],
    _meta: expect.objectContaining({
      'dev.trunkline/gateway': expect.objectContaining({ kind: 'policy_denied', executed: 'no', retryable: false }) as unknown,
    }) as unknown,
  })

describe.each(everyTransport)('a host over $name', ({ connect }) => {
  test('is told why a call is denied, and the server gets nothing; the first rule that holds decides', async () => {
    await using gateway = await start([
      { when: 'call.name == "a__pay" && call.arguments.amount <= 100', decision: 'allow' },
      { when: 'call.original == "pay"', decision: 'deny', reason: 'payments above 100 are made by hand' },
      { when: 'call.annotations.readOnlyHint', decision: 'allow' },
    ])
    await using host = await connect(gateway)
    expect(await host.call('tools/call', { name: 'a__pay', arguments: { amount: 100 } })).toMatchObject({
      content: [{ text: '{"amount":100}' }],
    })
    expect(await host.call('tools/call', { name: 'a__pay', arguments: { amount: 101 } })).toEqual(
      deniedBy('payments above 100 are made by hand'),
    )
    expect(await host.call('tools/call', { name: 'a__list' })).not.toHaveProperty('isError')
    expect(await host.call('tools/call', { name: 'a__drop' })).toEqual(deniedBy('no rule of the policy allows it'))
    expect(await host.call('tools/call', { name: 'a__drop', arguments: { amount: 1 } })).toHaveProperty('isError')
    expect(gateway.fake('a').all('tools/call')).toHaveLength(2)
  })

  test('lists what it could be allowed', async () => {
    await using gateway = await start([
      { when: 'call.original == "pay" && call.arguments.amount > 100', decision: 'deny', reason: 'too much' },
      { when: 'call.original == "drop" && call.arguments.force == true', decision: 'deny', reason: 'no' },
      { when: 'call.original == "drop"', decision: 'deny', reason: 'no' },
      { when: 'call.original in ["secret", "curse"] || call.name.endsWith("secret")', decision: 'deny', reason: 'no' },
      ALLOW,
    ])
    await using host = await connect(gateway)
    expect(await namesOf(host)).toEqual(['a__pay', 'a__list'])
    expect(await namesOf(host, 'prompts/list', 'prompts')).toEqual(['a__greet'])
    expect(await namesOf(host, 'resources/list', 'resources', 'uri')).toHaveLength(1)
    expect(await namesOf(host, 'resources/templates/list', 'resourceTemplates', 'uriTemplate')).toHaveLength(1)
  })
})

test.each(everyFakeKind)('arguments reach the %s server as they came, although rules read them', async (kind) => {
  await using gateway = await start([{ when: 'call.arguments.n > 0', decision: 'allow' }], {
    servers: { a: fake.of({ kind, tools: ['echo'] }) },
  })
  await using host = await modernHttp.connect(gateway)
  const args = '{ "n" : 1.0, "big":12345678901234567890, "e":1E2, "u":"\\u00e9" }'
  const { raw } = host.sendRaw(
    JSON.stringify({
      jsonrpc: '2.0',
      id: 7,
      method: 'tools/call',
      params: { name: 'a__echo', arguments: 'HERE', _meta: META },
    }).replace('"HERE"', args),
    7,
  )
  await raw
  expect(gateway.fake('a').all('tools/call')[0]?.raw).toContain(args)
})

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'fake', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

describe('a rule that cannot be evaluated', () => {
  test.each<[what: string, args: string, told: RegExp]>([
    ['an argument is missing', '{}', /policy\.rules\[0\] cannot be evaluated/],
    ['an argument is of another type', '{"path":7}', /policy\.rules\[0\] cannot be evaluated/],
    ['T-20 a key is repeated', '{"path":"/tmp/x","path":"/etc"}', /the arguments repeat a key/],
    ['T-20 a key is the same but for case', '{"path":"/tmp/x","Path":"/etc"}', /"Path" differs from "path" only in case/],
    ['the arguments are too large', `{"path":"/tmp/${'x'.repeat(3_000)}"}`, /exceed policy\.max_arguments \(2000 bytes\)/],
  ])('denies where %s', async (_, args, told) => {
    await using gateway = await start([], {
      policy: policyOf([{ when: 'call.arguments.path.startsWith("/tmp/")', decision: 'allow' }], { maxArgumentsBytes: 2_000 }),
    })
    await using host = await legacyPipe.connect(gateway)
    const { response } = host.sendRaw(
      `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"a__pay","arguments":${args}}}`,
      9,
    )
    expect((await response).result).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(told) as unknown }] })
    expect(gateway.fake('a').all('tools/call')).toEqual([])
  })
})

test.each([
  ['an object beside `constructor`', '{"options":{"constructor":1,"force":true}}'],
  ['arguments beside `constructor`', '{"constructor":{"name":"Object"},"options":{"force":true}}'],
  ['an object within a list', '{"options":[],"all":[{"constructor":"x","options":{"force":true}}]}'],
])('T-20 a rule that reads optional members sees them in %s', async (_, args) => {
  const when =
    'call.arguments.?options.?force.orValue(false) || call.arguments.?all.orValue([]).exists(x, x.?options.?force.orValue(false))'
  await using gateway = await start([{ when, decision: 'deny', reason: 'forced' }, ALLOW])
  await using host = await legacyPipe.connect(gateway)
  const { response } = host.sendRaw(
    `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"a__pay","arguments":${args}}}`,
    9,
  )
  expect((await response).result).toEqual(deniedBy('forced'))
  expect(gateway.fake('a').all('tools/call')).toEqual([])
})

describe('a value that a server may convert to the one of a rule', () => {
  const when = [
    'call.arguments.?force.orValue(false) == true',
    'call.arguments.?n.orValue(0) in [1, 2]',
    'call.arguments.?opts.?force.orValue(false)',
    '2.0 == call.arguments.?opts.?n.orValue(0.0)',
    'call.arguments.?kind.orValue("") == "drop"',
    'call.arguments.?mode.orValue("") == "fast" || call.arguments.?mode.orValue(0) == 3',
  ].join(' || ')
  const called = async (args: string) => {
    await using gateway = await start([{ when, decision: 'deny', reason: 'never' }, ALLOW])
    await using host = await legacyPipe.connect(gateway)
    const text = `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"a__pay","arguments":${args}}}`
    const { result } = await host.sendRaw(text, 9).response
    return { result, isCalled: gateway.fake('a').all('tools/call').length > 0 }
  }

  test.each([
    ['{"force":"true"}', 'the argument "force" is a text, and rules compare it with true or false'],
    ['{"force":1}', 'the argument "force" is a number, and rules compare it with true or false'],
    ['{"n":"1"}', 'the argument "n" is a text, and rules compare it with numbers'],
    ['{"n":true}', 'the argument "n" is true or false, and rules compare it with numbers'],
    ['{"opts":"{\\"force\\":true}"}', 'the argument "opts" is a text, and rules read its members'],
    ['{"opts":{"n":"2"}}', 'the argument "opts.n" is a text, and rules compare it with numbers'],
    ['{"mode":true}', 'the argument "mode" is true or false, and rules compare it with texts or numbers'],
  ])('T-20 denies the call: %s', async (args, told) => {
    expect(await called(args)).toEqual({ result: deniedBy(told), isCalled: false })
  })

  test.each([
    '{}',
    '{"force":false,"n":3,"opts":{"force":false,"n":1},"mode":"slow"}',
    '{"force":null,"opts":null,"mode":4,"x":"1","kind":5}',
    '{"opts":[]}',
  ])('a value of the same type is compared, and one that is missing or null is another: %s', async (args) => {
    expect(await called(args)).toMatchObject({ isCalled: true })
  })
})

describe('no path leads past a rule', () => {
  const RULES = [{ when: 'call.original == "drop" && call.server == "a"', decision: 'deny', reason: 'never' }, ALLOW] as const

  test('the tool of a search that calls others', async () => {
    await using gateway = await start(RULES, { gateway: { toolsets: [toolsetOf({}, { name: 'wide', discovery: 'search' })] } })
    await using host = await modernHttp.connect(gateway, { toolset: 'wide' })
    const through = await host.call('tools/call', { name: 'gateway__call_tool', arguments: { name: 'a__drop', arguments: {} } })
    expect(through).toEqual(deniedBy('never'))
    const found = await host.call('tools/call', { name: 'gateway__search_tools', arguments: { query: 'drop pay' } })
    expect(JSON.stringify(found)).toContain('a__pay')
    expect(JSON.stringify(found)).not.toContain('a__drop')
    expect(await host.call('tools/call', { name: 'gateway__describe_tool', arguments: { name: 'a__drop' } })).toMatchObject({
      content: [{ text: 'Unknown tool: a__drop' }],
    })
    expect(gateway.fake('a').all('tools/call')).toEqual([])
  })

  test.each([legacyHttp, modernHttp])('the endpoint of one server, over $name', async ({ connect }) => {
    await using gateway = await start(RULES, { servers: { a: { ...OFFER, kind: 'modern http' } } })
    await using host = await connect(gateway, { path: '/servers/a/mcp' })
    expect(await namesOf(host)).toEqual(['pay', 'list'])
    expect(await host.call('tools/call', { name: 'drop' })).toEqual(deniedBy('never'))
    expect(gateway.fake('a').all('tools/call')).toEqual([])
  })

  test('a method of no revision, at the endpoint of one server', async () => {
    await using gateway = await start([{ when: 'call.method == "tools/call"', decision: 'allow' }])
    await using host = await legacyHttp.connect(gateway, { path: '/servers/a/mcp' })
    await expect(host.call('vendor/erase', {})).rejects.toMatchObject({
      message: expect.stringContaining('denied by policy') as unknown,
    })
    expect(gateway.fake('a').all('vendor/erase')).toEqual([])
  })

  test.each([legacyHttp, modernHttp])(
    'a method of no revision that is named like those of tasks, at the endpoint of one server, over $name',
    async ({ connect }) => {
      await using gateway = await start([{ when: 'call.method == "tools/call"', decision: 'allow' }])
      await using host = await connect(gateway, { path: '/servers/a/mcp' })
      await expect(host.call('tasks/erase', {})).rejects.toMatchObject({
        message: expect.stringContaining('denied by policy') as unknown,
      })
      expect(gateway.fake('a').all('tasks/erase')).toEqual([])
    },
  )

  test('a notification of no revision and a request without an id, at the endpoint of one server', async () => {
    await using gateway = await start([{ when: 'call.method == "tools/call" && call.original != "drop"', decision: 'allow' }])
    await using host = await legacyPipe.connect(gateway, { server: 'a' })
    const methods = ['tools/call', 'vendor/erase', 'notifications/vendor/erase']
    for (const method of methods) host.notify(method, { name: 'drop' })
    host.notify('notifications/roots/list_changed')
    await gateway.fake('a').until('notifications/roots/list_changed')
    expect(methods.flatMap((method) => gateway.fake('a').all(method))).toEqual([])
  })

  test('without a policy, a notification of no revision passes there, and a request without an id does not', async () => {
    await using gateway = await startGateway({ servers: { a: OFFER } })
    await using host = await legacyPipe.connect(gateway, { server: 'a' })
    host.notify('tools/call', { name: 'drop' })
    host.notify('vendor/told', { n: 1 })
    expect((await gateway.fake('a').until('vendor/told')).params).toEqual({ n: 1 })
    expect(gateway.fake('a').all('tools/call')).toEqual([])
  })

  test('a subscription at the endpoint of one server, by the name that the server uses', async () => {
    await using gateway = await start([{ when: 'call.original == "file:///secret"', decision: 'deny', reason: 'secret' }, ALLOW])
    await using host = await legacyHttp.connect(gateway, { path: '/servers/a/mcp' })
    await expect(host.call('resources/subscribe', { uri: 'file:///secret' })).rejects.toMatchObject({
      message: 'denied by policy: secret',
    })
    expect(await host.call('resources/subscribe', { uri: 'file:///open' })).toEqual({})
    expect(
      gateway
        .fake('a')
        .all('resources/subscribe')
        .map(({ params }) => params['uri']),
    ).toEqual(['file:///open'])
  })

  test('a call that would become a task, of either era', async () => {
    await using gateway = await start([{ when: 'call.original == "may"', decision: 'deny', reason: 'no task' }, ALLOW], {
      servers: { a: taskServer() },
    })
    await using modern = await modernHttp.connect(gateway, { capabilities: { extensions: { [TASKS]: {} } } })
    expect(await modern.call('tools/call', { name: 'a__may' })).toEqual(deniedBy('no task'))
    await using legacy = await legacyHttp.connect(gateway)
    expect(await legacy.call('tools/call', { name: 'a__may', task: { ttl: 1_000 } })).toEqual(deniedBy('no task'))
    expect(gateway.fake('a').all('tools/call')).toEqual([])
    // What was allowed is followed without being judged again.
    const { taskId } = await modern.call('tools/call', { name: 'a__must' })
    expect(await modern.call('tasks/get', { taskId })).toMatchObject({ taskId, status: 'working' })
  })

  test('a batch', async () => {
    await using gateway = await start(RULES)
    await using host = await connectHttp(gateway, { revision: '2025-03-26' })
    const call = (id: number, name: string): string => request(id, 'tools/call', { name, arguments: {} })
    const reply = await send(gateway.url, { headers: host.headers(), body: `[${call(1, 'a__drop')},${call(2, 'a__pay')}]` })
    expect(await reply.body).toContain('denied by policy: never')
    expect(
      gateway
        .fake('a')
        .all('tools/call')
        .map(({ params }) => params['name']),
    ).toEqual(['pay'])
  })

  test.each([legacySse, modernHttp])(
    'resources, prompts, completions and subscriptions, over $name',
    async ({ connect, era }) => {
      await using gateway = await start([
        { when: 'call.original == "file:///secret" || call.original == "curse"', decision: 'deny', reason: 'secret' },
        ALLOW,
      ])
      await using host = await connect(gateway)
      const denied = { message: 'denied by policy: secret' }
      const uris = await namesOf(host, 'resources/list', 'resources', 'uri')
      const secret = String(uris[0]).replace('open', 'secret')
      await expect(host.call('resources/read', { uri: secret })).rejects.toMatchObject(denied)
      await expect(host.call('prompts/get', { name: 'a__curse' })).rejects.toMatchObject(denied)
      const ref = { type: 'ref/prompt', name: 'a__curse' }
      await expect(host.call('completion/complete', { ref, argument: { name: 'x', value: '' } })).rejects.toMatchObject(denied)
      if (era === 'legacy') await expect(host.call('resources/subscribe', { uri: secret })).rejects.toMatchObject(denied)
      expect(gateway.fake('a').received).toEqual([])
    },
  )

  test.each([legacySse, modernHttp])('a completion is judged by what its type means, over $name', async ({ connect }) => {
    const template = 'a+file:///{name}'
    await using gateway = await start([
      { when: `call.name == "${template}"`, decision: 'deny', reason: 'secret' },
      { when: 'call.name == "a__greet"', decision: 'allow' },
    ])
    await using host = await connect(gateway)
    const ref = { type: 'ref/resource', uri: template, name: 'a__greet' }
    const completed = host.call('completion/complete', { ref, argument: { name: 'name', value: '' } })
    await expect(completed).rejects.toMatchObject({ message: 'denied by policy: secret' })
    expect(gateway.fake('a').received).toEqual([])
  })
})

describe('confirm', () => {
  const RULES = [
    { when: 'call.original == "pay" && call.arguments.amount > 1000', decision: 'deny', reason: 'too much' },
    { when: 'call.original == "pay"', decision: 'confirm', reason: 'Payments are confirmed.' },
    ALLOW,
  ] as const
  const able = { capabilities: { elicitation: { form: {} } } }
  const CALL = { name: 'a__pay', arguments: { amount: 5 } }

  test.each(everyTransport)('asks the person of a host over $name with the reason of the rule', async ({ connect, era }) => {
    await using gateway = await start(RULES)
    await using host = await connect(gateway, able)
    const asked: unknown[] = []
    const answered = async (action: string, call: JsonMap): Promise<JsonMap> => {
      if (era === 'legacy') {
        host.answer('elicitation/create', (params) => (asked.push(params['message']), { action }))
        return host.call('tools/call', call)
      }
      const { inputRequests, requestState } = await host.call('tools/call', call)
      const [key, { params }] = Object.entries(inputRequests as Record<string, { params: JsonMap }>)[0]!
      asked.push(params['message'])
      return host.call('tools/call', { ...call, requestState, inputResponses: { [key]: { action } } })
    }
    expect(await answered('decline', CALL)).toMatchObject({ isError: true, content: [{ text: 'declined by the user' }] })
    expect(gateway.fake('a').received).toEqual([])
    expect(await answered('accept', CALL)).toMatchObject({ content: [{ text: '{"amount":5}' }] })
    expect(asked).toEqual(Array(2).fill('Payments are confirmed. Call a__pay with {"amount":5}?'))
    expect(await host.call('tools/call', { ...CALL, arguments: { amount: 2000 } })).toEqual(deniedBy('too much'))
    expect(gateway.fake('a').all('tools/call')).toHaveLength(1)
  })

  test('a confirmation is for these arguments alone', async () => {
    await using gateway = await start(RULES)
    await using host = await modernHttp.connect(gateway, able)
    const { inputRequests, requestState } = await host.call('tools/call', CALL)
    const [key = ''] = Object.keys(inputRequests as object)
    const inputResponses = { [key]: { action: 'accept' } }
    await expect(
      host.call('tools/call', { ...CALL, arguments: { amount: 6 }, requestState, inputResponses }),
    ).rejects.toMatchObject({ code: -32602 })
    expect(gateway.fake('a').received).toEqual([])
  })

  test('a host that cannot ask is told the rule', async () => {
    await using gateway = await start(RULES)
    await using host = await legacyHttp.connect(gateway)
    expect(await host.call('tools/call', CALL)).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/\(policy\.rules\[1\]\), and this host cannot ask/) as unknown }],
    })
  })

  test('of anything but a tool is a refusal', async () => {
    await using gateway = await start([{ when: 'true', decision: 'confirm', reason: 'Sure?' }])
    await using host = await modernHttp.connect(gateway, able)
    await expect(host.call('prompts/get', { name: 'a__greet' })).rejects.toMatchObject({
      message: 'denied by policy: Sure? (only calls of tools can be confirmed)',
    })
  })
})

describe('who calls', () => {
  test('scopes and claims of a token decide, for each token on its own', async () => {
    await using issuer = await startAuthorizationServer({ format: 'jwt' })
    const audience = 'https://mcp.example.com/mcp'
    await using gateway = await start(
      [
        { when: 'call.original == "pay" && "mcp:connect" in caller.scopes && has(caller.claims.client_id)', decision: 'allow' },
        { when: 'request.address.startsWith("127.") && call.original == "list"', decision: 'allow' },
      ],
      { host: { auth: oauthOf(issuer, audience, { keepsClaims: true }) }, gateway: { scopes: ['mcp:connect'] } },
    )
    const token = await issuer.machineToken({ resource: audience })
    const call = async (name: string): Promise<string> => {
      await using host = await modernHttp.connect(gateway, { token: () => token })
      return JSON.stringify(await host.call('tools/call', { name }))
    }
    expect(await call('a__pay')).not.toContain('denied')
    expect(await call('a__list')).not.toContain('denied')
    expect(await call('a__drop')).toContain('denied by policy')
  })

  test.each([legacyHttp, legacySse, legacyPipe, modernHttp])(
    'the name and revision of a host over $name',
    async ({ connect }) => {
      await using gateway = await start([{ when: 'request.host != "" && request.revision >= "2025-11-25"', decision: 'allow' }])
      await using host = await connect(gateway)
      expect(await host.call('tools/call', { name: 'a__pay' })).not.toHaveProperty('isError')
    },
  )

  test('principals have lists of their own', async () => {
    await using gateway = await start([{ when: 'caller.principal == "ann" || call.original == "list"', decision: 'allow' }])
    await using ann = await legacyPipe.connect(gateway, { identity: identityOf('ann') })
    await using bob = await legacyPipe.connect(gateway, { identity: identityOf('bob') })
    expect(await namesOf(ann)).toHaveLength(3)
    expect(await namesOf(bob)).toEqual(['a__list'])
    expect(await namesOf(ann)).toHaveLength(3)
  })
})

test('the audit log has the rule and its reason, of allowed calls, too', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'trunkline-policy-'))
  const file = join(folder, 'audit.ndjson')
  try {
    await using gateway = await start(
      [
        { when: 'call.original == "list"', decision: 'allow' },
        { when: 'call.arguments.x == 1', decision: 'deny', reason: 'one' },
      ],
      { audit: { file, bodies: false, onFailure: 'refuse' } },
    )
    await using host = await modernHttp.connect(gateway)
    await host.call('tools/call', { name: 'a__list' })
    await host.call('tools/call', { name: 'a__pay', arguments: { x: 1 } })
    await host.call('tools/call', { name: 'a__pay', arguments: {} })
    await gateway.running.stop()
    const lines = (await readFile(file, 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as JsonMap)
      .filter(({ method }) => method === 'tools/call')
    expect(lines).toMatchObject([
      { decision: 'allowed', policy: { decision: 'allow', rule: 'policy.rules[0]' } },
      { decision: 'denied', reason: 'policy', rule: 'policy.rules[1]', policy: { reason: 'one' } },
      {
        decision: 'denied',
        reason: 'policy',
        rule: 'policy.rules[1]',
        detail: expect.stringContaining('No such key: x') as unknown,
      },
    ])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test('a reload switches the policy for the next call, and without one nothing is asked of it', async () => {
  await using gateway = await start([{ when: 'false', decision: 'allow' }])
  await using host = await modernHttp.connect(gateway)
  expect(await host.call('tools/call', { name: 'a__pay' })).toEqual(deniedBy('no rule of the policy allows it'))
  const { configuration } = gateway.running
  await gateway.running.apply({ ...configuration, policy: undefined }, new Set())
  expect(await host.call('tools/call', { name: 'a__pay' })).not.toHaveProperty('isError')
  expect(gateway.running.gateway.wantsFacts).toBe(false)
})

test('B128 a reload of the policy is announced to hosts whose lists it changes, and to no other', async () => {
  await using gateway = await start([ALLOW], { servers: { a: OFFER, b: fake.offering('x') } })
  await using host = await legacyHttp.connect(gateway)
  await using other = await legacyHttp.connect(gateway, { path: '/servers/b/mcp' })
  const { configuration } = gateway.running
  const next = policyOf([{ when: 'call.original == "drop"', decision: 'deny', reason: 'no' }, ALLOW])
  await gateway.running.apply({ ...configuration, policy: { ...DEFAULT_POLICY, ...next } }, new Set())
  await host.heard.until(({ method }) => method === 'notifications/tools/list_changed')
  expect(await namesOf(host)).toEqual(['a__pay', 'a__list', 'b__x'])
  gateway.fake('b').offers.tools.push({ name: 'y', inputSchema: { type: 'object' } })
  gateway.fake('b').changed('tools')
  await other.heard.until(({ method }) => method === 'notifications/tools/list_changed')
  for (const { heard } of [host, other])
    expect(heard.entries.filter(({ method }) => method === 'notifications/prompts/list_changed')).toEqual([])
  expect(other.heard.entries.filter(({ method }) => method === 'notifications/tools/list_changed')).toHaveLength(1)
})

test.each([legacyPipe, modernPipe])(
  'instructions of a server of which the rules hide everything are not shown, over $name',
  async ({ connect }) => {
    const offering = (instructions: string) =>
      fake.of({ tools: ['pay'], prompts: ['greet'], resources: ['file:///r'], instructions })
    await using gateway = await startGateway({
      servers: { a: offering('Use a.'), b: offering('Use b.'), c: offering('Use c.') },
      policy: policyOf([
        { when: 'call.server == "a"', decision: 'deny', reason: 'no' },
        { when: 'call.server == "c"', decision: 'allow' },
        { when: 'call.method == "prompts/get" && caller.principal == "ana"', decision: 'allow' },
      ]),
    })
    const told = async (principal: string, server?: string): Promise<unknown> => {
      await using host = await connect(gateway, { ...(server !== undefined && { server }), identity: identityOf(principal) })
      return String(host.welcome['instructions']).match(/Use \w/g)
    }
    expect(await told('ana')).toEqual(['Use b', 'Use c'])
    expect(await told('bob')).toEqual(['Use c'])
    expect(await told('ana', 'a')).toBeNull()
    expect(await told('ana', 'b')).toEqual(['Use b'])
  },
)

test.each([legacyHttp, legacyPipe, modernHttp])(
  'B128 a change of rows that the policy hides is announced only to hosts that see them, over $name',
  async ({ connect }) => {
    const hidden = { when: 'call.server == "b" && request.revision != "2025-11-25"', decision: 'deny', reason: 'no' } as const
    const open = { name: 'open', annotations: { readOnlyHint: true }, inputSchema: { type: 'object' } }
    const servers = { a: fake.offering('x'), b: fake.of({ tools: [open], prompts: ['p'], resources: ['file:///r'] }) }
    await using gateway = await start([hidden, ALLOW], { servers })
    await using limited = await connect(gateway, { revision: '2025-06-18' })
    await using other = await legacyHttp.connect(gateway)
    for (const host of [limited, other]) await namesOf(host)
    let { heard } = limited
    if (connect === modernHttp.connect) {
      const notifications = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }
      const listening = limited.begin('subscriptions/listen', { notifications })
      heard = listening.messages
      await heard.until(({ method }) => method === 'notifications/subscriptions/acknowledged')
    }
    const [a, b] = [gateway.fake('a'), gateway.fake('b')]
    const announced = (): string[] =>
      heard.entries.flatMap(({ method = '' }) => (method.endsWith('/list_changed') ? [method] : []))
    b.offers.tools.push({ name: 'y', inputSchema: { type: 'object' } })
    b.changed('tools')
    await other.heard.until(({ method }) => method === 'notifications/tools/list_changed')
    b.offers.tools.pop()
    b.offers.prompts.push({ name: 'q' })
    b.changed('tools')
    b.changed('prompts')
    await other.heard.until(({ method }) => method === 'notifications/prompts/list_changed')
    expect(announced()).toEqual([])
    a.offers.tools.push({ name: 'z', inputSchema: { type: 'object' } })
    a.changed('tools')
    await heard.until(({ method }) => method === 'notifications/tools/list_changed')
    expect(await namesOf(limited)).toEqual(['a__x', 'a__z'])
    expect(announced()).toEqual(['notifications/tools/list_changed'])
    const [first] = heard.entries.filter(({ method }) => method === 'notifications/tools/list_changed')
    a.offers.tools.pop()
    a.changed('tools')
    await heard.until((message) => message.method === 'notifications/tools/list_changed' && message !== first)
    expect(await namesOf(limited)).toEqual(['a__x'])
  },
)

test('B128 a reload whose policy hides a server that it also removes is announced to each host once', async () => {
  await using gateway = await start([ALLOW], { servers: { a: OFFER, b: fake.offering('x') } })
  await using first = await legacyHttp.connect(gateway)
  await using second = await legacyHttp.connect(gateway)
  const { configuration } = gateway.running
  const policy = { ...DEFAULT_POLICY, ...policyOf([{ when: 'call.server == "b"', decision: 'deny', reason: 'no' }, ALLOW]) }
  const servers = configuration.servers.filter(({ key }) => key !== 'b')
  await gateway.running.apply({ ...configuration, policy, servers }, new Set())
  for (const { heard } of [first, second]) {
    await heard.until(({ method }) => method === 'notifications/tools/list_changed')
    expect(heard.entries.filter(({ method }) => method === 'notifications/tools/list_changed')).toHaveLength(1)
  }
})

test('B171 B265 a rule on the name in lists applies to an original name or URI that is accepted in its place', async () => {
  const ui = { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } }
  const tools = [
    { name: 'open', inputSchema: {}, _meta: { ui: { resourceUri: 'ui://panel' } } },
    { name: 'refresh', inputSchema: {}, _meta: { ui: { visibility: ['app'] } } },
  ]
  const rules = ['a__refresh', 'a+file:///secret'].map((name) => ({
    when: `call.name == "${name}"`,
    decision: 'deny' as const,
    reason: 'no',
  }))
  await using gateway = await start([...rules, ALLOW], {
    servers: { a: fake.of({ tools, resources: ['file:///secret', 'file:///open'] }), b: fake.offering('x') },
  })
  await using host = await modernHttp.connect(gateway, { capabilities: { extensions: ui } })
  expect(await namesOf(host)).toEqual(['a__open', 'b__x'])
  for (const name of ['a__refresh', 'refresh']) expect(await host.call('tools/call', { name })).toEqual(deniedBy('no'))
  for (const uri of ['a+file:///secret', 'file:///secret'])
    await expect(host.call('resources/read', { uri })).rejects.toMatchObject({ message: 'denied by policy: no' })
  await host.call('resources/read', { uri: 'file:///open' })
  await host.call('tools/call', { name: 'open' })
})

test.each([legacyHttp, legacyPipe])(
  'T-20 updates of a resource that a reload denies, in any spelling, reach no host over $name',
  async ({ connect }) => {
    await using gateway = await start([ALLOW])
    await using host = await connect(gateway)
    for (const uri of ['a+file:///secret', 'a+file:///%73ecret', 'a+file:///open/../secret', 'a+file:///open'])
      await host.call('resources/subscribe', { uri })
    const { configuration } = gateway.running
    const next = policyOf([{ when: 'call.original.endsWith("secret")', decision: 'deny', reason: 'no' }, ALLOW])
    await gateway.running.apply({ ...configuration, policy: { ...DEFAULT_POLICY, ...next } }, new Set())
    for (const path of ['secret', '%73ecret', 'open/../secret', 'open']) gateway.fake('a').updated(`file:///${path}`)
    const update = await host.heard.until(({ method }) => method === 'notifications/resources/updated')
    expect(update.params).toMatchObject({ uri: 'a+file:///open' })
  },
)

test.each([legacyHttp, modernHttp])(
  'T-20 a rule that denies a URI denies every spelling that a server may take for it, over $name',
  async ({ connect, era }) => {
    await using gateway = await start([
      { when: 'call.original == "file:///secret"', decision: 'deny', reason: 'secret' },
      { when: 'call.name == "a+file:///locked"', decision: 'deny', reason: 'secret' },
      ALLOW,
    ])
    await using host = await connect(gateway)
    const denied = { message: 'denied by policy: secret' }
    const spellings = ['%73ecret', '%2573ecret', './secret', '/secret', 'open/../secret', '%6cocked'].map(
      (path) => `a+file:///${path}`,
    )
    for (const uri of [...spellings, 'file:///%73ecret']) {
      await expect(host.call('resources/read', { uri })).rejects.toMatchObject(denied)
      const ref = { type: 'ref/resource', uri }
      await expect(host.call('completion/complete', { ref, argument: { name: 'x', value: '' } })).rejects.toMatchObject(denied)
      if (era === 'legacy') await expect(host.call('resources/subscribe', { uri })).rejects.toMatchObject(denied)
    }
    expect(gateway.fake('a').received).toEqual([])
    await host.call('resources/read', { uri: 'a+file:///%6fpen' })
    expect(gateway.fake('a').all('resources/read')).toHaveLength(1)
  },
)

test('T-20 a rule that allows URIs allows none that a server may take for another one, and what lists show as they show it', async () => {
  const servers = { a: fake.of({ resources: ['file:///x/a%20b', 'file:///secret'], templates: ['file:///{+path}'] }) }
  const rules = ['call.original.startsWith("file:///pub/")', 'call.original == "file:///x/a%20b"']
  await using gateway = await start(
    rules.map((when) => ({ when, decision: 'allow' })),
    { servers },
  )
  await using host = await modernHttp.connect(gateway)
  for (const path of ['pub/../secret', 'pub/%2e%2e/secret', 'pub/x%2f..%2f..%2fsecret', 'pub/%00', 'x/%61%20b', 'secret'])
    await expect(host.call('resources/read', { uri: `a+file:///${path}` })).rejects.toMatchObject({
      message: 'denied by policy: no rule of the policy allows it',
    })
  expect(gateway.fake('a').received).toEqual([])
  for (const path of ['pub/x', 'pub/%78', 'x/a%20b']) await host.call('resources/read', { uri: `a+file:///${path}` })
})

test('T-20 rules that read no name decide on a URI that may mean any other, and one that reads it only where it denies', async () => {
  const uri = 'a+file:///x/../y'
  const read = async (...rules: readonly GivenRule[]): Promise<unknown> => {
    await using gateway = await start(rules)
    await using host = await modernHttp.connect(gateway)
    return await host.call('resources/read', { uri }).then(
      () => 'read',
      ({ message }: Error) => message,
    )
  }
  const tools = { when: 'call.method == "tools/call" && call.original == "pay"', decision: 'deny', reason: 'tools' } as const
  const named = { when: 'call.original.startsWith("file:///x")', decision: 'allow' } as const
  expect(await read(tools, ALLOW)).toBe('read')
  expect(await read(named)).toBe('denied by policy: no rule of the policy allows it')
  expect(await read(named, ALLOW)).toBe('read')
  expect(await read({ ...named, decision: 'confirm', reason: 'ask' }, ALLOW)).toBe(
    'denied by policy: ask (only calls of tools can be confirmed)',
  )
})

test.each(['deny', 'confirm'] as const)(
  'T-20 where the default allows, a rule with %s holds for every spelling, and no rule that allows lifts a default that denies',
  async (decision) => {
    const rule = { when: 'call.original == "file:///secret"', decision, reason: 'secret' } as const
    await using open = await start([], { policy: policyOf([rule], { otherwise: 'allow' }) })
    await using host = await modernHttp.connect(open)
    for (const path of ['secret', '%73ecret', './secret', 'x/../y'])
      await expect(host.call('resources/read', { uri: `a+file:///${path}` })).rejects.toMatchObject({
        message: expect.stringMatching(/^denied by policy: secret/),
      })
    await host.call('resources/read', { uri: 'a+file:///%6fpen' })
    expect(open.fake('a').all('resources/read')).toHaveLength(1)
    const allowed = { when: 'call.original == "file:///open"', decision: 'allow' } as const
    await using closed = await start([], { policy: policyOf([allowed]) })
    await using other = await modernHttp.connect(closed)
    await expect(other.call('resources/read', { uri: 'a+file:///%6fpen' })).rejects.toThrow('no rule of the policy allows it')
  },
)

test('a reload that takes its trust from a server, or a hint from a toolset, counts for tools that were called before', async () => {
  const rules = [{ when: 'call.annotations.readOnlyHint', decision: 'allow' }] as const
  const hinting = (readOnlyHint: boolean) => [
    toolsetOf({}, { name: 'default', override: { a__pay: { annotations: { readOnlyHint } } } }),
  ]
  await using gateway = await start(rules, { gateway: { toolsets: hinting(true) } })
  await using host = await modernHttp.connect(gateway)
  const call = (name: string): Promise<JsonMap> => host.call('tools/call', { name, arguments: {} })
  for (const name of ['a__list', 'a__pay']) expect(await call(name)).not.toHaveProperty('isError')
  const { configuration } = gateway.running
  const servers = configuration.servers.map((server) => ({ ...server, trusted: undefined }))
  const next = { ...configuration, servers, gateway: { ...configuration.gateway, toolsets: hinting(false) } }
  await gateway.running.apply(next, new Set())
  for (const name of ['a__list', 'a__pay']) expect(await call(name)).toEqual(deniedBy('no rule of the policy allows it'))
  await gateway.running.apply(configuration, new Set())
  for (const name of ['a__list', 'a__pay']) expect(await call(name)).not.toHaveProperty('isError')
})
