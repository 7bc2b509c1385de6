/** `trunkline doctor`: every finding with its remedy, and what `--fix` repairs. Programs it asks are scripts of the test. */
import { createServer } from 'node:http'
import { chmodSync, readFileSync, statSync } from 'node:fs'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import { commandLine } from '../../support/cli.ts'
import type { Cli } from '../../support/cli.ts'
import { listening } from '../../support/listening.ts'

/** A configuration, and programs of the test: name → shell script. */
const laid = async (yaml: string, programs: Readonly<Record<string, string>> = {}): Promise<Cli> => {
  const cli = await commandLine({ 'trunkline.yaml': yaml })
  for (const [name, script] of Object.entries(programs)) {
    await mkdir(dirname(cli.path(name)), { recursive: true })
    await writeFile(cli.path(name), `#!/bin/sh\n${script}\n`)
    await chmod(cli.path(name), 0o755)
  }
  cli.env['PATH'] = `${cli.path('bin')}:/usr/bin:/bin`
  return cli
}

interface Report {
  readonly findings: readonly { readonly level: string; readonly text: string; readonly remedy: string }[]
  readonly fixed: readonly string[]
}
const reportOf = ({ stdout }: { readonly stdout: string }): Report => JSON.parse(stdout) as Report

const NO_PORT = 'listen: { http: { bind: 127.0.0.1:0 } }\n'

describe('doctor', () => {
  test('finds nothing wrong where everything works', async () => {
    await using cli = await laid(`${NO_PORT}servers: { a: { command: good } }\n`, { 'bin/good': 'exit 0' })
    expect(await cli.here('doctor')).toMatchObject({
      code: 0,
      stdout: '  no problems found\n',
      stderr: '',
    })
  })

  test('a configuration without a server is told, with what to type', async () => {
    await using cli = await laid(`${NO_PORT}servers: { a: { command: good, enabled: false } }\n`)
    expect(await cli.here('doctor')).toMatchObject({
      code: 0,
      stdout: `  ▲ no server is enabled in ${cli.path('trunkline.yaml')}\n    → add one: trunkline add NAME URL, or trunkline add NAME -- COMMAND\n`,
    })
  })

  test('without a configuration, what cannot be used in the files of hosts is told', async () => {
    await using cli = await commandLine()
    await mkdir(cli.path('home/.cursor'), { recursive: true })
    await mkdir(cli.path('home/.gemini'), { recursive: true })
    await cli.write('home/.cursor/mcp.json', '{"mcpServers": {')
    await cli.write('home/.gemini/settings.json', JSON.stringify({ mcpServers: { a: { httpUrl: 'no URL' } } }))
    const { code, stdout, stderr } = await cli.here('doctor')
    expect(code).toBe(6)
    expect(stdout).toMatch(/✗ Cursor: \S*\.cursor\/mcp\.json:1:\d+: .+\n    → correct the file of the host/)
    expect(stdout).toMatch(/✗ a: .*settings\.json.*\n    → correct the file of the host/)
    expect(stderr).toContain('3 things do not work')
  })

  test('a command of the login shell alone is repaired by --fix, with every comment kept; a missing one is not', async () => {
    const yaml = `# mine\n${NO_PORT}servers:\n  a: { command: tool, args: [x] } # keep\n  b: { command: uvx }\n`
    await using cli = await laid(yaml, {
      'shell-only/tool': 'exit 0',
      'bin/shell': 'echo a greeting\nPATH="$EXTRA:$PATH" exec /bin/sh -c "$2"',
    })
    cli.env['SHELL'] = cli.path('bin/shell')
    cli.env['EXTRA'] = cli.path('shell-only')
    const { code, stdout, stderr } = await cli.here('doctor')
    expect(code).toBe(6)
    expect(stderr).toContain('2 things do not work')
    expect(stdout).toContain('✗ a: tool is on the PATH of the login shell only\n    → write command: ')
    expect(stdout).toContain('✗ b: uvx is not found\n    → install uv (docs.astral.sh/uv)')
    const fixed = await cli.here('doctor', '--fix', '--json')
    expect(fixed.code).toBe(6)
    expect(reportOf(fixed)).toMatchObject({
      fixed: ['a: tool is on the PATH of the login shell only'],
      findings: [{ text: 'b: uvx is not found' }],
    })
    expect(readFileSync(cli.path('trunkline.yaml'), 'utf8')).toBe(
      yaml.replace('command: tool', `command: ${cli.path('shell-only/tool')}`),
    )
    expect(reportOf(await cli.here('doctor', '--json')).findings).toHaveLength(1)
  })

  test('what --fix cannot repair, such as a file of a host, is not said to be repaired by it', async () => {
    await using cli = await laid('include: [other.yaml]\n', {
      'shell-only/tool': 'exit 0',
      'bin/shell': 'PATH="$EXTRA:$PATH" exec /bin/sh -c "$2"',
    })
    await cli.write('other.yaml', `${NO_PORT}servers: { a: { command: tool } }\n`)
    await cli.write('host.json', '{"mcpServers":{"a":{"command":"tool"}}}')
    Object.assign(cli.env, { SHELL: cli.path('bin/shell'), EXTRA: cli.path('shell-only') })
    for (const file of ['trunkline.yaml', 'host.json']) {
      const { findings, fixed } = reportOf(await cli.here('doctor', '--fix', '--json', '-c', file))
      expect([findings.filter(({ text }) => text.startsWith('a: ')), fixed]).toEqual([
        [
          {
            level: 'trouble',
            text: 'a: tool is on the PATH of the login shell only',
            remedy: `write its full path where the server is configured: ${cli.path('shell-only/tool')}`,
            isFixable: false,
          },
        ],
        [],
      ])
    }
  })

  test('a command that programs of the desktop do not find is advice', async () => {
    await using cli = await laid(`${NO_PORT}servers: { a: { command: tool } }\n`, {
      'bin/tool': 'exit 0',
      'bin/systemctl': 'echo LANG=C; echo PATH=/usr/bin:/bin',
    })
    const { code, stdout } = await cli.here('doctor')
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('▲ a: tool is not on the PATH') as string })
    await cli.here('doctor', '--fix')
    expect(readFileSync(cli.path('trunkline.yaml'), 'utf8')).toContain(`command: ${cli.path('bin/tool')}`)
  })

  test('Docker that does not answer, and a Node that is too old for servers', async () => {
    await using cli = await laid(`${NO_PORT}servers: { box: { command: docker, args: [run, x] }, pkg: { command: npx } }\n`, {
      'bin/docker': 'exit 1',
      'bin/npx': 'exit 0',
      'bin/node': 'echo v16.20.2',
    })
    const { findings } = reportOf(await cli.here('doctor', '--json'))
    expect(findings).toMatchObject([
      {
        level: 'trouble',
        text: 'box: docker is installed, but does not answer',
        remedy: expect.stringContaining('docker info') as string,
      },
      { level: 'advice', text: expect.stringContaining('pkg: runs with Node.js v16.20.2') as string },
    ])
  })

  test('ports in use, proxies, authorities, URLs, clocks and secrets that others can read', async () => {
    const server = createServer((_, response) => response.setHeader('Date', 'Thu, 01 Jan 2026 00:00:00 GMT').writeHead(405).end())
    await using opened = await listening(server)
    const { port } = opened
    await using cli = await laid(
      [
        `listen: { http: { bind: "127.0.0.1:${port}" } }`,
        'env_file: [.env]',
        'servers:',
        `  slow-clock: { url: "http://127.0.0.1:${port}/mcp" }`,
        '  nowhere: { url: "http://127.0.0.1:9/mcp" }',
      ].join('\n'),
    )
    await cli.write('.env', 'TOKEN=abcdefgh\n')
    chmodSync(cli.path('.env'), 0o644)
    cli.env['HTTPS_PROXY'] = 'http://127.0.0.1:9'
    // Not used, since lower case has priority; a proxy may be named without http://.
    cli.env['HTTP_PROXY'] = 'socks5://127.0.0.1:9'
    cli.env['http_proxy'] = `127.0.0.1:${port}`
    cli.env['NODE_EXTRA_CA_CERTS'] = '/none.pem'
    const report = reportOf(await cli.here('doctor', '--fix', '--json'))
    expect(report.findings.map(({ text }) => text)).toEqual([
      expect.stringMatching(new RegExp(`^127\\.0\\.0\\.1:${port} is in use`)),
      'HTTPS_PROXY: the proxy 127.0.0.1:9 accepts no connection',
      'NODE_EXTRA_CA_CERTS names /none.pem, which cannot be read',
      expect.stringMatching(/^the clock differs from that of 127\.0\.0\.1:\d+ by \d+ s/),
      expect.stringMatching(/^nowhere: http:\/\/127\.0\.0\.1:9 cannot be reached: .*ECONNREFUSED/),
    ])
    for (const { remedy } of report.findings) expect(remedy).not.toBe('')
    expect(report.fixed).toEqual([expect.stringContaining('.env contains secrets')])
    expect(statSync(cli.path('.env')).mode & 0o777).toBe(0o600)
  })
})
