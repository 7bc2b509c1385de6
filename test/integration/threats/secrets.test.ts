/**
 * T-14: twenty sentinels, each where a secret may stand, and every way in which text leaves the process: log, ps, check, call, errors
 * to hosts, audit log with bodies, reload that fails, crash. None of them may be found in any, in whatever form.
 */
import { chmod, mkdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { commandLine } from '../../support/cli.ts'
import type { Ended } from '../../support/cli.ts'
import { FakeDownstream } from '../../support/fake-downstream.ts'

/** With characters that JSON, URLs, forms and shells write in other ways. */
const sentinel = (number: number): string => `sEnt-${number}"\\/+ %é-${'abcdefghijklmnopqrst'[number - 1]}${number * 7919}`
/** In one line of ASCII, for headers. */
const plain = (number: number): string => `sEnt-${number}/+~${number * 7919}-${'abcdefghijklmnopqrst'[number - 1]}`

const ENV = sentinel(1)
const LITERAL = plain(2)
const ENV_FILE = 'sEnt-3 in a file of variables 23757'
const FILE = sentinel(4)
const ARGUMENT = sentinel(5)
const BASIC = plain(6)
const HEADER = plain(7)
const BEARER = plain(8)
const CREDENTIAL = plain(9)
const QUERY = plain(10)
const SECRET_FILE = sentinel(11)
const SECRET_ENV = plain(12)
const EXEC = sentinel(13)
const KEYRING = plain(14)
const KEY_LINE = 'sEnt-15-MIIEvQIBADANBgkqhkiG9w0BAQEFAASC'
const DIGITS = '160167916'
const NAMED = sentinel(17)
const FAILING = sentinel(18)
const BASIC_ENV = sentinel(19)
const OVERRIDE = sentinel(20)

const forms = [
  ENV,
  LITERAL,
  ENV_FILE,
  FILE,
  ARGUMENT,
  BASIC,
  HEADER,
  BEARER,
  CREDENTIAL,
  QUERY,
  SECRET_FILE,
  SECRET_ENV,
  EXEC,
  KEYRING,
  KEY_LINE,
  DIGITS,
  NAMED,
  FAILING,
  BASIC_ENV,
  OVERRIDE,
].flatMap((secret) => [
  secret,
  JSON.stringify(secret).slice(1, -1),
  encodeURIComponent(secret),
  Buffer.from(secret).toString('base64').slice(0, -4),
  Buffer.from(`u:${secret}`).toString('base64').slice(0, -4),
])

/** Prints all it was given, in several forms, and fails. */
const LEAKY = `
const all = [...Object.values(process.env), ...process.argv.slice(1)]
for (const text of all) process.stderr.write(text + '\\n' + JSON.stringify({ text }) + '\\n' + encodeURIComponent(text) + '\\n')
for (const text of all) process.stderr.write('Basic ' + Buffer.from('u:' + text).toString('base64') + '\\n')
process.exitCode = 1`
/** What nobody foresaw, with a secret in it. */
const CRASH = `data:text/javascript,process.on('SIGUSR2',()=>{throw new Error('crashed with '+process.env.A_TOKEN)})`

test('T-14 none of twenty secrets is in anything that leaves', { timeout: 60_000 }, async () => {
  await using web = await FakeDownstream.start({ kind: 'modern http', tools: ['x', 'y'] })
  await using cli = await commandLine(
    {},
    {
      A_TOKEN: ENV,
      API_KEY: ARGUMENT,
      A_SECRET: SECRET_ENV,
      DIGITS,
      BASIC_ENV,
      OVERRIDE,
      NODE_OPTIONS: `--import "${CRASH}"`,
      PATH: `./bin:${process.env['PATH'] ?? ''}`,
    },
  )
  await mkdir(cli.path('bin'))
  await cli.write('.env', `FROM_FILE="${ENV_FILE}"\n`)
  await cli.write('file.key', FILE)
  await cli.write('secret.key', SECRET_FILE)
  await cli.write('key.pem', `-----BEGIN KEY-----\n${KEY_LINE}\n-----END KEY-----\n`)
  await cli.write('exec.txt', EXEC)
  await cli.write('failing.txt', FAILING)
  const node = JSON.stringify(process.execPath)
  const print = (file: string, code: number): string =>
    JSON.stringify([
      process.execPath,
      '-e',
      `const text = fs.readFileSync('${file}', 'utf8'); console.log(text); console.error('it is ' + text); process.exit(${code})`,
    ])
  const ring = process.platform === 'darwin' ? 'security' : 'secret-tool'
  await cli.write(`bin/${ring}`, `#!/bin/sh\necho '${KEYRING}'\n`)
  await chmod(cli.path(`bin/${ring}`), 0o700)
  const address = web.address as { url: URL }
  const configuration = (more = ''): string =>
    [
      'env_file: .env',
      'telemetry: { log: { level: trace, audit: audit.ndjson, audit_bodies: true } }',
      'reload: { watch: false }',
      'secrets:',
      '  file: { file: secret.key }',
      '  pem: { file: key.pem }',
      '  env: { env: A_SECRET }',
      `  exec: { exec: ${print('exec.txt', 0)} }`,
      `  failing: { exec: ${print('failing.txt', 3)} }`,
      '  ring: { keyring: { service: s, account: "${name}" } }',
      'servers:',
      '  leaky:',
      `    command: ${node}`,
      `    args: [-e, ${JSON.stringify(LEAKY)}, "\${API_KEY}", "\${secret:file}", "\${secret:exec}"]`,
      `    env: { ONE: "\${A_TOKEN}", MY_TOKEN: "${LITERAL}", TWO: "\${FROM_FILE}", THREE: "\${file:file.key}", FOUR: "\${secret:pem}", PIN: "\${DIGITS}", DB_PASSWORD: ${JSON.stringify(NAMED)} }`,
      '  web:',
      `    url: "${address.url.href}?key=${encodeURIComponent(QUERY)}"`,
      `    headers: { Authorization: "Basic ${Buffer.from(`u:${BASIC}`).toString('base64')}", X-Api-Key: "${HEADER}", X-Ring: "\${secret:ring/a}" }`,
      `    credentials: { headers: { X-Credential: "${CREDENTIAL}", X-Env: "\${secret:env}", X-Bearer: "${BEARER}" } }`,
      '    tools: { y: { args: { pinned: { value: "${BASIC_ENV}", hide: true }, named: { value: "${OVERRIDE}", hide: true } } } }',
      more,
    ].join('\n')
  await cli.write('trunkline.yaml', configuration())
  web.on('tools/call', (turn) => {
    const said = JSON.stringify({ headers: turn.headers, url: address.url.href, raw: turn.raw, query: encodeURIComponent(QUERY) })
    if (turn.params['name'] === 'x') turn.fail(-5, `refused: ${said}`, { said, list: [said] })
    else turn.response?.writeHead(500, { 'content-type': 'text/plain' }).end(said)
    return undefined
  })

  const up = await cli.up()
  await up.said(/"server":"web".*is ready/)
  await up.said(/"server":"leaky".*exited with code 1/)
  const asked: Ended[] = await Promise.all([
    cli.run(['ps']),
    cli.run(['ps', '--json']),
    cli.run(['call', 'web__x', `text=${ENV}`]),
    cli.run(['call', 'web__y', '--json']),
    cli.run(['check', '--live', '--json']),
  ])
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'h', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const told: string[] = []
  for (const name of ['web__x', 'web__y']) {
    const answer = await fetch(up.url, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'MCP-Protocol-Version': '2026-07-28',
        'Mcp-Method': 'tools/call',
        'Mcp-Name': name,
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name, arguments: { text: HEADER, deep: [FILE] }, _meta: meta },
      }),
    })
    told.push(await answer.text())
  }
  await cli.write('trunkline.yaml', configuration('  bad: { command: x, args: ["${secret:failing}"] }'))
  asked.push(...(await Promise.all([cli.run(['reload']), cli.run(['check', '--json'])])))
  up.signal('SIGUSR2')
  expect(await up.ended).toBe(70)

  const audit = await readFile(cli.path('audit.ndjson'), 'utf8')
  const all = [...up.lines, ...told, audit, ...asked.flatMap(({ stdout, stderr }) => [stdout, stderr])].join('\n')
  // Each way out was used, and said something.
  expect(told[0]).toContain('refused: ')
  expect(up.lines.join('\n')).toContain('crashed with ***')
  expect(audit).toContain('"name":"web__x"')
  expect(asked[2]?.stderr).toContain('refused: ')
  expect(asked[5]?.stderr).toContain('exited with code 3: it is ***')
  expect(asked[1]?.stdout).toContain('Basic ***')
  for (const line of [...up.lines.filter((line) => line.startsWith('{')), ...audit.trimEnd().split('\n'), ...told])
    expect(() => JSON.parse(line) as unknown).not.toThrow()
  expect(forms.filter((form) => all.includes(form))).toEqual([])
})
