/** The commands that read and write files of hosts, as a person types them. */
import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { chmod, chown, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { deflateRawSync } from 'node:zlib'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { commandLine } from '../../support/cli.ts'
import type { Cli } from '../../support/cli.ts'
import { listening } from '../../support/listening.ts'

const CURSOR = 'home/.cursor/mcp.json'

const laid = async (files: Readonly<Record<string, string>>): Promise<Cli> => {
  const cli = await commandLine()
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(cli.path(name)), { recursive: true })
    await writeFile(cli.path(name), text)
  }
  return cli
}
const read = (cli: Cli, name: string): string => readFileSync(cli.path(name), 'utf8')
const mcpServers = (servers: object): string => `${JSON.stringify({ mcpServers: servers }, null, 2)}\n`

describe('init and import', () => {
  test('one server of two hosts becomes one entry, its secret goes to .env, which its owner alone can read', async () => {
    await using cli = await laid({
      [CURSOR]: mcpServers({ GitHub: { url: 'https://x.test/mcp', headers: { Authorization: 'Bearer abcdefgh1' } } }),
      'home/.codex/config.toml': '[mcp_servers.gh]\nurl = "https://x.test/mcp/"\ndisabled_tools = ["rm"]\n',
    })
    const { code, stdout } = await cli.here('init')
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/github .* Cursor, Codex/) as string })
    expect(read(cli, 'trunkline.yaml')).toContain('Authorization: Bearer ${GITHUB_TOKEN}')
    expect(read(cli, 'trunkline.yaml').match(/url:/g)).toHaveLength(1)
    expect(read(cli, 'trunkline.yaml')).toMatch(/deny:\n\s+- rm/)
    expect(stdout + read(cli, 'trunkline.yaml')).not.toContain('abcdefgh1')
    expect(read(cli, '.env')).toBe('GITHUB_TOKEN=abcdefgh1\n')
    expect(statSync(cli.path('.env')).mode & 0o777).toBe(0o600)
    expect((await cli.here('check')).code).toBe(0)
    expect((await cli.here('import')).stdout).toContain('already')
  })

  test('an existing file keeps its comments, and nothing is written for --dry-run', async () => {
    const ours = '# mine\nversion: 1\nservers:\n  a: { command: x } # keep\n# the end\n'
    await using cli = await laid({ 'trunkline.yaml': ours, [CURSOR]: mcpServers({ b: { command: 'y' } }) })
    await cli.here('import', '--dry-run')
    expect(read(cli, 'trunkline.yaml')).toBe(ours)
    await cli.here('import', 'cursor')
    expect(read(cli, 'trunkline.yaml')).toBe(
      '# mine\nversion: 1\nservers:\n  a: { command: x } # keep\n  b:\n    command: y\n# the end\n',
    )
  })

  test('a file in a form that cannot be changed is an error without a stack, for --dry-run and for add', async () => {
    const server = JSON.stringify({ name: 'io.test/x', remotes: [{ type: 'streamable-http', url: 'https://x.test/mcp' }] })
    await using cli = await laid({
      'trunkline.yaml': 'servers: []\n',
      'server.json': server,
      [CURSOR]: mcpServers({ b: { command: 'y' } }),
    })
    const refusal = `${cli.path('trunkline.yaml')} is written in a form that cannot be changed without damage; it is left unchanged\n`
    for (const words of [['import', '--dry-run'], ['import'], ['add', './server.json']])
      expect(await cli.here(...words)).toMatchObject({ code: 2, stderr: refusal })
  })

  test('init writes a file to this folder where a configuration exists elsewhere; import writes to that one', async () => {
    const ours = 'version: 1\nservers:\n  a: { command: x }\n'
    const user = 'home/.config/trunkline/trunkline.yaml'
    await using cli = await laid({ [user]: ours, [CURSOR]: mcpServers({ b: { command: 'y' } }) })
    expect((await cli.here('init')).code).toBe(0)
    expect(read(cli, 'trunkline.yaml')).toContain('command: y')
    expect(read(cli, user)).toBe(ours)
    await rm(cli.path('trunkline.yaml'))
    expect((await cli.here('import')).code).toBe(0)
    expect(read(cli, user)).toContain('command: y')
    expect(existsSync(cli.path('trunkline.yaml'))).toBe(false)
  })

  test('a file with megabytes of other things, as Claude Code has, is read like a small one', async () => {
    await using cli = await laid({})
    const history = Array.from({ length: 300 }, (_, at) => ({ display: `${at} ${'x'.repeat(300)}`, pastedContents: {} }))
    const project = (servers: object) => ({ history, mcpServers: servers, disabledMcpServers: ['off'] })
    const others = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`/other/${at}`, project({ not: { command: 'x' } })]))
    const projects = { ...others, [cli.folder]: project({ here: { command: 'y' }, half: {} }) }
    const content = { cached: history, projects, mcpServers: { a: { command: 'z' }, off: { command: 'z', args: ['2'] } } }
    for (const space of [undefined, 2]) {
      const text = JSON.stringify(content, undefined, space)
      expect(text.length).toBeGreaterThan(4 * 1024 * 1024)
      await writeFile(cli.path('home/.claude.json'), text)
      const { stdout } = await cli.here('import', '--dry-run', '--json')
      const found = JSON.parse(stdout) as { servers: { key: string; entry: { enabled?: boolean } }[]; problems: string[] }
      expect(found.servers.map(({ key, entry }) => [key, entry.enabled])).toEqual([
        ['here', undefined],
        ['a', undefined],
        ['off', false],
      ])
      const line = text.slice(0, text.indexOf('"half"')).split('\n')
      expect(found.problems).toEqual([
        expect.stringContaining(`.claude.json:${line.length}:${space === undefined ? '' : `${line.at(-1)!.length + 1}`}`),
      ])
    }
  })

  test('import writes to the file that -c names, and not to the one in the folder', async () => {
    const ours = 'version: 1\nservers:\n  a: { command: x }\n'
    await using cli = await laid({ 'trunkline.yaml': ours, [CURSOR]: mcpServers({ b: { command: 'y' } }) })
    expect((await cli.here('import', '-c', 'other.yaml')).code).toBe(0)
    expect(read(cli, 'other.yaml')).toContain('command: y')
    expect(read(cli, 'trunkline.yaml')).toBe(ours)
  })

  test.each([
    ['add', 'b', 'https://x.test/mcp', '-H', 'Authorization: Bearer abcdefgh1'],
    ['remove', 'a'],
    ['import', 'cursor'],
    ['connect', 'cursor', '--move'],
    ['adapt', 'other.json', '--write'],
  ])('%s writes nothing into a file of a host that -c names, where it would not be read', async (...words) => {
    const files = {
      '.mcp.json': mcpServers({ a: { command: 'x' } }),
      [CURSOR]: mcpServers({ c: { command: 'y' } }),
      'other.json': mcpServers({ d: { command: 'z' } }),
    }
    await using cli = await laid(files)
    const { code, stderr } = await cli.here(...words, '-c', '.mcp.json')
    expect({ code, stderr }).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        `${cli.path('.mcp.json')} is a file of a host: change its servers there, or name with -c a trunkline.yaml that includes it (include: [{ mcpServers: .mcp.json }])\n`,
      ) as string,
    })
    for (const [name, text] of Object.entries(files)) expect(read(cli, name)).toBe(text)
    expect(existsSync(cli.path('.env'))).toBe(false)
  })

  test('a word that is no host is a usage error that names the nearest', async () => {
    await using cli = await laid({})
    const { code, stderr } = await cli.here('import', 'cursr')
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('did you mean "cursor"?') as string })
  })
})

describe('add and remove', () => {
  test('by command, by URL with a header, and removed again: the text is what it was', async () => {
    await using cli = await laid({ 'trunkline.yaml': 'version: 1\nservers:\n  # first\n  a: { command: x }\n' })
    const before = read(cli, 'trunkline.yaml')
    expect((await cli.here('add', 'files', '-e', 'API_KEY=k123456', '--', 'npx', '-y', 'files', '/tmp')).code).toBe(0)
    expect((await cli.here('add', '-t', 'sse', 'web', 'https://x.test/sse', '-H', 'X-Token: t12345678')).code).toBe(0)
    expect(read(cli, 'trunkline.yaml')).toContain('API_KEY: ${API_KEY}')
    expect(read(cli, 'trunkline.yaml')).toContain('X-Token: ${WEB_TOKEN}')
    expect(read(cli, '.env')).toBe('API_KEY=k123456\nWEB_TOKEN=t12345678\n')
    expect((await cli.here('check')).code).toBe(0)
    await cli.here('remove', 'web')
    await cli.here('remove', 'files')
    expect(read(cli, 'trunkline.yaml')).toBe(`${before}env_file:\n  - .env\n`)
    const { code, stderr } = await cli.here('remove', 'b')
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('no server "b"') as string })
  })

  test('a variable that docker takes from its environment is in the entry, and asked for in .env', async () => {
    await using cli = await laid({})
    const { code, stdout } = await cli.here(
      'add',
      'pg',
      '-e',
      'MODE=ro',
      '--',
      'docker',
      'run',
      '--rm',
      '-e',
      'PG_URI',
      '-e',
      'MODE',
      'image',
    )
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('PG_URI is not set') as string })
    expect(read(cli, 'trunkline.yaml')).toContain('env:\n      PG_URI: ${PG_URI}\n      MODE: ro\n')
    expect(read(cli, '.env')).toBe('PG_URI=\n')
  })

  test.each([
    [['a', 'https://x.test/mcp', '-e', 'A=b'], 'servers.a.env: "env" without command has no effect; remove it'],
    [['a', '-t', 'sse', '--', 'x'], 'servers.a.transport: "transport" without url has no effect; remove it, or give the url'],
    [['a', '--prefix', 'B!', '--', 'x'], 'servers.a.prefix: expected a prefix such as gh'],
    [['a', 'https://x.test/mcp', '-H', 'X y: 1'], 'servers.a.headers."X y": "X y" is not a header name'],
    [['a', '--', 'npx -y b'], 'servers.a.command: "npx -y b" contains arguments; write command: npx, args: ["-y", "b"]'],
  ])('what the configuration would refuse is not written: add %j', async (words, reason) => {
    await using cli = await laid({ 'trunkline.yaml': 'servers: {}\n' })
    const { code, stderr } = await cli.here('add', ...words)
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining(`nothing was added: ${reason}`) as string })
    expect(read(cli, 'trunkline.yaml')).toBe('servers: {}\n')
  })

  test.each([
    [['gh', '--', 'x'], '"gh" is already the key or prefix of server "github"; choose another with --prefix'],
    [['gh', '--prefix', 'hub', '--', 'x'], '"gh" is the prefix of server "github"; choose another name'],
    [['a', '--prefix', 'gh', '--', 'x'], '"gh" is already the key or prefix of server "github"'],
    [['a', '--prefix', 'github', '--', 'x'], '"github" is already the key or prefix of server "github"'],
    [['a', '--prefix', 'ui', '--', 'x'], 'prefix "ui" is reserved; choose another with --prefix'],
  ])('a prefix that is taken is refused: add %j', async (words, reason) => {
    const text = 'servers:\n  github: { command: y, prefix: gh }\n  old: { command: z, prefix: free, enabled: false }\n'
    await using cli = await laid({ 'trunkline.yaml': text })
    const { code, stderr } = await cli.here('add', ...words)
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining(`nothing was added: ${reason}`) as string })
    expect(read(cli, 'trunkline.yaml')).toBe(text)
    expect((await cli.here('add', 'free', '--', 'x')).code).toBe(0)
  })

  test('a URL of another kind is not taken for a command', async () => {
    await using cli = await laid({ 'trunkline.yaml': 'version: 1\n' })
    for (const url of ['ftp://x.test/mcp', 'wss://x.test'])
      expect(await cli.here('add', 'web', url)).toMatchObject({
        code: 1,
        stderr: `"${url}" is not a URL of a server: expected http:// or https://, got ${url.replace(/:.*/, '')}://\n`,
      })
    expect(read(cli, 'trunkline.yaml')).toBe('version: 1\n')
  })

  test.each(['~', 'null', '{}', ''])('servers: %s has a server added', async (written) => {
    await using cli = await laid({ 'trunkline.yaml': `servers: ${written} # mine\nversion: 1\n` })
    expect(await cli.here('add', 'a', '--', 'x')).toMatchObject({ code: 0 })
    expect(read(cli, 'trunkline.yaml')).toMatch(/^servers: *# mine\n {2}a:\n {4}command: x\nversion: 1\n$/)
  })

  test('a URL whose name is reserved, or the prefix of a server, gets another key', async () => {
    await using cli = await laid({ 'trunkline.yaml': 'servers:\n  github: { command: y, prefix: gh }\n' })
    for (const url of ['https://gateway.x.test/mcp', 'https://gh.x.test/mcp']) expect((await cli.here('add', url)).code).toBe(0)
    const { stdout } = await cli.here('check', '--json')
    expect(JSON.parse(stdout)).toMatchObject({ servers: ['github', 'gateway-2', 'gh-2'] })
  })

  test('texts with variables are taken as they are', async () => {
    await using cli = await laid({ 'trunkline.yaml': 'servers: {}\n' })
    expect((await cli.here('add', 'a', 'https://${TENANT}.x.test/mcp', '-H', 'X-A: ${A}')).code).toBe(0)
    expect(read(cli, 'trunkline.yaml')).toContain('https://${TENANT}.x.test/mcp')
  })

  test('the same name twice, a name that is no key, and a word that is nothing are refused', async () => {
    await using cli = await laid({ 'trunkline.yaml': 'servers: { a: { command: x } }\n' })
    expect((await cli.here('add', 'a', '--', 'other')).stderr).toContain('has a server "a"')
    expect((await cli.here('add', 'My Server', '--', 'x')).stderr).toContain('call it "my-server"')
    expect((await cli.here('add', '--', 'npx', '-y', 'x')).stderr).toBe(
      'the name of the server is missing: trunkline add NAME -- npx -y x\n',
    )
    expect((await cli.here('add', 'nothing')).stderr).toContain('unclear what "nothing" is')
    expect((await cli.here('add', './none.json')).stderr).toContain('there is no file')
    expect(read(cli, 'trunkline.yaml')).toBe('servers: { a: { command: x } }\n')
  })

  test.each([
    [['npx', '-y', '@a/b'], 'the name of the server is missing: trunkline add NAME -- npx -y @a/b'],
    [['uvx', 'mcp-server-git'], 'the name of the server is missing: trunkline add NAME -- uvx mcp-server-git'],
    [['/usr/bin/npx', '-y', '@a/b'], 'the name of the server is missing: trunkline add NAME -- /usr/bin/npx -y @a/b'],
    [['npx.cmd', '-y', '@a/b'], 'the name of the server is missing: trunkline add NAME -- npx.cmd -y @a/b'],
    [['python3.12', 'server.py'], 'the name of the server is missing: trunkline add NAME -- python3.12 server.py'],
    [['npx -y @a/b'], 'the name of the server is missing: trunkline add NAME -- npx -y @a/b'],
    [['b', 'npx', '-y', '@a/b'], 'unclear whether "-y" is an option of the command: trunkline add b -- npx -y @a/b'],
    [['b', 'npx', '@a/b', '-e', 'K=1'], 'unclear whether "-e" is an option of the command: trunkline add b -- npx @a/b -e K=1'],
    [['b', 'npx', '@a/b', '--headless'], '(options of the command go behind --: trunkline add NAME -- COMMAND; '],
    [['b', '-e', 'K=1', 'L=2', '--', 'x'], '"L=2" is no command; each variable has its own -e'],
    [['b', 'localhost:80/mcp'], '"localhost:80/mcp" is not a URL of a server: expected http:// or https://'],
    [['127.0.0.1:80/mcp'], '"127.0.0.1:80/mcp" is not a URL of a server: expected http:// or https://'],
    [['b', '{"command":"x"}'], 'JSON is read from a file: save it, then trunkline adapt FILE --write'],
    [['{"mcpServers":{}}'], 'JSON is read from a file: save it, then trunkline adapt FILE --write'],
    [['@a/b'], '"@a/b" is a package of npm: trunkline add NAME -- npx -y @a/b'],
    [['npm:@a/b'], '"npm:@a/b" is a package of npm: trunkline add NAME -- npx -y @a/b'],
  ])('a spelling that would give a wrong entry is refused with the right one: add %j', async (words, reason) => {
    await using cli = await laid({ 'trunkline.yaml': 'servers: {}\n' })
    const { code, stderr } = await cli.here('add', ...words)
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining(reason) as string })
    expect(read(cli, 'trunkline.yaml')).toBe('servers: {}\n')
  })

  test('a command without -- and without options is taken, and options of add before it', async () => {
    await using cli = await laid({ 'trunkline.yaml': 'servers: {}\n' })
    expect((await cli.here('add', 'a', 'npx', 'x')).code).toBe(0)
    expect((await cli.here('add', '-e', 'K=1', 'b', '--force', 'npx', 'y', './z')).code).toBe(0)
    expect(read(cli, 'trunkline.yaml')).toContain('args:\n      - y\n      - ./z\n    env:\n      K: "1"\n')
  })

  test('a key that an included file has, or another file of -c, is taken: nothing that makes two definitions is written', async () => {
    const ran = 'secret-was-read'
    await using cli = await commandLine({
      'trunkline.yaml': `include: [more.yaml, hosts.json]\nsecrets:\n  s: { exec: [touch, ${ran}] }\nservers:\n  a: { command: x }\n`,
      'more.yaml': 'servers:\n  b: { command: y, prefix: bee, env: { S: "${secret:s}" } }\n',
      'hosts.json': '{"mcpServers":{"c":{"command":"z"}}}',
      'other.yaml': 'servers:\n  d: { command: w }\n',
    })
    const refusals = [
      [
        ['add', 'b', '--', 'new'],
        'server "b" is defined at more.yaml:2:3, which belongs to this configuration; choose another name',
      ],
      [['add', 'b', '--force', '--', 'new'], 'server "b" is defined at more.yaml:2:3'],
      [['add', 'c', '--', 'new'], 'server "c" is defined at hosts.json:1:16'],
      [['add', 'bee', '--', 'new'], '"bee" is already the key or prefix of server "b"'],
      [['add', 'n', '--', 'y'], 'already has this server as "b"'],
      [['add', '-c', 'trunkline.yaml', '-c', 'other.yaml', 'd', '--', 'new'], 'server "d" is defined at other.yaml:2:3'],
      [['remove', 'b'], 'server "b" is defined at more.yaml:2:3: remove it there'],
    ] as const
    for (const [words, message] of refusals) {
      const { code, stderr } = await cli.here(...words)
      expect(stderr).toContain(message)
      expect(code).not.toBe(0)
    }
    // A name that was not typed becomes another one.
    expect((await cli.here('add', 'https://b.x.test/mcp', '--force')).stdout).toContain('added b-2 to')
    await cli.write('.mcp.json', '{"mcpServers":{"c":{"command":"another"},"z":{"command":"z"}}}')
    const { stdout } = await cli.here('import', 'claude-code')
    expect(stdout).toMatch(/c-2 +stdio/)
    expect(stdout).toMatch(/c +Claude Code +is already in the configuration/)
    expect(readdirSync(cli.folder)).not.toContain(ran)
    const file = readFileSync(cli.path('trunkline.yaml'), 'utf8')
    expect(file.match(/^ {2}[\w-]+:/gm)).toEqual(['  s:', '  a:', '  b-2:', '  c-2:'])
  })

  test('two processes that add at once lose nothing', async () => {
    await using cli = await laid({ 'trunkline.yaml': 'version: 1\n' })
    const names = ['a', 'b', 'c', 'd']
    const ends = await Promise.all(names.map((name) => cli.here('add', name, '--', `command-${name}`)))
    expect(ends.map(({ code }) => code)).toEqual([0, 0, 0, 0])
    expect(
      read(cli, 'trunkline.yaml')
        .match(/command-\w/g)
        ?.toSorted(),
    ).toEqual(names.map((name) => `command-${name}`))
  })

  test('a server.json is shown first; with --yes it is kept, and what is required stays to be filled in', async () => {
    await using cli = await laid({ 'server.json': JSON.stringify(SERVER) })
    const shown = await cli.here('add', './server.json')
    expect(shown).toMatchObject({ code: 1, stderr: expect.stringContaining('--yes') as string })
    expect(existsSync(cli.path('trunkline.yaml'))).toBe(false)
    const { code, stdout } = await cli.here('add', './server.json', '--yes')
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('WEATHER_KEY is not set') as string })
    const text = read(cli, 'trunkline.yaml')
    expect(text).toContain('weather:')
    expect(text).toContain('- "@acme/weather@1.2.0"')
    expect(text).toMatch(/- --units\n\s+- metric/)
    expect(text).toContain('WEATHER_KEY: ${WEATHER_KEY}')
  })

  test('a server.json with a byte order mark is read', async () => {
    await using cli = await laid({
      'server.json': `\uFEFF${JSON.stringify({ name: 'a.b/c', remotes: [{ type: 'streamable-http', url: 'https://c.x.test/mcp' }] })}`,
    })
    const { stderr, stdout } = await cli.here('add', './server.json', '--yes')
    expect(stderr).toBe('')
    expect(stdout).toContain('added a-b-c to trunkline.yaml')
  })

  test('on a terminal its variables are asked for, a secret without being shown, and then whether to add it', async () => {
    await using cli = await laid({ 'server.json': JSON.stringify(SERVER) })
    const { code, stdout, stderr } = await cli.onTerminal(['add', './server.json'], ['k3y-of-mine', 'more', 'y'])
    expect({ code, stderr }).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/WEATHER_KEY \(Key\): [^]*OPTIONAL .*or nothing: /) as string,
    })
    expect(read(cli, '.env')).toBe('WEATHER_KEY=k3y-of-mine\n')
    expect(read(cli, 'trunkline.yaml')).toMatch(/WEATHER_KEY: \$\{WEATHER_KEY\}\n\s+OPTIONAL: more/)
    expect(stdout + stderr).not.toContain('k3y-of-mine')
    const refused = await cli.onTerminal(['add', './server.json', '--as', 'again', '--force'], ['other', '', 'n'])
    expect([refused.code, refused.stdout]).toEqual([0, '  nothing was added\n'])
    expect(read(cli, 'trunkline.yaml')).not.toContain('again')
  })

  test('a remote of a server.json is added with its headers and the variables of its URL', async () => {
    const remote = {
      type: 'streamable-http',
      url: 'https://{region}.x.test/mcp',
      variables: { region: { description: 'Region', choices: ['eu', 'us'], default: 'eu' } },
      headers: [{ name: 'X-Key', value: 'Key {key}', variables: { key: { isRequired: true, isSecret: true } } }],
    }
    await using cli = await laid({ 'server.json': JSON.stringify({ ...SERVER, packages: [], remotes: [remote] }) })
    const { code, stderr } = await cli.onTerminal(['add', './server.json'], ['asia', 'us', 's3cret-of-mine', 'y'])
    expect({ code, stderr }).toMatchObject({ code: 0 })
    expect(read(cli, 'trunkline.yaml')).toContain('url: https://us.x.test/mcp')
    expect(read(cli, 'trunkline.yaml')).not.toContain('s3cret-of-mine')
    expect(read(cli, '.env')).toContain('s3cret-of-mine')
    expect((await cli.here('check')).code).toBe(0)
  })

  test('an .mcpb bundle is unpacked into the state folder and started from there', async () => {
    await using cli = await laid({})
    const manifest = {
      manifest_version: '0.3',
      name: 'clock',
      server: {
        type: 'node',
        entry_point: 'server/index.js',
        mcp_config: {
          command: 'node',
          args: ['${__dirname}/server/index.js', '${user_config.dirs}'],
          env: { ZONE: '${user_config.zone}' },
        },
      },
      user_config: {
        zone: { type: 'string', title: 'Zone', default: 'UTC' },
        dirs: { type: 'directory', multiple: true, default: ['${HOME}/a', '${HOME}/b'] },
      },
    }
    const archive = zip({ 'manifest.json': JSON.stringify(manifest), 'server/index.js': 'console.log(1)' })
    await writeFile(cli.path('clock.mcpb'), archive)
    expect((await cli.here('add', './clock.mcpb', '--yes')).code).toBe(0)
    const text = read(cli, 'trunkline.yaml')
    const [, script = ''] = /- (\S+index\.js)/.exec(text) ?? []
    expect(readFileSync(script, 'utf8')).toBe('console.log(1)')
    expect(text).toContain(`- ${cli.path('home')}/b`)
    expect(text).toContain('ZONE: UTC')
    await writeFile(cli.path('evil.mcpb'), zip({ 'manifest.json': JSON.stringify(manifest), '../../evil': 'x' }))
    expect((await cli.here('add', './evil.mcpb', '--yes')).stderr).toContain('outside of its folder')
    await writeFile(cli.path('text.mcpb'), 'no archive')
    expect((await cli.here('add', './text.mcpb', '--yes')).stderr).toContain('is not a ZIP archive')
  })
})

const SERVER = {
  $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
  name: 'io.github.acme/weather',
  description: 'Weather',
  version: '1.2.0',
  packages: [
    {
      registryType: 'npm',
      identifier: '@acme/weather',
      version: '1.2.0',
      transport: { type: 'stdio' },
      packageArguments: [{ type: 'named', name: '--units', value: 'metric' }],
      environmentVariables: [
        { name: 'WEATHER_KEY', description: 'Key', isRequired: true, isSecret: true },
        { name: 'OPTIONAL', description: 'Not needed' },
      ],
    },
  ],
}

describe('the registry', () => {
  const registry = async (answer: RequestListener, options = ''): Promise<Cli> => {
    const server = await listening(createServer(answer))
    onTestFinished(() => server[Symbol.asyncDispose]())
    return laid({ 'trunkline.yaml': `registry: { url: "${server.url}"${options} }\n` })
  }

  test('a server is added by its name, in the version that is named', async () => {
    const asked: string[] = []
    await using cli = await registry((request, response) => {
      asked.push(request.url ?? '')
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ server: SERVER, _meta: {} }))
    })
    expect((await cli.here('add', 'io.github.acme/weather', '--yes')).code).toBe(0)
    expect((await cli.here('add', 'io.github.acme/weather@1.2.0', '--yes', '--as', 'second', '--force')).code).toBe(0)
    expect(asked).toEqual([
      '/v0.1/servers/io.github.acme%2Fweather/versions/latest',
      '/v0.1/servers/io.github.acme%2Fweather/versions/1.2.0',
    ])
    expect(read(cli, 'trunkline.yaml')).toMatch(/weather:[^]*second:/)
    expect((await cli.here('check')).code).toBe(0)
  })

  test.each<[string, RequestListener, string, RegExp]>([
    [
      'too large',
      (_, response) => void response.end('x'.repeat(5_000)),
      ', max_answer: 4KiB',
      /more than 4096 bytes.*registry\.max_answer/,
    ],
    ['silent', () => undefined, ', timeout: 100ms', /the registry cannot be read.*registry\.timeout/],
    ['a redirect', (_, response) => void response.writeHead(302, { location: 'http://169.254.169.254/' }).end(), '', /redirect/],
    ['not JSON', (_, response) => void response.end('<html>'), '', /is not JSON/],
    ['unknown', (_, response) => void response.writeHead(404).end(), '', /has no server/],
    [
      'another server',
      (_, response) => void response.end(JSON.stringify({ server: { ...SERVER, name: 'evil/x' } })),
      '',
      /is about "evil\/x"/,
    ],
    [
      'an option as a package',
      (_, response) =>
        void response.end(
          JSON.stringify({
            server: { ...SERVER, packages: [{ registryType: 'npm', identifier: '--call=rm', transport: { type: 'stdio' } }] },
          }),
        ),
      '',
      /is not a valid name of a package/,
    ],
  ])('an answer that is %s changes nothing and says why', async (_name, answer, options, reason) => {
    await using cli = await registry(answer, options)
    const before = read(cli, 'trunkline.yaml')
    const { code, stderr } = await cli.here('add', 'io.github.acme/weather', '--yes')
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringMatching(reason) as string })
    expect(read(cli, 'trunkline.yaml')).toBe(before)
  })
})

describe('connect and disconnect', () => {
  test('the difference is shown, the entry starts this configuration, and undoing restores every byte', async () => {
    const before = '{\r\n\t// mine\r\n\t"mcpServers": {},\r\n}\r\n'
    const text = 'servers: { a: { command: x } }\ntoolsets: { review: { servers: [a] } }\n'
    await using cli = await laid({ [CURSOR]: before, 'trunkline.yaml': text })
    const { code, stderr, stdout } = await cli.here('connect', 'cursor', '--toolset', 'review')
    expect({ code, stdout }).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('undo: trunkline disconnect cursor') as string,
    })
    expect(stderr).toContain('"trunkline"')
    expect(read(cli, CURSOR)).toContain(cli.path('trunkline.yaml'))
    expect(read(cli, CURSOR)).toContain('"review"')
    expect(read(cli, CURSOR)).toContain('// mine')
    expect((await cli.here('connect', 'cursor', '--toolset', 'review')).stdout).toContain('already')
    expect((await cli.here('connect', 'cursor')).code).toBe(0)
    expect(await cli.here('disconnect', 'cursor')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('is as it was') as string,
    })
    expect(read(cli, CURSOR)).toBe(before)
  })

  test('a configuration that is no file is refused, and every file of -c is in the entry', async () => {
    await using cli = await laid({ 'a.yaml': 'servers: {}\n', 'b.yaml': 'naming: { prefix: never }\n' })
    for (const [name, reason] of [
      ['.', '. is a folder'],
      ['none.yaml', 'none.yaml does not exist'],
    ] as const) {
      const { code, stderr } = await cli.here('connect', 'cursor', '-c', name)
      expect({ code, stderr }).toEqual({ code: 2, stderr: `${reason}; name a file with -c FILE\n` })
    }
    expect(existsSync(cli.path(CURSOR))).toBe(false)
    const { stdout } = await cli.here('connect', 'cursor', '-c', 'a.yaml', '-c', 'b.yaml', '--print')
    const { args } = (JSON.parse(stdout) as { mcpServers: { trunkline: { args: string[] } } }).mcpServers.trunkline
    expect(args.slice(-5)).toEqual(['stdio', '-c', cli.path('a.yaml'), '-c', cli.path('b.yaml')])
  })

  test('a toolset that does not exist is refused, as is what a host does not support', async () => {
    const text = 'servers: { a: { command: x } }\ntoolsets: { review: { servers: [a] } }\n'
    await using cli = await laid({ [CURSOR]: mcpServers({}), 'trunkline.yaml': text })
    expect(await cli.here('connect', 'cursor', '--toolset', 'reveiw')).toMatchObject({
      code: 2,
      stdout: '',
      stderr: 'no toolset "reveiw" is configured; see all with: trunkline check --json\n',
    })
    expect(read(cli, CURSOR)).toBe(mcpServers({}))
    expect(await cli.here('connect', 'claude-desktop', '--link')).toMatchObject({
      code: 2,
      stderr: 'Claude Desktop: has no install links; remove --link\n',
    })
  })

  test('in the home folder a file that does not parse is told once', async () => {
    await using cli = await commandLine()
    cli.env['HOME'] = cli.folder
    await mkdir(cli.path('.cursor'))
    await cli.write('.cursor/mcp.json', '{')
    const { code, stderr } = await cli.run(['disconnect', 'cursor'])
    expect(code).toBe(2)
    expect(stderr.match(/does not parse/g)).toHaveLength(1)
  })

  test('--move takes its servers behind Trunkline, and disconnecting brings them back', async () => {
    const before = mcpServers({
      files: { command: 'files-server', disabledTools: ['rm'] },
      off: { command: 'y', disabled: true },
    })
    await using cli = await laid({ [CURSOR]: before, 'trunkline.yaml': 'version: 1\n' })
    expect((await cli.here('connect', 'cursor', '--move')).code).toBe(0)
    expect(read(cli, CURSOR)).not.toContain('files-server')
    expect(read(cli, CURSOR)).toContain('"off"')
    expect(read(cli, 'trunkline.yaml')).toContain('command: files-server')
    await writeFile(cli.path(CURSOR), `// later\n${read(cli, CURSOR)}`)
    expect((await cli.here('disconnect', 'cursor')).code).toBe(0)
    expect(JSON.parse(read(cli, CURSOR).replace('// later\n', ''))).toEqual(JSON.parse(before))
  })

  test('connecting again keeps what --move took, and disconnecting still brings it back', async () => {
    const before = mcpServers({ files: { command: 'files-server' } })
    await using cli = await laid({ [CURSOR]: before, 'trunkline.yaml': 'version: 1\n' })
    expect((await cli.here('connect', 'cursor', '--move')).code).toBe(0)
    const connected = read(cli, CURSOR)
    expect((await cli.here('connect', 'cursor', '--move')).stdout).toContain('already connected')
    expect(read(cli, CURSOR)).toBe(connected)
    expect((await cli.here('connect', 'cursor', '--state', './kept')).code).toBe(0)
    const { mcpServers: servers } = JSON.parse(read(cli, CURSOR)) as { mcpServers: Record<string, { args: string[] }> }
    expect(Object.keys(servers)).toEqual(['trunkline'])
    expect(servers['trunkline']?.args.slice(-2)).toEqual(['--state', cli.path('kept')])
    await writeFile(cli.path(CURSOR), `// later\n${read(cli, CURSOR)}`)
    expect((await cli.here('disconnect', 'cursor')).stdout).toContain('its entry is removed from')
    expect(JSON.parse(read(cli, CURSOR).replace('// later\n', ''))).toEqual(JSON.parse(before))
    // A server of this name that the host got meanwhile is its own.
    expect((await cli.here('connect', 'cursor', '--move')).code).toBe(0)
    await writeFile(cli.path(CURSOR), JSON.stringify({ mcpServers: { ...servers, files: { command: 'another' } } }))
    expect((await cli.here('connect', 'cursor')).code).toBe(0)
    expect(read(cli, CURSOR)).toContain('another')
  })

  test('folders that connect made are removed with the file, unless something else is in them', async () => {
    await using cli = await laid({ 'trunkline.yaml': 'servers: { a: { command: x } }\n' })
    const folder = cli.path(CURSOR).replace(/\/[^/]*$/, '')
    await rm(folder, { recursive: true, force: true })
    for (const args of [[], ['--state', './kept']]) expect((await cli.here('connect', 'cursor', ...args)).code).toBe(0)
    expect((await cli.here('disconnect', 'cursor')).code).toBe(0)
    expect(existsSync(folder)).toBe(false)
    expect((await cli.here('connect', 'cursor')).code).toBe(0)
    await writeFile(`${folder}/other.json`, '{}')
    expect((await cli.here('disconnect', 'cursor')).code).toBe(0)
    expect(readdirSync(folder)).toEqual(['other.json'])
    // A folder that was there stays.
    await rm(`${folder}/other.json`)
    expect((await cli.here('connect', 'cursor')).code).toBe(0)
    expect((await cli.here('disconnect', 'cursor')).code).toBe(0)
    expect(readdirSync(folder)).toEqual([])
  })

  /** The folder of the record of the one connection that was made. */
  const recordFolder = (cli: Cli): string => {
    const found = readdirSync(cli.path('state'), { recursive: true, encoding: 'utf8' }).find((name) => name.endsWith('/last'))
    return cli.path(`state/${found?.replace(/\/last$/, '')}`)
  }

  test('F-29 where the record of a connection cannot be written, the file of the host is not changed', async () => {
    const before = mcpServers({ files: { command: 'files-server' } })
    await using cli = await laid({ [CURSOR]: before, 'trunkline.yaml': 'version: 1\n' })
    expect((await cli.here('connect', 'cursor')).code).toBe(0)
    expect((await cli.here('disconnect', 'cursor')).code).toBe(0)
    // As on a full disk: no new file of this name can be written.
    await mkdir(`${recordFolder(cli)}/record.json.new`)
    const { code, stderr } = await cli.here('connect', 'cursor')
    expect([code, stderr]).toEqual([2, expect.stringContaining('nothing is changed')])
    expect(read(cli, CURSOR)).toBe(before)
  })

  test('F-29 a record that cannot take its place is reported as such, with the copy of the earlier file', async () => {
    const before = mcpServers({ files: { command: 'files-server' } })
    await using cli = await laid({ [CURSOR]: before, 'trunkline.yaml': 'version: 1\n' })
    expect((await cli.here('connect', 'cursor')).code).toBe(0)
    expect((await cli.here('disconnect', 'cursor')).code).toBe(0)
    await mkdir(`${recordFolder(cli)}/record.json`)
    const { code, stderr } = await cli.here('connect', 'cursor')
    expect([code, stderr]).toEqual([2, expect.stringMatching(/mcp\.json is changed, but .* the earlier file is in .*last/)])
    expect(stderr).not.toContain('nothing is changed')
    expect(read(cli, CURSOR)).toContain('"trunkline"')
  })

  test('without the copy of the earlier file only the changes are undone', async () => {
    const before = mcpServers({ files: { command: 'files-server' } })
    await using cli = await laid({ [CURSOR]: before, 'trunkline.yaml': 'version: 1\n' })
    expect((await cli.here('connect', 'cursor', '--move')).code).toBe(0)
    for (const name of readdirSync(cli.path('state'), { recursive: true, encoding: 'utf8' }))
      if (/before-[^/]*$/.test(name)) await rm(cli.path(`state/${name}`))
    const { code, stdout } = await cli.here('disconnect', 'cursor')
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('its entry is removed from') as string })
    expect(JSON.parse(read(cli, CURSOR))).toEqual(JSON.parse(before))
  })

  test.runIf(process.getuid?.() === 0)('as root, the file of a user stays the file of that user', async () => {
    await using cli = await laid({ [CURSOR]: mcpServers({}), 'trunkline.yaml': 'version: 1\n' })
    await chown(cli.path(CURSOR), 1234, 1234)
    expect((await cli.here('connect', 'cursor')).code).toBe(0)
    const { uid, gid } = statSync(cli.path(CURSOR))
    expect([uid, gid]).toEqual([1234, 1234])
  })

  test('--move without a configuration makes one, which is what the host starts', async () => {
    await using cli = await laid({ '.mcp.json': mcpServers({ files: { command: 'files-server' } }) })
    const nothing = await cli.here('connect', 'claude-code', '--scope', 'project', '--no-move')
    expect(nothing.stdout).toContain('it gets no server yet: save the servers of this project by trunkline init')
    const { code, stdout } = await cli.here('connect', 'claude-code', '--scope', 'project', '--move')
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.not.stringContaining('served nothing') as string })
    expect(read(cli, 'trunkline.yaml')).toContain('command: files-server')
    expect(read(cli, '.mcp.json')).toContain(cli.path('trunkline.yaml'))
    expect(read(cli, '.mcp.json')).not.toContain('files-server')
  })

  test.each([
    ['does not parse', '{ "mcpServers": { ', /does not parse as JSON/],
    ['holds a list', '[]', /does not contain a JSON object/],
  ])('a file that %s is never written', async (_name, text, reason) => {
    await using cli = await laid({ [CURSOR]: text, 'trunkline.yaml': 'version: 1\n' })
    const { code, stderr } = await cli.here('connect', 'cursor')
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringMatching(reason) as string })
    expect(read(cli, CURSOR)).toBe(text)
  })

  test('a file that the host changes between the difference and the answer is not overwritten', async () => {
    const before = mcpServers({})
    await using cli = await laid({ [CURSOR]: before, 'trunkline.yaml': 'version: 1\n' })
    const theirs = mcpServers({ theirs: { command: 'x' } })
    const { code, stderr } = await cli.onTerminal(
      ['connect', 'cursor', '--no-wait'],
      [
        () => {
          writeFileSync(cli.path(CURSOR), theirs)
          return 'y'
        },
      ],
    )
    expect({ code, stderr }).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('changed since the difference was shown') as string,
    })
    expect(read(cli, CURSOR)).toBe(theirs)
  })

  test('without a place for the backup nothing is written', async () => {
    await using cli = await laid({ [CURSOR]: mcpServers({}), 'trunkline.yaml': 'version: 1\n', state: 'a file' })
    const { code, stderr } = await cli.here('connect', 'cursor')
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('no backup can be kept') as string })
    expect(read(cli, CURSOR)).toBe(mcpServers({}))
  })

  test('a link stays a link, and the mode of the file stays', async () => {
    await using cli = await laid({ 'dotfiles/mcp.json': mcpServers({}), 'trunkline.yaml': 'version: 1\n' })
    await chmod(cli.path('dotfiles/mcp.json'), 0o640)
    await mkdir(cli.path('home/.cursor'))
    await symlink(cli.path('dotfiles/mcp.json'), cli.path(CURSOR))
    expect((await cli.here('connect', 'cursor')).code).toBe(0)
    expect(read(cli, 'dotfiles/mcp.json')).toContain('trunkline')
    expect(statSync(cli.path('dotfiles/mcp.json')).mode & 0o777).toBe(0o640)
  })

  test('two hosts in one file, and processes at once: all entries are there', async () => {
    await using cli = await laid({ 'home/.claude.json': '{}', 'trunkline.yaml': 'version: 1\n' })
    const ends = await Promise.all(
      ['user', 'local', 'project'].map((scope) => cli.here('connect', 'claude-code', '--scope', scope)),
    )
    expect(ends.map(({ code }) => code)).toEqual([0, 0, 0])
    const { mcpServers: user, projects } = JSON.parse(read(cli, 'home/.claude.json')) as {
      mcpServers: object
      projects: Record<string, { mcpServers: object }>
    }
    expect([user, projects[cli.folder]!.mcpServers].map((servers) => Object.keys(servers))).toEqual([
      ['trunkline'],
      ['trunkline'],
    ])
    expect((await cli.here('disconnect', 'claude-code')).code).toBe(0)
    expect(JSON.stringify(read(cli, 'home/.claude.json'))).not.toContain('trunkline')
    expect(existsSync(cli.path('.mcp.json'))).toBe(false)
  })

  test('--print writes nothing, --link gives the links that VS Code and Cursor install by, --all finds what is there', async () => {
    await using cli = await laid({ [CURSOR]: mcpServers({}), 'trunkline.yaml': 'version: 1\n' })
    const { stdout } = await cli.here('connect', 'codex', '--print')
    expect(stdout).toMatch(/^\[mcp_servers\.trunkline\]\ncommand = /)
    expect(existsSync(cli.path('home/.codex'))).toBe(false)
    const links = await cli.here('connect', 'cursor', 'vscode', '--link')
    const [cursor, vscode] = links.stdout.trim().split('\n')
    const config = new URL(cursor!).searchParams.get('config') ?? ''
    expect(JSON.parse(Buffer.from(config, 'base64').toString())).toMatchObject({
      args: expect.arrayContaining(['stdio']) as unknown,
    })
    expect(JSON.parse(decodeURIComponent(vscode!.replace('vscode:mcp/install?', '')))).toMatchObject({
      name: 'trunkline',
      type: 'stdio',
    })
    const all = JSON.parse((await cli.here('connect', '--all', '--json')).stdout) as { hosts: { host: string }[] }
    expect(all.hosts.map(({ host }) => host)).toEqual(['cursor'])
  })
})

describe('the first request of a connected host', () => {
  /** What a host sends first, over HTTP. */
  const visit = async (url: string, name: string, version = '1.7'): Promise<void> => {
    const post = (body: object, headers: Record<string, string> = {}): Promise<Response> =>
      fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
        body: JSON.stringify({ jsonrpc: '2.0', ...body }),
      })
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name, version } }
    const opened = await post({ id: 0, method: 'initialize', params })
    const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' }
    await post({ method: 'notifications/initialized' }, session)
    await (await post({ id: 1, method: 'tools/list', params: {} }, session)).text()
  }

  test('connect waits for it, and says its revision, its tools and the limits that they exceed', async () => {
    await using cli = await laid({ [CURSOR]: mcpServers({}) })
    await cli.write('trunkline.yaml', `naming: { max_length: 64 }\nservers:\n  a-server-with-a-key: ${cli.fake('long-names')}\n`)
    await using up = await cli.up()
    await up.said(/MCP/)
    const waiting = cli.here('connect', 'cursor', '--http', '--wait', '30s')
    await vi.waitFor(() => expect(read(cli, CURSOR)).toContain('trunkline'))
    await visit(up.url, 'zed')
    await visit(up.url, 'cursor-vscode')
    const { code, stdout } = await waiting
    expect(stdout).toMatch(/● Cursor has connected: 2025-06-18 over http, \d+ tools \(cursor-vscode 1\.7\)/)
    expect(stdout).toMatch(/▲ a-server-with-a-key__\S+: a name of \d+ characters .* > 59/)
    expect(stdout).not.toContain('zed')
    expect(code).toBe(0)
    const again = cli.here('connect', 'cursor', '--http', '--json', '--wait', '30s')
    const visits: Promise<void>[] = []
    const visiting = setInterval(() => visits.push(visit(up.url, 'cursor-vscode', `2.${visits.length}`)), 100)
    onTestFinished(() => clearInterval(visiting))
    const { stdout: answer } = await again
    clearInterval(visiting)
    // Before the gateway ends, which would refuse the last of them.
    await Promise.all(visits)
    expect(JSON.parse(answer)).toMatchObject({
      hosts: [{ host: 'cursor', changed: false, firstRequest: { seen: { name: 'cursor-vscode' } } }],
    })
  })

  test('where none comes in time, what to do is said; a time that is none is a usage error', async () => {
    await using cli = await laid({ [CURSOR]: mcpServers({}), 'trunkline.yaml': 'servers: { a: { command: x } }\n' })
    const { code, stdout } = await cli.here('connect', 'cursor', '--wait', '1ms')
    expect({ code, stdout }).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Cursor has not connected yet; reads the change') as string,
    })
    expect((await cli.here('connect', 'cursor', '--wait', 'long')).stderr).toContain('--wait takes a duration such as 2m')
    await writeFile(cli.path('trunkline.yaml'), 'servers: { a: { commnd: x } }\n')
    const broken = await cli.here('connect', 'cursor', '--wait', '10s')
    expect({ ...broken }).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/nothing can be served yet .*commnd/) as string,
    })
  })
})

test('connect --http of a gateway that hosts sign in to: its own name for the endpoint, no token, and the client ids', async () => {
  const clients = '[{ client_id: mcp-host, name: Cursor }, { client_id: other }]'
  const oauth = `{ issuer: "https://idp.test", audience: "https://mcp.test", clients: ${clients} }`
  await using cli = await laid({ [CURSOR]: mcpServers({}) })
  await cli.write('trunkline.yaml', `auth: { oauth: ${oauth} }\nservers: { a: ${cli.fake()} }\n`)
  await using up = await cli.up()
  await up.said(/MCP/)
  const { code, stderr } = await cli.here('connect', 'cursor', '--http')
  expect({ code, stderr }).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/mcp-host  Cursor\n +other  any host/) as string,
  })
  expect(JSON.parse(read(cli, CURSOR))).toEqual({ mcpServers: { trunkline: { url: 'https://mcp.test/mcp' } } })
  const { stdout } = await cli.here('connect', 'cursor', '--http', '--json', '--token-env', 'MINE')
  expect(JSON.parse(stdout)).toMatchObject({ clients: [{ id: 'mcp-host', name: 'Cursor' }, { id: 'other' }] })
  expect(read(cli, CURSOR)).toContain('Bearer ${env:MINE}')
})

describe('without a configuration', () => {
  test('what hosts have is served, nothing is written, and the screen says what to type next', async () => {
    await using cli = await laid({
      'home/.codex/config.toml': 'no toml\n',
    })
    const entry = JSON.parse(`[${cli.fake().replace('command', '"command"').replace('args', '"args"')}]`) as object[]
    const text = mcpServers({ good: entry[0], broken: { url: 'nope' } })
    await mkdir(cli.path('home/.cursor'))
    await writeFile(cli.path(CURSOR), text)
    await using up = await cli.up()
    await up.said(/● good\s+healthy/)
    await up.said(/Next: trunkline connect cursor/)
    expect(up.lines.join('\n')).toMatch(/found 2 servers in Cursor \(read-only; trunkline init saves them\)/)
    expect(up.lines.join('\n')).toMatch(/✗ broken .*expected a URL/)
    expect(up.lines.join('\n')).toMatch(/✗ Codex: .*config\.toml:1:\d+/)
    expect((await cli.here('ps')).stdout).toContain('good')
    expect((await cli.here('top', '--once')).stdout).toContain(
      'no call was captured in the last 5 minutes: calls are captured while',
    )
    expect(read(cli, CURSOR)).toBe(text)
    expect(existsSync(cli.path('trunkline.yaml'))).toBe(false)
  })

  test('check names no file that is not there, and reports each server that is left out', async () => {
    await using cli = await laid({
      [CURSOR]: mcpServers({ good: { command: 'x', env: { K: '${env:UNSET}' } }, broken: { url: 'nope' } }),
    })
    const { stdout } = await cli.here('check')
    expect(stdout.split('\n')).toEqual([
      'no configuration; the files of hosts: ok, 1 server',
      expect.stringMatching(
        /^ {2}warning: .*mcp\.json:\d+:\d+ servers\.broken\.url: expected a URL.*; server "broken" is left out$/,
      ),
      '  warning: UNSET is not set, and good needs it: set it in the environment',
      '',
    ])
    const json: unknown = JSON.parse((await cli.here('check', '--json')).stdout)
    expect(json).toMatchObject({ files: [cli.path(CURSOR)], servers: ['good'], warnings: { length: 2 } })
    expect((await cli.here('check', '--strict')).code).toBe(6)
  })

  test('where no host has a server, the way to add one is said', async () => {
    await using cli = await laid({})
    const { code, stderr } = await cli.here('check')
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('trunkline add NAME URL') as string })
  })
})

/** A ZIP archive as packers write it. */
const zip = (files: Readonly<Record<string, string>>): Buffer => {
  const locals: Buffer[] = []
  const centrals: Buffer[] = []
  let offset = 0
  for (const [name, content] of Object.entries(files)) {
    const [path, data] = [Buffer.from(name), Buffer.from(content)]
    const packed = deflateRawSync(data)
    const local = Buffer.alloc(30)
    local.writeUInt32LE(0x04034b50, 0)
    local.writeUInt16LE(8, 8)
    local.writeUInt32LE(packed.length, 18)
    local.writeUInt32LE(data.length, 22)
    local.writeUInt16LE(path.length, 26)
    const central = Buffer.alloc(46)
    central.writeUInt32LE(0x02014b50, 0)
    central.writeUInt16LE(8, 10)
    central.writeUInt32LE(packed.length, 20)
    central.writeUInt32LE(data.length, 24)
    central.writeUInt16LE(path.length, 28)
    central.writeUInt32LE(offset, 42)
    locals.push(local, path, packed)
    centrals.push(central, path)
    offset += 30 + path.length + packed.length
  }
  const directory = Buffer.concat(centrals)
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(Object.keys(files).length, 8)
  end.writeUInt16LE(Object.keys(files).length, 10)
  end.writeUInt32LE(directory.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...locals, directory, end])
}
