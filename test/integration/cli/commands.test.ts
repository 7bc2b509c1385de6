/** Each command and each exit code, run as a process; no gateway runs beside it. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { commandLine } from '../../support/cli.ts'
import { listening } from '../../support/listening.ts'
import { PROGRAM } from '../../support/program.ts'

const lastJson = (errors: readonly string[]): { error: { exitCode: number; message: string; problems?: { place: string }[] } } =>
  JSON.parse(errors.at(-1) ?? '') as never

describe('a configuration', () => {
  const BAD = [
    'nameing: { prefix: never }',
    'listen: { http: { sse: "perhaps" } }',
    'servers:',
    '  one: { command: x }',
    '  two: { url: "${NOT_SET}/mcp" }',
    '  two: { command: y }',
    '  three: { command: x, prefix: one }',
    'include: [gone.yaml]',
  ].join('\n')

  test('that is wrong ends with 2, and every problem says its place and a remedy', async () => {
    await using cli = await commandLine({ 'trunkline.yaml': BAD })
    const { code, stdout, errors } = await cli.run(['check'])
    expect(code).toBe(2)
    expect(stdout).toBe('')
    expect(errors).toEqual([
      expect.stringMatching(/^trunkline\.yaml:1:1: unknown key "nameing"; did you mean "naming"\?/),
      expect.stringMatching(/^trunkline\.yaml:2:19 listen\.http\.sse: expected true or false/),
      expect.stringMatching(/^trunkline\.yaml:5:10 servers\.two\.url: variable NOT_SET is not set; set it, or/),
      expect.stringMatching(/^trunkline\.yaml:6:3 servers\.two: duplicate key "two", first written at .*; keep one/),
      expect.stringMatching(/^trunkline\.yaml:7:24 servers\.three\.prefix: "one" is already .*; choose another prefix/),
      expect.stringMatching(/^trunkline\.yaml:8:11 include\[0\]: gone\.yaml cannot be read .*; check the path/),
    ])
  })

  test('that is wrong stops every command, and --json tells its problems in the last line of stderr', async () => {
    await using cli = await commandLine({ 'trunkline.yaml': BAD })
    const ends = await Promise.all(
      ['up', 'tools', 'stdio -c trunkline.yaml'].map((command) => cli.run([...command.split(' '), '--json'])),
    )
    for (const { code, stdout, errors } of ends) {
      expect([code, stdout]).toEqual([2, ''])
      expect(lastJson(errors).error).toMatchObject({ exitCode: 2, problems: { length: 6 } })
    }
  })

  test('that is right ends with 0, with the options before the command and a file of a host', async () => {
    await using cli = await commandLine({ '.mcp.json': '{ "mcpServers": { "a": { "command": "x" } } } // of a host' })
    const { code, stdout } = await cli.run(['-c', '.mcp.json', '--json', 'check'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, servers: ['a'] })
  })

  test('that is missing ends with 2 and says how to name one', async () => {
    await using cli = await commandLine()
    const { code, errors } = await cli.run(['check'])
    expect(code).toBe(2)
    expect(errors).toEqual([expect.stringContaining('name one with -c FILE')])
  })

  test('stdio takes no file from the working folder', async () => {
    await using cli = await commandLine({ 'trunkline.yaml': 'servers: {}\n' })
    expect(await cli.run(['stdio'])).toMatchObject({ code: 2, stdout: '' })
  })
})

test('words that are not understood end with 1 and the way to the help', async () => {
  await using cli = await commandLine()
  const { code, errors } = await cli.run(['ps', '--jsno'])
  expect(code).toBe(1)
  expect(errors.join('\n')).toMatch(/unknown option '--jsno'[^]*Did you mean --json\?[^]*trunkline ps --help/)
  const asked = await cli.run(['--help'])
  expect([asked.code, asked.stderr]).toEqual([0, ''])
})

test('schema prints the JSON Schema', async () => {
  await using cli = await commandLine()
  const { code, stdout } = await cli.run(['schema'])
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ type: 'object', properties: { servers: expect.anything() } })
})

test.each([[['ps']], [['reload']], [['restart', 'a']]])(
  '%j without a running process ends with 4 and how to start one',
  async (args) => {
    await using cli = await commandLine({ 'trunkline.yaml': 'servers: {}\n' })
    const { code, stdout, errors } = await cli.run([...args, '--json'])
    expect([code, stdout]).toEqual([4, ''])
    expect(lastJson(errors).error).toMatchObject({ exitCode: 4, message: expect.stringContaining('trunkline up -c') })
  },
)

test('check --live ends with 4 when a server cannot be reached, and tells the state and the last words of each', async () => {
  await using cli = await commandLine()
  await cli.write(
    'trunkline.yaml',
    `servers:\n  good: ${cli.fake()}\n  noisy: ${cli.fake('noisy')}\n  dying: ${cli.fake('dying')}\n  gone: { command: not-there }\n`,
  )
  const { code, stdout, errors } = await cli.run(['check', '--live', '--json'])
  expect(code).toBe(4)
  expect(lastJson(errors).error.message).toContain('dying, gone')
  expect(JSON.parse(stdout)).toMatchObject({
    ok: false,
    servers: [
      { key: 'good', state: 'healthy', tools: 6, transport: 'stdio', revision: '2025-11-25' },
      { key: 'noisy', state: 'healthy', tools: 6 },
      { key: 'dying', stderr: ['reading the settings', 'no settings found'] },
      { key: 'gone', state: 'failed', reason: expect.stringContaining('not-there') },
    ],
  })
  await cli.write('trunkline.yaml', `servers:\n  good: ${cli.fake()}\n`)
  expect(await cli.run(['check', '--live'])).toMatchObject({ code: 0, stdout: expect.stringContaining('healthy') })
})

test('check --live ends with 6 when two servers want one name, until one is renamed; a difference in case is a warning', async () => {
  await using cli = await commandLine()
  const others = 'filter: { allow: [echo, ECHO] }'
  const configure = (second: string): Promise<void> => {
    const [a, b] = [`, ${others} }`, `, ${others}${second} }`].map((end) => cli.fake().replace(/ }$/, end))
    return cli.write('trunkline.yaml', `naming: { prefix: never }\nservers:\n  a: ${a}\n  b: ${b}\n`)
  }
  await configure('')
  const { code, stdout, errors } = await cli.here('check', '--live', '--json')
  const message = 'tools: "echo" belongs to a, which is configured first; "echo" of b is left out'
  expect([code, JSON.parse(stdout)]).toMatchObject([6, { ok: false, collisions: [message], warnings: [] }])
  expect(lastJson(errors).error.message).toMatch(/^1 exposed name is not unique; rename one tool of each \(servers\.<key>\.tools/)
  await configure(', tools: { echo: { name: ECHO } }')
  const warning = 'tools: "ECHO" of b differs from "echo" of a only by case'
  const renamed = await cli.here('check', '--live', '--json')
  expect([renamed.code, JSON.parse(renamed.stdout)]).toMatchObject([0, { ok: true, collisions: [], warnings: [warning] }])
})

test('ps and tools count the tokens of the same tools alike', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake()}\n  b: ${cli.fake()}\n`)
  await using _up = await cli.up()
  // The lists of a server are there once it has answered.
  for (const key of ['a', 'b']) expect(await cli.here('call', `${key}__echo`, 'text=x')).toMatchObject({ code: 0 })
  const rows = JSON.parse((await cli.here('tools', '--json')).stdout) as { server: string; tokens: number }[]
  const of = (key: string): number => rows.filter(({ server }) => server === key).reduce((sum, { tokens }) => sum + tokens, 0)
  expect(new Set(rows.map(({ server }) => server))).toEqual(new Set(['a', 'b']))
  const { servers } = JSON.parse((await cli.here('ps', '--json')).stdout) as { servers: { key: string; tokens: number }[] }
  expect(servers.map(({ key, tokens }) => [key, tokens])).toEqual([
    ['a', of('a')],
    ['b', of('b')],
  ])
  const total = (of('a') + of('b')).toLocaleString('en')
  expect((await cli.here('tools')).stderr).toContain(`about ${total} tokens`)
})

describe('without a running process', () => {
  test('tools lists what hosts would see, by query, with an estimate of its cost', async () => {
    await using cli = await commandLine()
    await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake()}\n  b: ${cli.fake()}\n`)
    const { code, stdout } = await cli.run(['tools', 'echo', '--json'])
    expect(code).toBe(0)
    const rows = JSON.parse(stdout) as { name: string; tokens: number; definition: object }[]
    expect(rows).toMatchObject([
      { name: 'a__echo', server: 'a', original: 'echo' },
      { name: 'b__echo', server: 'b', original: 'echo' },
    ])
    expect(rows[0]!.tokens).toBe(Math.ceil(Buffer.byteLength(JSON.stringify(rows[0]!.definition)) / 4))
    const plain = await cli.run(['tools', 'b__echo'])
    expect(plain.stdout).toMatch(/^b__echo {2}b {2}\d+ tok\n$/)
    const { description } = rows[1]!.definition as { readonly description: string }
    const { stdout: shown } = await cli.onTerminal(['tools', 'b__echo'], [])
    expect(shown).toMatch(/^b__echo {2}b {2}\d+ tok {2}\S/)
    expect(shown).toContain(description.slice(0, 10))
  })

  test('F-08 tools names the server whose tools are missing, and why, unless a query finds other tools', async () => {
    await using cli = await commandLine()
    await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake()}\n  b: { command: no-such-program }\n`)
    const note = /^b: no tools \(failed\): spawn no-such-program: ENOENT/m
    expect((await cli.run(['tools'])).stderr).toMatch(note)
    expect((await cli.run(['tools', 'echo'])).stderr).not.toMatch(note)
    expect((await cli.run(['tools', 'absent'])).stderr).toMatch(note)
  })

  test('call prints what the tool says: 0, 5 when it fails, 1 when there is none, and leaves no process', async () => {
    await using cli = await commandLine()
    await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake('good', 'log')}\n`)
    expect(await cli.run(['call', 'a__echo', 'text=12'])).toMatchObject({ code: 0, stdout: '12\n' })
    expect(await cli.run(['call', 'a__add', 'a=1', 'b=2.5'])).toMatchObject({ code: 0, stdout: '[1,2.5]\n' })
    const whole = await cli.run(['call', 'a__echo', '--args', '{"text":"x"}', '--json'])
    expect(JSON.parse(whole.stdout)).toEqual({ content: [{ type: 'text', text: 'x' }], isError: false })
    const failed = await cli.run(['call', 'a__fail', '--json'])
    expect([failed.code, JSON.parse(failed.stdout)]).toMatchObject([5, { isError: true }])
    expect(lastJson(failed.errors).error.exitCode).toBe(5)
    expect(await cli.run(['call', 'a__refuse'])).toMatchObject({ code: 5, errors: [expect.stringContaining('the tool refused')] })
    expect(await cli.run(['call', 'nope'])).toMatchObject({ code: 1, errors: [expect.stringContaining('trunkline tools')] })
    expect(await cli.run(['call', 'a__add', 'a=many'])).toMatchObject({
      code: 1,
      errors: [expect.stringContaining('a is of type number')],
    })
    const log = cli.log('log')
    expect(log.filter((line) => line.startsWith('end'))).toHaveLength(log.length / 2)
  })

  test('F-08 call ends with 4 when the server is known but does not come up', async () => {
    await using cli = await commandLine()
    const server = cli.fake('once', 'log').replace(' }', ', lifecycle: { spare: 0 }, timeouts: { wait: 500ms } }')
    await cli.write('trunkline.yaml', `servers:\n  a: ${server}\n`)
    expect(await cli.run(['tools'])).toMatchObject({ code: 0 })
    const { code, errors } = await cli.run(['call', 'a__echo', 'text=x', '--json'])
    expect(code).toBe(4)
    expect(lastJson(errors).error.message).toMatch(/server "a": [^]*trunkline check --live/)
  })

  test('call ends with 3 when the server wants authorization', async () => {
    const results: Record<string, object> = {
      initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'f', version: '1' } },
      'tools/list': { tools: [{ name: 'secret', inputSchema: { type: 'object' } }] },
    }
    const server = createServer(async (request, response) => {
      const body = await text(request)
      const { id, method } = (body === '' ? {} : JSON.parse(body)) as { id?: number; method?: string }
      const result = results[method ?? '']
      if (method === 'tools/call') response.writeHead(401).end()
      else if (result === undefined) response.writeHead(request.method === 'POST' ? 202 : 405).end()
      else response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
    })
    await using opened = await listening(server)
    await using cli = await commandLine({
      'trunkline.yaml': `servers:\n  a: { url: "${opened.url}/mcp", era: legacy, transport: http }\n`,
    })
    const { code, errors } = await cli.run(['call', 'a__secret'])
    expect([code, errors]).toEqual([3, [expect.stringContaining('credentials')]])
  })
})

test.runIf(process.platform === 'linux')(
  'output that a full disk does not take is reported, and a reader that leaves is no error',
  async () => {
    const schema = [PROGRAM, 'schema']
    const full = openSync('/dev/full', 'w')
    const { status, stderr } = spawnSync(process.execPath, schema, { stdio: ['ignore', full, 'pipe'], encoding: 'utf8' })
    closeSync(full)
    expect([status, stderr]).toEqual([70, 'the output could not be written: ENOSPC: no space left on device, write\n'])
    const child = spawn(process.execPath, schema, { stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.destroy()
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
    expect([code, said]).toEqual([0, ''])
  },
)

test.runIf(process.platform === 'linux')('tail ends when a full disk takes no more calls, and reports it', async () => {
  await using cli = await commandLine()
  await cli.write('trunkline.yaml', `servers:\n  a: ${cli.fake('good')}\n`)
  await using _up = await cli.up()
  const full = openSync('/dev/full', 'w')
  const child = spawn(process.execPath, [PROGRAM, 'tail', '--json'], {
    cwd: cli.folder,
    env: cli.env,
    stdio: ['ignore', full, 'pipe'],
  })
  closeSync(full)
  const ended = once(child, 'exit')
  const said = text(child.stderr!)
  // It follows the calls that begin after it has connected.
  while (child.exitCode === null) expect(await cli.here('call', 'a__echo', 'text=hi')).toMatchObject({ code: 0 })
  expect([(await ended)[0], await said]).toEqual([
    70,
    'the output could not be written: ENOSPC: no space left on device, write\n',
  ])
})

test('a command without a running process starts a lazy server whose lists are stored, and does not wait for it in vain', async () => {
  await using cli = await commandLine()
  await cli.write(
    'trunkline.yaml',
    `servers:\n  one: { ${cli.fake('good', 'one.log').slice(2, -2)}, lifecycle: { start: lazy } }\n`,
  )
  expect((await cli.run(['tools'])).code).toBe(0)
  const live = await cli.run(['check', '--live'])
  expect([live.code, live.stdout]).toEqual([0, expect.stringMatching(/one\s+healthy/)])
  expect(cli.log('one.log').filter((line) => line.startsWith('start'))).toHaveLength(2)
})
