import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { changedOptions, diffConfigurations } from '../../../src/config/change/difference.ts'
import { fingerprint } from '../../../src/config/change/fingerprints.ts'
import { yaml } from './workspace.ts'

const BEFORE = 'servers:\n  a: { command: x, url: "http://127.0.0.1:1/" }\n  b: { command: y }\n'

const diff = async (after: string) => {
  await using files = await yaml(BEFORE)
  const before = await files.load()
  await files.write('trunkline.yaml', after)
  return diffConfigurations(before, await files.load())
}

describe('the difference of two configurations', () => {
  test('the same text, or other places of it, changes nothing', async () => {
    const nothing = { added: [], removed: [], changed: [], listeners: false, needsRestart: [], others: false }
    expect(await diff(BEFORE)).toEqual(nothing)
    expect(await diff(`# a remark\n\n${BEFORE}`)).toEqual(nothing)
  })

  test('servers come and go', async () => {
    expect(await diff('servers:\n  c: { command: z }\n  b: { command: y }\n')).toMatchObject({
      added: ['c'],
      removed: ['a'],
      changed: [],
    })
    expect(await diff(`${BEFORE}  c: { command: z }\n`)).toMatchObject({ added: ['c'], removed: [], changed: [] })
  })

  test.each([
    'command: z, url: "http://127.0.0.1:1/"',
    'command: x, args: [-v], url: "http://127.0.0.1:1/"',
    'command: x, env: { A: 1 }, url: "http://127.0.0.1:1/"',
    'command: x, cwd: .., url: "http://127.0.0.1:1/"',
    'command: x, url: "http://127.0.0.1:2/"',
    'command: x, url: "http://127.0.0.1:1/", transport: sse',
    'command: x, url: "http://127.0.0.1:1/", era: legacy',
    'command: x, url: "http://127.0.0.1:1/", http_client: undici',
    'command: x, url: "http://127.0.0.1:1/", credentials: { bearer: t }',
    'command: x, url: "http://127.0.0.1:1/", headers: { X-A: b }',
    'command: x, url: "http://127.0.0.1:1/", roots: [.]',
    'command: x, url: "http://127.0.0.1:1/", lifecycle: { sharing: shared }',
    'url: "http://127.0.0.1:1/"',
  ])('{ %s } restarts that server and no other', async (entry) => {
    expect(await diff(`servers:\n  a: { ${entry} }\n  b: { command: y }\n`)).toMatchObject({
      changed: ['a'],
      listeners: false,
    })
  })

  test('prefix, labels, limits, time-outs and the rest restart nothing', async () => {
    const entry =
      'command: x, url: "http://127.0.0.1:1/", prefix: p, display_name: n, tags: [t], trusted: true, alias: { a: b }, apps: false, ' +
      'timeouts: { idle: 1s }, limits: { concurrency: 1 }, lifecycle: { spare: 0, start: lazy, idle_stop: 1m }, resources: { rewrite: identity }'
    expect(await diff(`naming: { max_length: 60 }\nservers:\n  a: { ${entry} }\n  b: { command: y }\n`)).toMatchObject({
      changed: [],
      listeners: false,
      needsRestart: [],
    })
  })

  test.each(['bind: 127.0.0.1:9', 'path: /other', 'sse: false'])('listen.http { %s } opens the listener again', async (http) => {
    expect(await diff(`listen: { http: { ${http} } }\n${BEFORE}`)).toMatchObject({
      listeners: true,
      changed: [],
    })
  })

  test('the page names each option that restarts a server, and each that needs a restart', async () => {
    const page = readFileSync(new URL('../../../docs/configuration.md', import.meta.url), 'utf8')
    const [, section = ''] = page.split('## When a file changes')
    const named = new Set([...(section.split('\n## ')[0] ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name))
    await using files = await yaml(BEFORE)
    const { kept } = fingerprint(await files.load(), { salt: Buffer.alloc(32) })
    expect(Object.keys(kept).filter((path) => !named.has(path) && !named.has(path.replace('listen.limits.', '')))).toEqual([])
    const restarting = ['command', 'args', 'env', 'cwd', 'url', 'transport', 'era', 'http_client', 'proxy', 'tls', 'headers']
    for (const name of [...restarting, 'credentials', 'roots', 'lifecycle.sharing']) expect(named).toContain(name)
  })

  test('what listeners are opened with needs a restart, and that is said', async () => {
    const limits =
      'max_header: 8KiB, header_lines: 50, headers_timeout: 1s, request_timeout: 2s, unread_body: 1MiB, keep_alive: 3s, write_stall: 4s'
    const { needsRestart, listeners } = await diff(
      `listen: { http: { server: node }, limits: { ${limits}, max_body: 1MiB } }\n${BEFORE}`,
    )
    expect(listeners).toBe(false)
    expect(needsRestart).toEqual([
      'listen.http.server',
      'listen.limits.max_header',
      'listen.limits.header_lines',
      'listen.limits.headers_timeout',
      'listen.limits.request_timeout',
      'listen.limits.unread_body',
      'listen.limits.keep_alive',
      'listen.limits.write_stall',
    ])
  })

  test('another state folder or log format needs a restart, and that is said', async () => {
    expect(await diff(`state: { dir: s }\ntelemetry: { log: { format: json, level: debug } }\n${BEFORE}`)).toMatchObject({
      needsRestart: ['state.dir', 'telemetry.log.format'],
      changed: [],
    })
  })
})

test('changed options have their names in files, in the order of the schema, and equal digests of either kind are no change', () => {
  const before = { 'launch.command': '1', 'launch.env': '1 2', headers: '1', maxTokens: '1', gone: '1', same: '1' }
  const after = { 'launch.command': '2', 'launch.env': '3 2', headers: '2', onChange: '1', maxTokens: '2', same: '1' }
  expect(changedOptions(before, after)).toEqual(['command', 'headers or credentials', 'lock.on_change', 'max_tokens', 'gone'])
})
