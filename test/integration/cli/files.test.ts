/** Commands about files and shells: `fmt`, `adapt`, `completion`, `check --strict`. */
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { lstatSync, readFileSync, statSync } from 'node:fs'
import { chmod, symlink, writeFile } from 'node:fs/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { parse } from 'yaml'
import { commandLine } from '../../support/cli.ts'
import { describeWith } from '../../support/programs.ts'

describe('fmt', () => {
  const UGLY =
    '# head\nversion:   1\nservers:\n    b: {command: "x",args: [ a,b ]} # why\n\n    a:\n        url: https://x.test/mcp\n'
  const FORM = '# head\nversion: 1\nservers:\n  b: { command: "x", args: [ a, b ] } # why\n\n  a:\n    url: https://x.test/mcp\n'

  test('prints the form, writes it only for --write, and keeps comments, order and mode', async () => {
    await using cli = await commandLine({ 'trunkline.yaml': UGLY })
    await chmod(cli.path('trunkline.yaml'), 0o640)
    expect(await cli.here('fmt')).toMatchObject({ code: 0, stdout: FORM })
    expect(await cli.here('fmt', '--check')).toMatchObject({ code: 6, stdout: `differs ${cli.path('trunkline.yaml')}\n` })
    expect(readFileSync(cli.path('trunkline.yaml'), 'utf8')).toBe(UGLY)
    expect((await cli.here('fmt', '--check', '-c', 'trunkline.yaml')).stderr).toBe(
      'not formatted: trunkline.yaml; format it with trunkline fmt --write -c trunkline.yaml\n',
    )
    expect(await cli.here('fmt', '--write')).toMatchObject({ code: 0, stdout: `wrote ${cli.path('trunkline.yaml')}\n` })
    expect(readFileSync(cli.path('trunkline.yaml'), 'utf8')).toBe(FORM)
    expect(statSync(cli.path('trunkline.yaml')).mode & 0o777).toBe(0o640)
    expect(await cli.here('fmt', '--check', '--json')).toMatchObject({ code: 0, stdout: '{"changed":[]}\n' })
  })

  test('line ends stay as they are', async () => {
    await using cli = await commandLine({ 'trunkline.yaml': FORM.replaceAll('\n', '\r\n') })
    expect(await cli.here('fmt', '--check')).toMatchObject({ code: 0, stdout: 'nothing to change\n' })
    await cli.write('trunkline.yaml', UGLY.replaceAll('\n', '\r\n'))
    expect((await cli.here('fmt')).stdout).toBe(FORM.replaceAll('\n', '\r\n'))
  })

  test('what is not YAML is an error with its place, and the file stays', async () => {
    await using cli = await commandLine({ 'trunkline.yaml': 'servers: { a: [ }\n', 'x.json': '{}' })
    expect(await cli.here('fmt', '--write')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/trunkline\.yaml:1:\d+/) as string,
    })
    expect(readFileSync(cli.path('trunkline.yaml'), 'utf8')).toBe('servers: { a: [ }\n')
    expect((await cli.here('fmt', '-c', 'x.json')).stderr).toContain('is not YAML')
    expect((await cli.here('fmt', '--check', '--write')).stderr).toContain('exclude each other')
    expect((await cli.here('fmt', '-c', 'none.yaml')).stderr).toContain('cannot be read (ENOENT)')
  })
})

describe('fmt and files', () => {
  const UGLY = 'servers:\n    a: { command: x }\n'

  test('that are links stay links', async () => {
    await using cli = await commandLine({ 'real.yaml': UGLY })
    await symlink('real.yaml', cli.path('trunkline.yaml'))
    expect(await cli.here('fmt', '--write')).toMatchObject({ code: 0 })
    expect(lstatSync(cli.path('trunkline.yaml')).isSymbolicLink()).toBe(true)
    expect(readFileSync(cli.path('real.yaml'), 'utf8')).toBe('servers:\n  a: { command: x }\n')
  })

  test('that are read-only, or not UTF-8, are an error and stay', async () => {
    await using cli = await commandLine({ 'trunkline.yaml': UGLY })
    await chmod(cli.path('trunkline.yaml'), 0o400)
    const file = cli.path('trunkline.yaml')
    const readOnly = `${file} is read-only; make it writable, or change the source that it is generated from\n`
    expect(await cli.here('fmt', '--write')).toEqual(expect.objectContaining({ code: 2, stderr: readOnly }))
    await chmod(file, 0o600)
    const latin = Buffer.from(`${UGLY}# caf\u00e9\n`, 'latin1')
    await writeFile(file, latin)
    expect(await cli.here('fmt')).toMatchObject({ code: 2, stdout: '', stderr: `${file} is not UTF-8; it is not changed\n` })
    expect((await cli.here('fmt', '--write')).code).toBe(2)
    expect(readFileSync(file)).toEqual(latin)
  })

  test('with hundreds of aliases are formatted and changed like others', async () => {
    const servers = Array.from({ length: 200 }, (_, at) => `  s${at}: { command: x, args: *a }\n`).join('')
    const text = `servers:\n  a: { command: x, args: &a [ b ] }\n${servers}`
    await using cli = await commandLine({ 'trunkline.yaml': text })
    expect(await cli.here('fmt')).toMatchObject({ code: 0, stdout: text })
    expect((await cli.here('add', 'new', '--', 'y')).stderr).toBe('')
    expect(readFileSync(cli.path('trunkline.yaml'), 'utf8')).toBe(`${text}  new:\n    command: y\n`)
  })
})

describe('adapt', () => {
  test('a file that -c serves is adapted, in whichever syntax: mcp.servers in YAML, as mcp-agent writes it', async () => {
    const text =
      'execution_engine: asyncio\nmcp:\n  servers:\n    a: { command: uvx, args: [x] }\n    b: { transport: sse, url: "https://x.test/sse" }\n'
    await using cli = await commandLine({ 'mcp_agent.config.yaml': text })
    const { code, stdout } = await cli.here('adapt', 'mcp_agent.config.yaml')
    expect(code).toBe(0)
    expect(parse(stdout)).toEqual({
      version: 1,
      servers: { a: { command: 'uvx', args: ['x'] }, b: { url: 'https://x.test/sse', transport: 'sse' } },
    })
  })

  const FILES: Readonly<Record<string, string>> = {
    '.mcp.json': '{"mcpServers":{"My Git":{"command":"npx","args":["-y","git"],"env":{"API_KEY":"sk-1234567890"}}}}',
    'mcp.json': '{ // VS Code\n "servers": {"My Git":{"command":"npx","args":["-y","git"],"env":{"API_KEY":"sk-1234567890"}}}}',
    'config.toml': '[mcp_servers."My Git"]\ncommand = "npx"\nargs = ["-y", "git"]\nenv = { API_KEY = "sk-1234567890" }\n',
    'other-name.json': '{"mcpServers":{"My Git":{"command":"npx","args":["-y","git"],"env":{"API_KEY":"sk-1234567890"}}}}',
  }

  test.each(Object.keys(FILES))('%s becomes YAML that check takes; nothing is written, no secret is printed', async (name) => {
    await using cli = await commandLine({ [name]: FILES[name] ?? '' })
    const { code, stdout, stderr } = await cli.here('adapt', name)
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('write into .env: API_KEY') as string })
    expect(stdout).toContain('  my-git:\n    command: npx')
    expect(stdout).toContain('API_KEY: ${API_KEY}')
    expect(stdout + stderr).not.toContain('sk-1234567890')
    await cli.write('trunkline.yaml', stdout)
    await cli.write('.env', 'API_KEY=x\n')
    expect((await cli.here('check')).code).toBe(0)
    expect(JSON.parse((await cli.here('adapt', name, '--json')).stdout)).toMatchObject({ variables: ['API_KEY'] })
  })

  test('--write keeps them as import does: secrets in .env, comments of an existing file where they were', async () => {
    const ours = '# mine\nversion: 1\nservers:\n  a: { command: x } # keep\n'
    await using cli = await commandLine({ 'other.json': FILES['.mcp.json'] ?? '', 'trunkline.yaml': ours })
    const shown = await cli.here('adapt', 'other.json', '--write', '--dry-run')
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining('would write trunkline.yaml') as string })
    expect(readFileSync(cli.path('trunkline.yaml'), 'utf8')).toBe(ours)
    expect((await cli.here('adapt', 'other.json', '--write')).code).toBe(0)
    const text = readFileSync(cli.path('trunkline.yaml'), 'utf8')
    expect(text).toContain('  a: { command: x } # keep\n  my-git:\n    command: npx')
    expect(text).not.toContain('sk-1234567890')
    expect(readFileSync(cli.path('.env'), 'utf8')).toBe('API_KEY=sk-1234567890\n')
    expect((await cli.here('check')).code).toBe(0)
  })

  test('what is printed into a file has every character of the values', async () => {
    const args = ['a\tb', 'c\u200bd', 'e\u202ef']
    await using cli = await commandLine({ 'a.json': JSON.stringify({ mcpServers: { a: { command: 'x', args } } }) })
    expect(parse((await cli.here('adapt', 'a.json')).stdout)).toMatchObject({ servers: { a: { args } } })
    const text = 'servers:\n  a:\n    command: x\n    args:\n      - |\n        c\u200bd\te\n'
    await cli.write('trunkline.yaml', text)
    expect(parse((await cli.here('fmt')).stdout)).toEqual(parse(text))
  })

  test('a file of which nothing can be used is an error, also for machines', async () => {
    await using cli = await commandLine({ 'a.json': '{"mcpServers":{"a":{"command":"npx -y x"}}}' })
    const { code, errors } = await cli.here('adapt', 'a.json', '--json')
    const message = 'no server of a.json can be used; see the reasons above'
    expect([code, JSON.parse(errors.at(-1) ?? '')]).toEqual([2, { error: { exitCode: 2, message } }])
    const saved = await cli.here('adapt', 'a.json', '--write', '--json')
    expect([saved.code, JSON.parse(saved.errors.at(-1) ?? '')]).toEqual([
      2,
      { error: { exitCode: 2, message: 'nothing can be imported; see the reasons above' } },
    ])
    expect(JSON.parse(saved.stdout)).toMatchObject({ written: false, problems: [expect.any(String)] })
  })

  test('what holds no servers, is no JSON or is not there is told', async () => {
    await using cli = await commandLine({ 'a.json': '{"x":1}', 'b.json': '{' })
    expect((await cli.here('adapt', 'a.json')).stderr).toContain('contains no servers')
    expect(await cli.here('adapt', 'b.json')).toMatchObject({ code: 2, stderr: expect.stringContaining('b.json') as string })
    expect((await cli.here('adapt', 'none.json')).stderr).toContain('cannot be read (ENOENT)')
  })
})

describe('adapt of files of other gateways', () => {
  const FILES: Readonly<Record<string, string>> = {
    'mcp-hub':
      '{"mcpServers":{"files":{"command":"npx","args":["-y","files"],"disabled":true,"disabled_tools":["rm"]},"web":{"url":"https://x.test/mcp","headers":{"Authorization":"Bearer ${env:TOK}"}}}}',
    metamcp:
      '{"mcpServers":{"files":{"type":"STDIO","command":"npx","args":["-y","files"],"env":{}},"web":{"type":"STREAMABLE_HTTP","url":"https://x.test/mcp","bearerToken":"t0k3n-of-a-server"},"old":{"type":"SSE","url":"https://x.test/sse"}}}',
    '1mcp':
      '{"mcpServers":{"files":{"command":"npx","args":["-y","files"],"tags":["fs"],"disabled":false},"web":{"type":"http","url":"https://x.test/mcp"}}}',
    'mcp-proxy':
      '{"mcpProxy":{"addr":":9090"},"mcpServers":{"files":{"command":"npx","args":["-y","files"],"options":{"toolFilter":{"mode":"block","list":["rm"]}}},"web":{"url":"https://x.test/mcp","transportType":"streamable-http"}}}',
    fastmcp:
      '{"mcpServers":{"files":{"command":"npx","args":["-y","files"],"cwd":"/x"},"web":{"url":"https://x.test/mcp","transport":"http","auth":"oauth"}}}',
  }
  test.each(Object.keys(FILES))('%s keeps its servers', async (name) => {
    await using cli = await commandLine({ [`${name}.json`]: FILES[name] ?? '' })
    const { code, stdout } = await cli.here('adapt', `${name}.json`, '--json')
    expect(code).toBe(0)
    const { servers } = JSON.parse(stdout) as { servers: Record<string, { command?: string; url?: string }> }
    expect(servers['files']).toMatchObject({ command: 'npx', args: ['-y', 'files'] })
    expect(servers['web']).toMatchObject({ url: 'https://x.test/mcp' })
    if (name === 'mcp-hub') expect(servers['files']).toMatchObject({ enabled: false, filter: { deny: ['rm'] } })
    if (name === 'mcp-proxy') expect(servers['files']).toMatchObject({ filter: { deny: ['rm'] } })
    if (name === '1mcp') expect(servers['files']).toMatchObject({ tags: ['fs'] })
    if (name === 'metamcp') {
      expect(servers['web']).toMatchObject({ headers: { Authorization: expect.stringMatching(/^Bearer \$\{\w+\}$/) as string } })
      expect(stdout).not.toContain('t0k3n')
    }
    if (name === 'metamcp') expect(servers['old']).toMatchObject({ url: 'https://x.test/sse', transport: 'sse' })
  })
})

test('a device or a pipe, which may never end, is not read by adapt and --from', async () => {
  await using cli = await commandLine()
  const refusal = { code: 2, stderr: '/dev/null is not a file; remove it or name another\n' }
  expect(await cli.here('adapt', '/dev/null')).toMatchObject(refusal)
  expect(await cli.here('up', '--from', '/dev/null')).toMatchObject(refusal)
})

describeWith(['bash'], 'completion in bash', () => {
  test('commands and the options of each are completed, also behind options with values', async () => {
    await using cli = await commandLine()
    await writeFile(cli.path('completion.bash'), (await cli.here('completion', 'bash')).stdout)
    const complete = (...words: string[]): string[] =>
      execFileSync('bash', [
        '-c',
        `source ${cli.path('completion.bash')}; COMP_WORDS=(trunkline ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _trunkline; printf '%s\\n' "\${COMPREPLY[@]}"`,
      ])
        .toString()
        .trimEnd()
        .split('\n')
    expect(complete('res')).toEqual(['restart'])
    expect(complete('valid')).toEqual(['validate'])
    expect(complete('token', 'n')).toEqual(['new'])
    expect(complete('token', '--exp')).toEqual(['--expires'])
    expect(complete('logs', '--fol')).toEqual(['--follow'])
    expect(complete('-c', 'a.yaml', 'che')).toEqual(['check'])
    expect(complete('-c', 'a.yaml', 'check', '--str')).toEqual(['--strict'])
    expect(complete('check', '-c', '')).toEqual([''])
    expect(complete('logs', '--since', '')).toEqual([''])
    expect(complete('tail', '--since', '--err')).toEqual(['--errors'])
  })
})

describeWith(['bash', 'zsh', 'tmux'], 'completion at the prompt', () => {
  test.each([
    { shell: 'bash', start: 'bash --norc --noprofile -i', load: 'source ./script' },
    { shell: 'zsh', start: 'zsh -f -i', load: 'autoload -Uz compinit; compinit -u -D; source ./script' },
  ])(
    '$shell completes the path of a file with a blank, also behind =, and a command behind -c FILE',
    async ({ shell, start, load }) => {
      await using cli = await commandLine({ 'my file.yaml': '' })
      await writeFile(cli.path('script'), (await cli.here('completion', shell)).stdout)
      const name = `trunkline-${randomUUID()}`
      const tmux = (...args: readonly string[]): string =>
        execFileSync('tmux', ['-f', '/dev/null', '-L', name, ...args], { env: { ...cli.env, TERM: 'xterm-256color' } }).toString()
      tmux('new-session', '-d', '-x', '120', '-y', '24', `cd ${cli.folder}; PS1='> ' PROMPT='> ' ${start}`)
      onTestFinished(() => void tmux('kill-server'))
      const shown = (text: string): Promise<true> =>
        vi.waitUntil(() => tmux('capture-pane', '-p').includes(text), { timeout: 20_000, interval: 50 })
      const type = (text: string): void => void tmux('send-keys', '-l', text)
      type(`${load}; echo lo''aded\n`)
      await shown('loaded')
      type('trunkline check -c my\t--str\t')
      await shown('trunkline check -c my\\ file.yaml --strict')
      type('\u0015trunkline check --config=my\t')
      await shown('trunkline check --config=my\\ file.yaml')
      type('\u0015trunkline -c x.yaml valid\t')
      await shown('trunkline -c x.yaml validate')
    },
  )
})

describe('completion', () => {
  test('every shell has a script, and any other word is refused with their names', async () => {
    await using cli = await commandLine()
    for (const shell of ['bash', 'zsh', 'fish', 'powershell'])
      expect((await cli.here('completion', shell)).stdout, shell).toContain('doctor')
    expect(await cli.here('completion', 'csh')).toMatchObject({
      code: 1,
      stderr: 'no script for "csh"; there are: bash, zsh, fish, powershell\n',
    })
  })
})

describeWith(['zsh', 'fish'], 'completion in other shells', () => {
  test('zsh and fish load their scripts; fish completes', async () => {
    await using cli = await commandLine()
    for (const shell of ['zsh', 'fish']) await writeFile(cli.path(shell), (await cli.here('completion', shell)).stdout)
    execFileSync('zsh', [
      '-f',
      '-c',
      `autoload -Uz compinit; compinit -u -D; source ${cli.path('zsh')}; [[ -n $_comps[trunkline] ]]`,
    ])
    const completed = (line: string): string =>
      execFileSync('fish', ['-c', `source ${cli.path('fish')}; complete -C '${line}'`], {
        env: { ...process.env, HOME: cli.folder, XDG_CONFIG_HOME: cli.folder },
      }).toString()
    expect(completed('trunkline logs --fol')).toMatch(/^--follow/)
    expect(completed('trunkline token n')).toMatch(/^new/)
    expect(completed('trunkline -c x.yaml valid')).toMatch(/^validate/)
  })
})

test('check --strict makes an error of a warning', async () => {
  await using cli = await commandLine({
    'trunkline.yaml': 'servers:\n  a: { command: x }\nlisten: { http: { bind: 127.0.0.1:0 } }\n',
  })
  expect((await cli.here('check', '--strict')).code).toBe(0)
  await cli.write('host.json', '{"mcpServers":{"My Server":{"command":"x"}}}')
  expect((await cli.here('check', '-c', 'host.json')).code).toBe(0)
  expect(await cli.here('check', '--strict', '-c', 'host.json')).toMatchObject({
    code: 6,
    stderr: expect.stringContaining('--strict allows none') as string,
  })
})
