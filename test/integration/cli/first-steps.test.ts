/** What a person types in the first minutes, in the wrong order or with nothing there yet: each answer says what to do, and doing it works. */
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { expect, test } from 'vitest'
import { commandLine } from '../../support/cli.ts'

const CURSOR = 'home/.cursor/mcp.json'

test('without a configuration no command names a file that is not there, and each says what to type', async () => {
  await using cli = await commandLine()
  for (const words of ['ps', 'logs', 'plan', 'reload', 'open', 'tail', 'restart a'])
    expect(await cli.here(...words.split(' ')), words).toMatchObject({
      code: 4,
      stderr: 'no process of yours runs here; start one: trunkline up\n',
    })
  for (const words of ['check', 'tools', 'lock', 'up', 'stdio'])
    expect(await cli.here(words), words).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^no configuration found.*trunkline add NAME URL, trunkline add NAME -- COMMAND/) as string,
    })
  expect(await cli.here('doctor')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^ {2}▲ there is no configuration, and no usable server in the files of hosts\n {4}→ add one: trunkline add NAME URL, or trunkline add NAME -- COMMAND\n/,
    ) as string,
  })
  expect(await cli.here('fmt')).toMatchObject({ code: 2, stderr: 'no configuration found; name a file with -c FILE\n' })
  expect(await cli.here('remove', 'a')).toMatchObject({
    code: 2,
    stderr: 'trunkline.yaml does not exist; name a configuration with -c FILE\n',
  })
  expect((await cli.here('add', 'a', '--', 'cat')).code).toBe(0)
  expect((await cli.here('check')).code).toBe(0)
  expect(await cli.here('ps')).toMatchObject({
    code: 4,
    stderr: expect.stringContaining(`up -c ${cli.path('trunkline.yaml')}`) as string,
  })
  // A host starts `stdio` in any folder, so the file of this one is not taken, and that is said.
  expect(await cli.here('stdio')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`trunkline stdio -c ${cli.path('trunkline.yaml')}`) as string,
  })
  expect(await cli.here('stdio', '--url', 'tracker')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('--url takes') as string,
  })
})

test('what init writes from hosts passes check, also where a host has half an entry that is off, and names with marks', async () => {
  await using cli = await commandLine()
  await mkdir(dirname(cli.path(CURSOR)), { recursive: true })
  await writeFile(
    cli.path(CURSOR),
    JSON.stringify({
      mcpServers: {
        off: { disabled: true },
        'Ünï cødé': { command: 'node', args: ['größe.js'], env: { API_TOKEN: 'abcdefgh1' } },
        日本: { url: 'https://x.test/mcp', disabled: true },
      },
    }),
  )
  const { code, stdout } = await cli.here('init')
  expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('and 1 secret to .env (0600)') as string })
  expect(await cli.here('check', '--strict')).toMatchObject({ code: 0, stderr: '' })
  const { servers } = JSON.parse((await cli.here('check', '--json')).stdout) as { servers: unknown }
  expect(JSON.stringify(servers)).toContain('uni-c-de')
  expect(readFileSync(cli.path('trunkline.yaml'), 'utf8')).toContain('größe.js')
})

test('what the configuration would refuse is reported and neither written nor moved; what is not honoured is a warning', async () => {
  await using cli = await commandLine({ 'trunkline.yaml': 'servers:\n  github: { command: x, prefix: gh }\n' })
  await mkdir(dirname(cli.path(CURSOR)), { recursive: true })
  await writeFile(
    cli.path(CURSOR),
    JSON.stringify({
      mcpServers: {
        line: { command: 'npx -y some-server', env: { API_KEY: 'abcdefgh1' } },
        socket: { url: 'unix:///tmp/x.sock' },
        gh: { url: 'https://x.test/mcp', headersHelper: './token.sh' },
        off: { command: 'y', disabled: true, headersHelper: './token.sh' },
      },
    }),
  )
  const adapted = await cli.here('adapt', cli.path(CURSOR))
  expect(adapted.stdout).not.toContain('unix:')
  expect(adapted.errors).toEqual([
    expect.stringMatching(/mcp\.json:1:\d+ servers\.line\.command: "npx -y some-server" contains arguments; write command: npx,/),
    expect.stringMatching(/mcp\.json:1:\d+ servers\.socket\.url: expected a URL/),
    expect.stringMatching(/mcp\.json:1:\d+ mcpServers\.gh\.headersHelper: not honoured; it runs a program/),
  ])
  const { code, stdout, stderr } = await cli.here('connect', 'cursor', '--move', '--yes')
  expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('    gh moved behind Trunkline') as string })
  expect(stderr).toMatch(/✗ Cursor: .*servers\.line\.command: "npx -y some-server" contains arguments/)
  expect(stderr).toMatch(/▲ Cursor: .*mcpServers\.gh\.headersHelper: not honoured/)
  expect(readFileSync(cli.path(CURSOR), 'utf8')).toMatch(/some-server.*unix:/s)
  expect((await cli.here('check')).code).toBe(0)
  expect(readFileSync(cli.path('trunkline.yaml'), 'utf8')).toContain('  gh-2:\n')
  expect(existsSync(cli.path('.env'))).toBe(false)
})

test('an empty configuration is taken by every command, and stays empty when it is formatted', async () => {
  await using cli = await commandLine({ 'trunkline.yaml': '' })
  expect(await cli.here('check')).toMatchObject({ code: 0, stdout: expect.stringContaining('ok, 0 servers') as string })
  expect(await cli.here('fmt', '--check')).toMatchObject({ code: 0, stdout: 'nothing to change\n' })
  expect((await cli.here('fmt', '--write')).code).toBe(0)
  expect(readFileSync(cli.path('trunkline.yaml'), 'utf8')).toBe('')
  expect((await cli.here('add', 'a', '--', 'cat')).code).toBe(0)
  expect(readFileSync(cli.path('trunkline.yaml'), 'utf8')).toContain('command: cat')
})
