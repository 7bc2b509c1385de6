/** The files, answers and commands of docs/policy.md are run as they are printed; what differs from run to run is compared by its kind. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { chmod, mkdir, readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { startAuthorizationServer } from '../../support/authorization-server.ts'
import { commandLine } from '../../support/cli.ts'
import { oauthOf, staticToken, tokenOf } from '../../support/credentials.ts'
import { fake, FakeDownstream } from '../../support/fake-downstream.ts'
import { legacyHttp } from '../../support/fake-host.ts'
import type { JsonMap } from '../../support/fakes/messages.ts'
import { startGateway } from '../../support/gateway.ts'
import { listening } from '../../support/listening.ts'
import { PROGRAM } from '../../support/program.ts'
import { toolsetOf } from '../../support/toolsets.ts'
import { workspace } from '../../unit/config/workspace.ts'

const PAGE = readFileSync(new URL('../../../docs/policy.md', import.meta.url), 'utf8')
/** The block of a language that has this text in it. */
const blockWith = (language: string, part: string): string => {
  const blocks = [...PAGE.matchAll(new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``, 'g'))].map(([, text = '']) => text)
  const found = blocks.filter((text) => text.includes(part))
  if (found.length !== 1) throw new Error(`${found.length} blocks of ${language} have ${part}`)
  return found[0] ?? ''
}
const jsonWith = (part: string): JsonMap => JSON.parse(blockWith('json', part)) as JsonMap
/** The file of a block as it is loaded. */
const loaded = async (part: string, edit: (text: string) => string = (text) => text) => {
  await using files = await workspace({ 'trunkline.yaml': edit(blockWith('yaml', part)) })
  return await files.load()
}
/** With every number in the place of which another may stand. */
const anyNumber = (value: unknown): unknown => JSON.parse(JSON.stringify(value).replaceAll(/\d+(?:\.\d+)?/g, '0'))

test('a call above a rate limit is answered as shown', async () => {
  const { gateway: options } = await loaded('delete_issue')
  await using gateway = await startGateway({
    servers: { tracker: fake.offering('delete_issue', 'find_issue') },
    gateway: { rates: options.rates },
  })
  await using host = await legacyHttp.connect(gateway)
  const remove = (): Promise<JsonMap> => host.call('tools/call', { name: 'tracker__delete_issue', arguments: {} })
  for (let time = 0; time < 5; time++) expect(await remove()).not.toHaveProperty('isError')
  const refused = await remove()
  expect(JSON.stringify(refused)).toContain('tracker.tools.delete_issue.rate (5/h) is reached')
  expect(anyNumber(refused)).toEqual(anyNumber(jsonWith('rate_limited')))
  expect(gateway.fake('tracker').all('tools/call')).toHaveLength(5)
})

test('a line of the audit log is as shown', async () => {
  const audited = await loaded('audit_on_failure')
  const shown = jsonWith('"durationMs"')
  const { principal, toolset, original } = shown as Record<string, string>
  const id = principal?.replace('token:', '') ?? ''
  await using folder = await workspace({})
  const file = folder.path('audit.ndjson')
  await using gateway = await startGateway({
    servers: { tracker: fake.offering(original ?? '') },
    audit: audited.audit && { ...audited.audit, file },
    gateway: { toolsets: [toolsetOf({ servers: ['tracker'] }, { name: toolset ?? '' })] },
    host: { auth: { tokens: [{ ...staticToken('A', { toolsets: [toolset ?? ''] }), id }], oauth: undefined, map: [] } },
  })
  {
    await using host = await legacyHttp.connect(gateway, { token: () => tokenOf('A') })
    await host.call('tools/call', { name: 'tracker__find_issue', arguments: {} })
  }
  await gateway.running.stop()
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n')
  const line = lines.map((text) => JSON.parse(text) as JsonMap).find(({ method }) => method === shown['method']) ?? {}
  expect(Object.keys(line)).toEqual(Object.keys(shown))
  const own = ['time', 'ref', 'session', 'durationMs', 'bytesIn', 'bytesOut']
  for (const [member, value] of Object.entries(shown))
    if (own.includes(member)) expect([member, typeof line[member]]).toEqual([member, typeof value])
    else expect([member, line[member]]).toEqual([member, value])
})

test('a caller without the group is told the reason as shown', async () => {
  await using issuer = await startAuthorizationServer()
  const { policy } = await loaded('payments above 100')
  const audience = 'https://mcp.example.com/mcp'
  await using gateway = await startGateway({
    // Not destructive: what is, is denied for another reason at night.
    servers: { bank: fake.offering({ name: 'list', inputSchema: { type: 'object' }, annotations: { destructiveHint: false } }) },
    options: { bank: { trusted: true } },
    ...(policy !== undefined && { policy }),
    host: { auth: oauthOf(issuer, audience, { scopes: [], keepsClaims: true }) },
  })
  const exp = Math.floor(Date.now() / 1_000) + 600
  const token = await issuer.sign({ iss: issuer.issuer, aud: audience, sub: 'eve', exp, groups: ['dev'] })
  await using host = await legacyHttp.connect(gateway, { token: () => token })
  const denied = await host.call('tools/call', { name: 'bank__list', arguments: {} })
  expect(anyNumber(denied)).toEqual(anyNumber(jsonWith('policy_denied')))
})

test('the commands about a call answer as shown', async () => {
  await using bank = await FakeDownstream.start(fake.of({ kind: 'modern http', tools: ['pay'] }))
  await using cli = await commandLine()
  const config = blockWith('yaml', 'policy_tests:').replace(
    'https://bank.example.com/mcp',
    'url' in bank.address ? bank.address.url.href : '',
  )
  await cli.write('trunkline.yaml', config)
  await mkdir(cli.path('bin'))
  await cli.write('bin/trunkline', `#!/bin/sh\nexec ${process.execPath} ${PROGRAM} "$@"\n`)
  await chmod(cli.path('bin/trunkline'), 0o755)
  const up = await cli.up()
  await up.said(/server is ready/)
  const env = { ...cli.env, PATH: `${cli.path('bin')}:${cli.env['PATH']}` }
  const { stdout } = await promisify(execFile)('sh', ['-c', `${blockWith('sh', 'trunkline can token:ci')}:`], {
    cwd: cli.folder,
    env,
  })
  expect(stdout).toBe(blockWith('text', 'too much'))
})

test('the decision service is asked as shown, and its answer decides as the page says', async () => {
  const bodies: unknown[] = []
  const service = createServer(async (request, response) => {
    bodies.push(await json(request))
    response.setHeader('content-type', 'application/json').end(blockWith('json', 'ttl_seconds'))
  })
  await using opened = await listening(service)
  const { policy } = await loaded('timeout: 500ms', (text) => text.replace('http://127.0.0.1:8181', opened.url))
  await using gateway = await startGateway({
    servers: { bank: fake.offering('pay') },
    ...(policy !== undefined && { policy: { ...policy, service: policy.service && { ...policy.service, lists: false } } }),
    host: { auth: { tokens: [{ ...staticToken('A'), id: 'ci' }], oauth: undefined, map: [] } },
  })
  await using host = await legacyHttp.connect(gateway, { token: () => tokenOf('A') })
  const denied = await host.call('tools/call', { name: 'bank__pay', arguments: { amount: 101 } })
  const answer = jsonWith('ttl_seconds')['result'] as { reason: string }
  expect(JSON.stringify(denied)).toContain(`denied by policy: ${answer.reason}`)
  const shown = (jsonWith('"input"')['input'] ?? {}) as { request: JsonMap }
  const [asked] = bodies as [{ input: { request: JsonMap } }]
  const own = { host: shown.request['host'], address: shown.request['address'], time: shown.request['time'] }
  expect({ ...asked.input, request: { ...asked.input.request, ...own } }).toEqual(shown)
  expect(Object.keys(asked.input.request)).toEqual(Object.keys(shown.request))
})
