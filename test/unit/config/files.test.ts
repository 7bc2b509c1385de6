import { writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { workspace, yaml } from './workspace.ts'

describe('several files make one configuration', () => {
  test('include takes paths, patterns and files of hosts; its tags and variables reach what it brings', async () => {
    await using files = await workspace({
      'trunkline.yaml':
        'include: [servers/*.yaml, deep/**/x?.yaml, { mcpServers: .mcp.json, tags: [imported] }]\nenv_file: .env\nservers:\n  main: { command: x }\n',
      '.env': 'A=from env file\n',
      'servers/b.yaml': 'servers:\n  b: { command: ./tool, args: ["${A}"] }\n',
      'servers/a.yaml': 'servers:\n  a: { command: x }\n',
      'servers/.hidden.yaml': 'broken: true\n',
      'servers/notes.txt': 'no configuration\n',
      'deep/one/two/x1.yaml': 'servers:\n  deep: { command: x }\n',
      '.mcp.json': '{ "mcpServers": { "imported": { "command": "x" } } }',
    })
    const { servers, files: read, globs } = await files.load()
    expect(servers.map(({ key, tags }) => [key, tags])).toEqual([
      ['main', []],
      ['a', []],
      ['b', []],
      ['deep', []],
      ['imported', ['imported']],
    ])
    expect(servers[2]?.launch).toMatchObject({
      command: files.path('servers/tool'),
      args: ['from env file'],
      cwd: files.path('servers'),
    })
    expect(servers[2]?.place).toBe('servers/b.yaml:2:3')
    expect(read[0]).toBe(files.path('trunkline.yaml'))
    expect(read).toHaveLength(6)
    expect(globs).toEqual([files.path('servers/*.yaml'), files.path('deep/**/x?.yaml')])
  })

  test('a pattern that matches nothing is a warning', async () => {
    await using files = await workspace({ 'trunkline.yaml': 'include: [servers/*.yaml]\nservers:\n  a: { command: x }\n' })
    expect((await files.load()).warnings).toEqual(['trunkline.yaml:1:11: no file matches servers/*.yaml'])
  })

  test('F-25 a section that restricts callers knows the pattern and the file by which it is read', async () => {
    await using files = await workspace({
      'trunkline.yaml': 'include: [top.yaml, more/*.yaml]\nservers:\n  a: { command: x }\nstrict: false\n',
      'top.yaml': 'auth: { mode: none }\n',
      'more/m.yaml': 'include: [../below.yaml]\nnaming: {}\n',
      'below.yaml': 'policy: {}\n',
    })
    const match = { glob: files.path('more/*.yaml'), file: files.path('more/m.yaml') }
    expect((await files.load()).guards).toEqual([
      { section: 'strict', match: undefined },
      { section: 'auth', match: undefined },
      { section: 'policy', match },
    ])
  })

  test('several -c merge their servers and sections, in order', async () => {
    await using files = await workspace({
      'one.yaml': 'naming: { prefix: never }\nservers:\n  b: { command: x }\n',
      'two.json': '{ "servers": { "a": { "command": "x" } }, "reload": { "watch": false } }',
    })
    const { servers, gateway, watch } = await files.load(['one.yaml', 'two.json'])
    expect(servers.map(({ key }) => key)).toEqual(['b', 'a'])
    expect(gateway.prefix).toBe('never')
    expect(watch).toBe(false)
  })

  test('what two files say is an error that names both places', async () => {
    await using files = await workspace({
      'one.yaml': 'naming: { prefix: never }\nservers:\n  a: { command: x }\n',
      'two.yaml': 'servers:\n  a: { command: y }\nnaming: {}\n',
    })
    expect(await files.errors(['one.yaml', 'two.yaml'])).toEqual([
      'two.yaml:2:3 servers.a: server "a" is already defined at one.yaml:3:3; give one of them another key',
      'two.yaml:3:1 naming: "naming" is already set at one.yaml:1:1; keep one of them',
    ])
  })

  test('a file is one configuration, however it is named from wherever', async () => {
    await using files = await workspace({ 'sub/trunkline.yaml': 'servers:\n  a: { command: x }\n' })
    const [relative, absolute] = [
      await files.load('sub/trunkline.yaml'),
      await files.load(files.path('sub/trunkline.yaml'), { cwd: '/' }),
    ]
    expect(relative.id).toBe(absolute.id)
    expect(relative.id).toMatch(/^[\da-f]{16}$/)
  })

  test('a file without content has no server, and says so', async () => {
    await using files = await workspace({ 'trunkline.yaml': '# nothing yet\nlisten:\nservers:\n' })
    expect(await files.load()).toMatchObject({ servers: [], warnings: ['no server is configured'] })
  })

  test('a byte order mark belongs to no key, variable or value', async () => {
    await using files = await workspace({
      'trunkline.yaml':
        '\uFEFFenv_file: [.env]\ninclude: [config.toml]\nservers:\n  a: { command: x, args: ["${ONE}", "${file:f}"] }\n',
      '.env': '\uFEFFONE=1\n',
      f: '\uFEFFtwo\n',
      'config.toml': '\uFEFF[mcp_servers.b]\ncommand = "y"\n',
    })
    expect((await files.load()).servers.map(({ launch }) => [launch?.command, launch?.args])).toEqual([
      ['x', ['1', 'two']],
      ['y', []],
    ])
  })

  test('a file that is not UTF-8 is refused, and no character of it is replaced', async () => {
    await using files = await yaml('env_file: [.env]\nservers:\n  a: { command: x, args: ["${file:f}"] }\n')
    const latin = Buffer.from('caf\u00e9', 'latin1')
    await writeFile(files.path('.env'), Buffer.from('A=1\n', 'utf16le').fill(0xff, 0, 1))
    await writeFile(files.path('f'), latin)
    await writeFile(files.path('latin.yaml'), latin)
    await writeFile(files.path('u16.json'), Buffer.from('\uFEFF{"mcpServers":{}}', 'utf16le'))
    expect(await files.errors()).toEqual([
      'trunkline.yaml:1:12 env_file[0]: env_file .env is not UTF-8; save it as UTF-8',
      'trunkline.yaml:3:27 servers.a.args[0]: ${file:f} is not UTF-8; save it as UTF-8',
    ])
    for (const name of ['latin.yaml', 'u16.json'])
      expect(await files.errors(name)).toEqual([`${name}:1:1: is not UTF-8; save it as UTF-8`])
  })

  test('secrets in a readable file are a warning that does not show them', async () => {
    await using files = await workspace({})
    const text = [
      'servers:',
      '  a: { command: x, env: { API_KEY: abc123, MODE: fast, TOKEN: "${T}" } }',
      '  b: { url: "https://x.test/", credentials: { bearer: abc123 }, headers: { X-Api-Key: abc123 } }',
    ].join('\n')
    await files.write('trunkline.yaml', text, 0o644)
    const { warnings } = await files.load(undefined, { env: { T: 't' } })
    expect(warnings).toEqual([
      'trunkline.yaml can be read by others and contains secrets (servers.a.env.API_KEY, servers.b.credentials.bearer, servers.b.headers.X-Api-Key); chmod 600 it, or use ${VAR}',
    ])
    await files.write('trunkline.yaml', text, 0o600)
    expect((await files.load(undefined, { env: { T: 't' } })).warnings).toEqual([])
  })
})
