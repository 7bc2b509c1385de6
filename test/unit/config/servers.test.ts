import { describe, expect, test } from 'vitest'
import { DEFAULT_LIMITS, DEFAULT_SERVER, DEFAULT_TIMEOUTS } from '../../../src/downstream/options.ts'
import { yaml } from './workspace.ts'

describe('a server is complete after reading', () => {
  test('what is not said has its default', async () => {
    await using files = await yaml('servers:\n  a: { command: x }\n')
    const { servers } = await files.load()
    expect(servers).toEqual([
      {
        ...DEFAULT_SERVER,
        key: 'a',
        prefix: 'a',
        displayName: 'a',
        place: 'trunkline.yaml:2:3',
        url: undefined,
        launch: { command: 'x', args: [], env: {}, cwd: files.folder },
      },
    ])
  })

  test('everything that can be said arrives under its name in code', async () => {
    await using files = await yaml(`
servers:
  a:
    command: ~/bin/x
    args: [-p, 8080, 1.10, true]
    env: { VERSION: 1.10, ON: yes, inherit: [KEEP] }
    cwd: work
    url: https://x.test/mcp
    transport: http
    era: modern
    http_client: undici
    headers: { X-A: 1 }
    credentials: { bearer: t, headers: { X-Key: k } }
    trusted: false
    prefix: p
    display_name: A server
    tags: [one, two, one]
    roots: [., /data, "file:///srv"]
    timeouts: { start: 1s, probe: 2s, wait: 3s, idle: 4s, total: 5s, grace: 6s, ping: 7s }
    limits: { concurrency: 1, queue: 0, rate: 20/s, log_messages: 7/s, links: 3, restarts: 4, write_queue: 2KiB, stderr: 1KiB, max_message: 4KiB, tools: 5, entries: 6, pages: 7, max_text: 8B, max_schema: 9kB, max_schema_depth: 8 }
    lifecycle: { start: lazy, sharing: call, spare: 0, idle_stop: never }
    alias: { one: uno }
    resources: { rewrite: identity }
    unalias_arguments: false
    decorate_titles: true
    dynamic_lists: true
    apps: false
    hidden_characters: drop
    lock: { on_change: hold }
    drive_tasks: true
    instructions: false
    proxy: http://proxy.test:3128
`)
    const [server] = (await files.load(undefined, { env: { KEEP: 'k', PATH: '/bin' } })).servers
    expect(server).toEqual({
      key: 'a',
      prefix: 'p',
      displayName: 'A server',
      place: 'trunkline.yaml:3:3',
      launch: {
        command: files.path('home/bin/x'),
        args: ['-p', '8080', '1.10', 'true'],
        env: { KEEP: 'k', VERSION: '1.10', ON: 'yes' },
        cwd: files.path('work'),
      },
      url: new URL('https://x.test/mcp'),
      transport: 'http',
      era: 'modern',
      httpClient: 'undici',
      proxies: { http: 'http://proxy.test:3128/', https: 'http://proxy.test:3128/', except: [] },
      headers: { 'X-A': '1', 'X-Key': 'k', Authorization: 'Bearer t' },
      trusted: false,
      tags: ['one', 'two'],
      roots: [files.folder, '/data', 'file:///srv'],
      timeouts: {
        startMs: 1000,
        probeMs: 2000,
        connectTimeoutMs: 3000,
        idleMs: 4000,
        totalMs: 5000,
        pingMs: 7000,
        graceMs: 6000,
      },
      limits: {
        maxConcurrent: 1,
        maxQueued: 0,
        maxLogMessages: { amount: 7, periodMs: 1_000, text: '7/s' },
        rate: { amount: 20, periodMs: 1_000, text: '20/s' },
        maxLinks: 3,
        maxWriteQueueBytes: 2048,
        maxRestarts: 4,
        maxStderrBytes: 1024,
        maxMessageBytes: 4096,
        maxTools: 5,
        maxEntries: 6,
        maxPages: 7,
        maxTextBytes: 8,
        maxSchemaBytes: 9000,
        maxSchemaDepth: 8,
      },
      start: 'lazy',
      sharing: 'call',
      spare: 0,
      idleStopMs: Infinity,
      alias: { one: 'uno' },
      curation: expect.objectContaining({
        aliases: new Map([['one', { path: 'servers.a.alias.one', place: 'trunkline.yaml:22:14' }]]),
      }),
      uris: 'identity',
      unaliasArguments: false,
      decorateTitles: true,
      dynamicLists: true,
      apps: false,
      hidden: 'drop',
      onChange: 'hold',
      driveTasks: true,
      instructions: false,
    })
  })

  test('defaults hold for every server that says nothing else', async () => {
    await using files = await yaml(`
defaults: { hidden_characters: strip, lock: { on_change: quarantine }, timeouts: { idle: 1m, wait: 9s }, limits: { concurrency: 8 }, lifecycle: { spare: 0 }, env: { inherit: [ONLY] } }
servers:
  a: { command: x }
  b: { command: x, lock: { on_change: allow }, timeouts: { idle: 2m }, lifecycle: { start: lazy }, env: { inherit: [PATH] } }
`)
    const [a, b] = (await files.load(undefined, { env: { ONLY: 'o', PATH: '/bin' } })).servers
    expect([a!.hidden, a!.onChange, b!.hidden, b!.onChange]).toEqual(['strip', 'quarantine', 'strip', 'allow'])
    expect(a).toMatchObject({
      timeouts: { ...DEFAULT_TIMEOUTS, idleMs: 60_000, connectTimeoutMs: 9_000 },
      limits: { ...DEFAULT_LIMITS, maxConcurrent: 8 },
      spare: 0,
      start: 'eager',
      launch: { env: { ONLY: 'o' } },
    })
    expect(b).toMatchObject({
      timeouts: { idleMs: 120_000, connectTimeoutMs: 9_000 },
      spare: 0,
      start: 'lazy',
      launch: { env: { PATH: '/bin' } },
    })
  })

  test('T-13 a process inherits the usual variables and no secret of ours', async () => {
    await using files = await yaml('servers:\n  a: { command: x, env: { HOME: /elsewhere } }\n')
    const env = { PATH: '/bin', HOME: '/home/me', LC_ALL: 'C', LANG: 'C', AWS_SECRET: 's', LC: 'no', NODE_OPTIONS: '--inspect' }
    expect((await files.load(undefined, { env, platform: 'linux' })).servers[0]?.launch?.env).toEqual({
      PATH: '/bin',
      LC_ALL: 'C',
      LANG: 'C',
      HOME: '/elsewhere',
    })
    const windows = { Path: 'C:\\bin', SystemRoot: 'C:\\Windows', AWS_SECRET: 's' }
    expect((await files.load(undefined, { env: windows, platform: 'win32' })).servers[0]?.launch?.env).toEqual({
      Path: 'C:\\bin',
      SystemRoot: 'C:\\Windows',
      HOME: '/elsewhere',
    })
  })

  test('command and url together are one server', async () => {
    await using files = await yaml('servers:\n  a: { command: x, url: "http://127.0.0.1:1/sse", transport: sse }\n')
    expect((await files.load()).servers[0]).toMatchObject({ launch: { command: 'x' }, transport: 'sse' })
  })

  test('a server that is switched off is left out, but checked', async () => {
    await using files = await yaml('servers:\n  a: { command: x, enabled: false }\n  b: { command: x }\n')
    expect((await files.load()).servers.map(({ key }) => key)).toEqual(['b'])
    await files.write('trunkline.yaml', 'servers:\n  a: { command: x, enabled: false, oops: 1 }\n')
    expect(await files.errors()).toHaveLength(1)
  })

  test('nothing of a configuration can be changed', async () => {
    await using files = await yaml('servers:\n  a: { command: x, tags: [t] }\n')
    const configuration = await files.load()
    expect(Object.isFrozen(configuration)).toBe(true)
    expect(Object.isFrozen(configuration.servers[0]?.tags)).toBe(true)
    expect(Object.isFrozen(configuration.host.limits)).toBe(true)
  })
})
