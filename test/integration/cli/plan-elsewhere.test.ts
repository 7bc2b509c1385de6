/** `trunkline plan -c new.yaml`: what a process that runs another file would do with the new one, told without handing it over. */
import { createServer } from 'node:http'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { commandLine } from '../../support/cli.ts'
import type { Cli, Up } from '../../support/cli.ts'

const entry = (cli: Cli, log: string, more = ''): string =>
  cli.fake('good', log).replace(' }', `${more}, lifecycle: { spare: 0 } }`)
const file = (servers: string, more = ''): string => `${more}servers:\n${servers}`
const ready = async (up: Up, ...keys: string[]): Promise<void> => {
  for (const key of keys) await up.said(new RegExp(`"server":"${key}".*server is ready`))
}
const rows = (stdout: string): string[] =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.trim().replaceAll(/ {2,}/g, ' | '))

test('plan compares a new file with the process that runs, which watches its own and keeps it', async () => {
  await using cli = await commandLine()
  const a = entry(cli, 'a.log')
  await cli.write('trunkline.yaml', file(`  a: ${a}\n  old: ${entry(cli, 'old.log')}\n`))
  await using up = await cli.up()
  await ready(up, 'a', 'old')
  const tuned = a.replace(/ }$/, ', filter: { deny: [fail] }, timeouts: { idle: 9s } }')
  await cli.write('new.yaml', file(`  a: ${tuned}\n  b: ${entry(cli, 'b.log', ', env: { TOKEN: s3cret-of-b }')}\n`))
  const { code, stdout, stderr } = await cli.here('plan', '-c', 'new.yaml')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(rows(stdout)).toEqual([
    `compared with the process of ${cli.path('trunkline.yaml')} (pid ${up.pid})`,
    '+ | server | b | new | starts; its lists are known then',
    '- | server | old | gone | ends, 0 calls in flight',
    '~ | server | a | timeouts, filter, tools, resources or prompts changed | keeps running',
    expect.stringMatching(/^- \| tool \| a__fail \| gone/),
    ...Array.from({ length: 6 }, () => expect.stringMatching(/^- \| tool \| old__\w+ \| gone/) as string),
    expect.stringMatching(/^all: 12 → 5 tools, \d+ → \d+ tok \| nothing restarts$/),
  ])
  const told = JSON.parse((await cli.here('plan', '-c', 'new.yaml', '--json')).stdout) as object
  expect(told).toMatchObject({ against: { file: cli.path('trunkline.yaml'), pid: up.pid }, servers: [{ key: 'b' }, {}, {}] })
  expect((await cli.here('tools')).stdout).toContain('old__echo')
  // Put in place, it does what was said.
  await cli.write('trunkline.yaml', file(`  a: ${tuned}\n  b: ${entry(cli, 'b.log')}\n`))
  await up.said(/configuration reloaded/)
  expect((await cli.here('tools')).stdout).not.toMatch(/old__echo|a__fail/)
})

test('plan of a copy in another folder and shell says that nothing changes', async () => {
  await using cli = await commandLine({}, { NAME_OF_ITS_OWN: 'x', WORD: 'secret-of-the-process' })
  const text = file(
    `  a: ${entry(cli, 'a.log', ', env: { WORD: "${WORD}" }, cwd: ./data')}\n`,
    'listen: { http: { public_url: "http://localhost:9" } }\nstate: { dir: ./state }\n',
  )
  for (const folder of ['data', 'elsewhere', 'elsewhere/data']) await mkdir(cli.path(folder))
  await cli.write('trunkline.yaml', text)
  await using up = await cli.up('--state', cli.path('state'))
  await ready(up, 'a')
  await cli.write('elsewhere/new.yaml', text)
  Object.assign(cli.env, { PATH: `${cli.env['PATH']}:/nowhere`, TERM: 'other', HTTP_PROXY: 'http://127.0.0.1:9' })
  delete cli.env['WORD']
  const { code, stdout } = await cli.here('plan', '-c', 'elsewhere/new.yaml')
  expect({ code, rows: rows(stdout).slice(1) }).toEqual({ code: 0, rows: ['nothing changes'] })
})

test('T-14 the new file is not sent, and no secret of the running one is told', async () => {
  await using cli = await commandLine()
  const secret = 'sk-running-0123456789'
  const next = 'sk-new-9876543210'
  const text = (token: string): string => file(`  a: ${entry(cli, 'a.log', `, env: { API_TOKEN: ${token} }`)}\n`)
  await cli.write('trunkline.yaml', text(secret))
  await using up = await cli.up()
  await ready(up, 'a')
  await cli.write('new.yaml', text(next))
  const sockets = await listening(cli)
  const answer = await fetchUnix(sockets[0] ?? '', '/basis')
  expect(answer).toContain('"pid"')
  expect(answer).not.toContain(secret)
  expect(answer).not.toContain(Buffer.from(secret).toString('base64').slice(0, 20))
  const { stdout } = await cli.here('plan', '-c', 'new.yaml')
  expect(rows(stdout)[1]).toBe('~ | server | a | env changed | restart, 0 calls in flight')
  expect(up.lines.join('\n') + stdout).not.toContain(next)
  // Two answers have nothing in common to compare them by.
  const digests = [answer, await fetchUnix(sockets[0] ?? '', '/basis')].map(
    (json) => (JSON.parse(json) as { configuration: { listeners: string } }).configuration.listeners,
  )
  expect(digests[0]).not.toBe(digests[1])
})

describe('it is refused', () => {
  test('where nothing runs, and where a file was found and not named', async () => {
    await using cli = await commandLine({ 'new.yaml': 'servers: {}\n' })
    expect(await cli.here('plan', '-c', 'new.yaml')).toMatchObject({
      code: 4,
      errors: ['no process runs new.yaml; start one: trunkline up -c new.yaml'],
    })
    expect(await cli.here('plan', '-c', 'new.yaml', '--running', 'other.yaml')).toMatchObject({
      code: 4,
      errors: ['no process runs other.yaml; start one: trunkline up -c other.yaml'],
    })
    await cli.write('one.yaml', file(`  a: ${entry(cli, 'a.log')}\n`))
    await using _up = await cli.up('-c', 'one.yaml')
    await cli.write('trunkline.yaml', 'servers: {}\n')
    expect(await cli.here('plan')).toMatchObject({ code: 4, errors: [expect.stringContaining('no process runs')] })
    expect(await cli.here('plan', '--running', 'one.yaml')).toMatchObject({ code: 0 })
  })

  test('where several run, until one is named', async () => {
    await using cli = await commandLine()
    for (const name of ['one', 'two']) await cli.write(`${name}.yaml`, file(`  ${name}: ${entry(cli, `${name}.log`)}\n`))
    await using one = await cli.up('-c', 'one.yaml')
    await using two = await cli.up('-c', 'two.yaml')
    await ready(one, 'one')
    await ready(two, 'two')
    await cli.write('new.yaml', file(`  two: ${entry(cli, 'two.log')}\n`))
    const { code, errors } = await cli.here('plan', '-c', 'new.yaml')
    expect(code).toBe(1)
    expect(errors[0]).toBe(
      `no process runs new.yaml, and several others run: ${cli.path('one.yaml')}, ${cli.path('two.yaml')}; ` +
        `name the one to compare with: trunkline plan --running ${cli.path('one.yaml')} -c new.yaml`,
    )
    expect((await cli.here('plan', '-c', 'new.yaml', '--running', 'two.yaml')).stdout).toContain('nothing changes')
    expect((await cli.here('plan', '-c', 'new.yaml', '--running', 'one.yaml')).stdout).toMatch(/-\s+server\s+one\s+gone/)
  })

  test('where the new file is wrong, empty, or would be refused by a reload', async () => {
    await using cli = await commandLine()
    const two = (naming: string): string =>
      file(`  a: ${entry(cli, 'a.log')}\n  b: ${entry(cli, 'b.log')}\n`, `naming: { prefix: ${naming} }\n`)
    await cli.write('trunkline.yaml', two('always'))
    await using up = await cli.up()
    await ready(up, 'a', 'b')
    for (const [text, words] of [
      ['servers: [', /new\.yaml:1:\d+/],
      ['servrs: {}\n', /new\.yaml:1:1.*servers/],
      ['', /new\.yaml.*the file is empty/],
      ['servers: { a: { url: "http://x/${NOT_SET_ANYWHERE}" } }\n', /new\.yaml:1:\d+.*NOT_SET_ANYWHERE/],
      [two('never, collision: error'), /new\.yaml naming\.collision: tools: "echo" belongs to a/],
    ] as const) {
      await cli.write('new.yaml', text)
      expect(await cli.here('plan', '-c', 'new.yaml')).toMatchObject({ code: 2, stderr: expect.stringMatching(words) })
    }
  })

  test.each([
    ['does not know the question', undefined],
    ['is of another version', { format: 1, version: '99.0.0' }],
    ['words its answer otherwise', { format: 99 }],
  ])('where the process %s', async (_name, basis) => {
    await using cli = await commandLine({ 'new.yaml': 'servers: {}\n' })
    const version = '99.0.0'
    const server = createServer((request, response) => {
      const known = { '/status': { version, files: ['/etc/other.yaml'] }, ...(basis !== undefined && { '/basis': basis }) }
      const answer = (known as Record<string, object>)[new URL(request.url ?? '', 'http://x').pathname]
      response.writeHead(answer === undefined ? 404 : 200).end(JSON.stringify(answer ?? {}))
    })
    await mkdir(cli.path('run/trunkline'), { mode: 0o700 })
    server.listen(cli.path('run/trunkline/0123456789abcdef.sock'))
    await once(server, 'listening')
    try {
      const { code, errors } = await cli.here('plan', '-c', 'new.yaml')
      expect(code).toBe(4)
      expect(errors[0]).toMatch(
        /^the process of \/etc\/other\.yaml is trunkline 99\.0\.0, and this is \S+: only the same version/,
      )
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
})

test('a variable that has another value in this shell is named', async () => {
  await using cli = await commandLine({}, { SPEED: 'fast' })
  const text = (more = ''): string => file(`  a: ${entry(cli, 'a.log', `, display_name: "x \${SPEED}"${more}`)}\n`)
  await cli.write('trunkline.yaml', text())
  await using up = await cli.up()
  await ready(up, 'a')
  await cli.write('new.yaml', text(', tags: [b]'))
  cli.env['SPEED'] = 'slow'
  const { stdout, stderr } = await cli.here('plan', '-c', 'new.yaml')
  expect(rows(stdout)[1]).toBe('~ | server | a | tags, display_name changed | keeps running')
  expect(stderr).toBe('SPEED: the running process has other values; the plan uses those of this command\n')
})

const listening = async (cli: Cli): Promise<string[]> => {
  const { readdir } = await import('node:fs/promises')
  const names = await readdir(cli.path('run/trunkline'))
  return names.filter((name) => name.endsWith('.sock')).map((name) => cli.path(`run/trunkline/${name}`))
}

const fetchUnix = async (socketPath: string, path: string): Promise<string> => {
  const { request } = await import('node:http')
  const asked = request({ socketPath, path }).end()
  const [response] = (await once(asked, 'response')) as [AsyncIterable<Buffer>]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
