import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { INHERITED } from '../../../src/config/build/servers/child-environment.ts'
import { workspace } from './workspace.ts'

describe('files of hosts, read as they are', () => {
  test('an entry that starts Trunkline itself is left out, since the gateway would be its own server', async () => {
    const entry = { command: '/usr/bin/node', args: ['/opt/trunkline', 'stdio', '-c', 't.yaml'] }
    const mcpServers = {
      trunkline: { url: 'http://127.0.0.1:7420/mcp' },
      again: entry,
      a: { command: 'trunkline', args: ['mock', 'x'] },
    }
    await using files = await workspace({
      '.mcp.json': JSON.stringify({ mcpServers }),
      'trunkline.yaml': 'include: [{ mcpServers: ./.mcp.json }]\n',
    })
    for (const name of ['.mcp.json', 'trunkline.yaml'])
      expect((await files.load(name)).servers.map(({ key }) => key)).toEqual(['a'])
  })

  test('mcpServers with comments, trailing commas, tabs and members of the host', async () => {
    await using files = await workspace({
      '.mcp.json': `// my servers
{
\t"mcpServers": {
\t\t/* local */ "files": {
\t\t\t"command": "npx", "args": ["-y", "server", "https://x.test/#a"], // not a comment: https://
\t\t\t"env": { "KEY": "\${KEY}", "N": 1.10 }, "alwaysAllow": ["read"], "timeout": 60,
\t\t},
\t\t"remote": { "type": "streamable-http", "url": "https://x.test/mcp", "headers": { "Authorization": "Bearer \${env:KEY}" } },
\t\t"old": { "type": "sse", "url": "https://x.test/sse" },
\t\t"gemini": { "httpUrl": "https://x.test/g" },
\t\t"windsurf": { "serverUrl": "https://x.test/w" },
\t\t"off": { "command": "nothing", "disabled": true, "env": { "X": "\${UNSET}" } },
\t},
\t"theme": "dark",
}`,
    })
    const { servers, warnings } = await files.load('.mcp.json', { env: { KEY: 'secret' } })
    expect(warnings).toEqual([])
    expect(servers.map(({ key, transport, url }) => [key, transport, url?.href])).toEqual([
      ['files', 'auto', undefined],
      ['remote', 'http', 'https://x.test/mcp'],
      ['old', 'sse', 'https://x.test/sse'],
      ['gemini', 'auto', 'https://x.test/g'],
      ['windsurf', 'auto', 'https://x.test/w'],
    ])
    expect(servers[0]?.launch).toEqual({
      command: 'npx',
      args: ['-y', 'server', 'https://x.test/#a'],
      env: { KEY: 'secret', N: '1.10' },
      cwd: files.folder,
    })
    expect(servers[0]?.place).toBe('.mcp.json:4:15')
    expect(servers[1]?.headers).toEqual({ Authorization: 'Bearer secret' })
  })

  test('names that break our rule are changed and told; the name stays what people read', async () => {
    await using files = await workspace({
      '.mcp.json': JSON.stringify({
        mcpServers: {
          'My Server': { command: 'a' },
          my_server: { command: 'b' },
          ui: { command: 'c' },
          '123': { command: 'd' },
          x: { command: 'e' },
        },
      }),
    })
    const { servers, warnings } = await files.load('.mcp.json')
    expect(servers.map(({ key, displayName }) => [key, displayName])).toEqual([
      ['server', '123'],
      ['my-server', 'My Server'],
      ['my-server-2', 'my_server'],
      ['ui-2', 'ui'],
      ['x', 'x'],
    ])
    expect(warnings).toHaveLength(4)
    expect(warnings).toContainEqual(expect.stringMatching(/^\.mcp\.json:1:\d+: server "My Server" is called "my-server" here$/))
  })

  test('VS Code: servers and inputs, envFile, the folder above .vscode', async () => {
    await using files = await workspace({
      '.vscode/mcp.json': JSON.stringify({
        inputs: [
          { id: 'token', type: 'promptString', password: true },
          { id: 'region', type: 'pickString', options: ['eu'], default: 'eu' },
        ],
        servers: {
          api: { type: 'http', url: 'https://x.test/${input:region}', headers: { 'X-Token': '${input:token}' } },
          local: {
            type: 'stdio',
            command: './run.sh',
            args: ['${workspaceFolder}'],
            envFile: '${workspaceFolder}/.env',
            env: { B: '2' },
          },
        },
      }),
      '.env': 'A=1\nB=1\n',
    })
    const { servers } = await files.load('.vscode/mcp.json', { env: { INPUT_TOKEN: 't' } })
    expect(servers[0]).toMatchObject({ transport: 'auto', headers: { 'X-Token': 't' } })
    expect(servers[0]?.url?.href).toBe('https://x.test/eu')
    expect(servers[1]?.launch).toEqual({
      command: files.path('run.sh'),
      args: [files.folder],
      env: { A: '1', B: '2' },
      cwd: files.folder,
    })
  })

  test('Zed: context_servers, a command in parts', async () => {
    await using files = await workspace({
      'settings.json': `{ "telemetry": { "metrics": false }, "context_servers": { "a": { "command": { "path": "tool", "args": ["x"], "env": null }, "settings": {} } } }`,
    })
    expect((await files.load('settings.json')).servers[0]?.launch).toMatchObject({ command: 'tool', args: ['x'] })
  })

  test('ours in JSON is strict, with or without a version', async () => {
    await using files = await workspace({
      'a.json': '{ "version": 1, "servers": { "a": { "type": "stdio", "command": "x" } } }',
      'b.json': '{ "servers": { "b": { "command": "x" } }, "naming": { "prefix": "never" }, }',
    })
    expect(await files.errors('a.json')).toEqual([
      expect.stringMatching(/^a\.json:1:37 servers\.a: unknown key "type"; did you mean "transport"\?/),
    ])
    expect((await files.load('b.json')).gateway.prefix).toBe('never')
  })

  test('mcpServers beside a section of ours is an error, so that no section is lost in silence', async () => {
    await using files = await workspace({ 'a.yaml': 'naming: { prefix: never }\nmcpServers:\n  a: { command: x }\n' })
    expect(await files.errors('a.yaml')).toEqual(['a.yaml:2:1: unknown key "mcpServers"; did you mean "servers"?'])
  })

  test('one unusable entry costs that entry, and the warning points into the file of the host', async () => {
    await using files = await workspace({
      '.mcp.json':
        '{\n "mcpServers": {\n  "My Server": {\n   "serverUrl": "nope"\n  },\n  "b": { "type": "ws", "url": "https://x.test" },\n  "c": 1,\n  "d": {},\n  "good": { "command": "x" },\n  "off": { "type": "ws", "disabled": true }\n }\n}',
    })
    const { servers, warnings } = await files.load('.mcp.json')
    expect(servers.map(({ key }) => key)).toEqual(['good'])
    expect(warnings).toEqual([
      expect.stringMatching(/^\.mcp\.json:3:3: server "My Server" is called "my-server" here$/),
      expect.stringMatching(
        /^\.mcp\.json:6:10 mcpServers\.b\.type: transport "ws" is not known; use stdio, http or sse; server "b" is left out$/,
      ),
      expect.stringMatching(/^\.mcp\.json:7:3 mcpServers\.c: expected a mapping; server "c" is left out$/),
      expect.stringMatching(
        /^\.mcp\.json:4:4 mcpServers\."My Server"\.serverUrl: expected a URL.*; server "my-server" is left out$/,
      ),
      expect.stringMatching(/^\.mcp\.json:8:3 mcpServers\.d: neither command nor url.*; server "d" is left out$/),
    ])
  })

  test('words that JavaScript inherits are words like any other', async () => {
    const servers = {
      a: { command: 'x', constructor: 1, toString: 'y' },
      b: { command: 'x', type: 'constructor' },
      c: { url: 'https://x.test/mcp', oauth: { client_id: 'id', valueOf: 1 } },
    }
    await using files = await workspace({ '.mcp.json': JSON.stringify({ mcpServers: servers }) })
    const read = await files.load('.mcp.json')
    expect(read.servers.map(({ key }) => key)).toEqual(['a', 'c'])
    expect(read.warnings).toEqual([
      '.mcp.json:1:166 mcpServers.c.oauth.valueOf: not honoured; write the server into trunkline.yaml, with credentials',
      '.mcp.json:1:86 mcpServers.b.type: transport "constructor" is not known; use stdio, http or sse; server "b" is left out',
    ])
  })

  test('two files of hosts may name the same server: the first one counts, and the other is told', async () => {
    await using files = await workspace({
      'a.json': '{ "mcpServers": { "x": { "command": "a" }, "y": { "command": "b" } } }',
      'b.json': '{ "mcpServers": { "x": { "command": "c" } } }',
    })
    const { servers, warnings } = await files.load(['a.json', 'b.json'])
    expect(servers.map(({ key, launch }) => [key, launch?.command])).toEqual([
      ['x', 'a'],
      ['y', 'b'],
    ])
    expect(warnings).toEqual([expect.stringMatching(/^b\.json:1:19 .*"x" is already defined at a\.json:1:19.*"x" is left out$/)])
  })
})

describe('what a person switched off stays off', () => {
  const filterOf = async (entry: object, name = '.mcp.json', more: object = {}) => {
    await using files = await workspace({ [name]: JSON.stringify({ mcpServers: { a: { command: 'x', ...entry } }, ...more }) })
    const { servers, warnings } = await files.load(name)
    const tools = servers[0]?.curation?.tools
    const texts = (rules: { globs: readonly { glob: string }[] } | undefined) => rules?.globs.map(({ glob }) => glob)
    return {
      servers: servers.length,
      allow: texts(tools?.allow),
      deny: tools?.deny.map(({ glob }) => glob),
      warnings,
    }
  }

  test.each([
    ['disabledTools (Roo, Windsurf, Kiro)', { disabledTools: ['rm'] }, { deny: ['rm'] }],
    ['disabled_tools', { disabled_tools: ['rm'] }, { deny: ['rm'] }],
    ['toolFilter (mcp-proxy), block', { options: { toolFilter: { mode: 'block', list: ['rm'] } } }, { deny: ['rm'] }],
    [
      'toolFilter (mcp-proxy), allow, beside another list',
      { options: { toolFilter: { mode: 'allow', list: ['a', 'b'] } }, includeTools: ['b'] },
      { allow: ['b'] },
    ],
    [
      'toolFilter (mcp-proxy) in a mode that is not known',
      { options: { toolFilter: { mode: 'hide', list: ['rm'] } } },
      { servers: 0 },
    ],
    [
      'excludeTools (Gemini) wins over includeTools',
      { includeTools: ['a', 'rm(x)'], excludeTools: ['rm'] },
      { allow: ['a', 'rm'], deny: ['rm'] },
    ],
    ['tools (Copilot)', { tools: ['a', 'b'] }, { allow: ['a', 'b'] }],
    ['tools: all', { tools: ['*'] }, { allow: undefined }],
    ['tools: none', { tools: [] }, { allow: [] }],
    [
      'tools as switches',
      { tools: { a: true, b: false, c: { enabled: false }, d: { approval_mode: 'approve' } } },
      { deny: ['b', 'c'] },
    ],
    ['two lists: what both allow', { includeTools: ['a', 'b'], tools: ['b', 'c'] }, { allow: ['b'] }],
    ['approvals are the matter of the host', { alwaysAllow: ['a'], autoApprove: ['b'], trust: true }, { allow: undefined }],
  ])('%s', async (_, entry, expected) => {
    expect(await filterOf(entry)).toMatchObject({ servers: 1, ...expected })
  })
  test('a list that cannot be understood leaves the server out', async () => {
    expect(await filterOf({ disabledTools: [{ name: 'rm' }] })).toMatchObject({
      servers: 0,
      warnings: expect.arrayContaining([
        expect.stringMatching(/disabledTools\[0\]: expected a list of names of tools/),
      ]) as unknown,
    })
  })
  test.each([{ disabled: true }, { disabled: 'true' }, { enabled: false }, { isActive: false }])('%j', async (entry) => {
    expect((await filterOf(entry)).servers).toBe(0)
  })
  test('Gemini: mcp.allowed and mcp.excluded, without case; an empty list allows all', async () => {
    const load = async (mcp: object) => {
      const mcpServers = { one: { command: 'a' }, two: { command: 'b' } }
      await using files = await workspace({ '.gemini/settings.json': JSON.stringify({ mcp, mcpServers }) })
      return (await files.load('.gemini/settings.json')).servers.map(({ key }) => key)
    }
    expect(await load({ allowed: ['ONE'] })).toEqual(['one'])
    expect(await load({ excluded: ['two'] })).toEqual(['one'])
    expect(await load({ allowed: ['one', 'two'], excluded: ['one'] })).toEqual(['two'])
    expect(await load({ allowed: [] })).toEqual(['one', 'two'])
  })
  test('Gemini: servers that its file of switches disables, which no other host reads', async () => {
    const mcpServers = JSON.stringify({ mcpServers: { one: { command: 'a' }, two: { command: 'b' } } })
    await using files = await workspace({
      '.gemini/settings.json': mcpServers,
      '.cursor/mcp.json': mcpServers,
      'home/.gemini/mcp-server-enablement.json': '{ "one": { "enabled": false }, "two": { "enabled": true } }',
    })
    const keys = async (name: string) => (await files.load(name)).servers.map(({ key }) => key)
    expect(await keys('.gemini/settings.json')).toEqual(['two'])
    expect(await keys('.cursor/mcp.json')).toEqual(['one', 'two'])
  })
  test('Claude Code: servers of .mcp.json that its settings switch off', async () => {
    await using files = await workspace({
      '.mcp.json': JSON.stringify({
        mcpServers: { a: { command: 'a' }, b: { command: 'b' }, c: { command: 'c' }, d: { command: 'd' } },
      }),
      '.claude/settings.local.json': '{ "disabledMcpjsonServers": ["a"] }',
      'home/.claude/settings.json': '\uFEFF{ "disabledMcpjsonServers": ["b"] }',
    })
    await files.write('home/.claude.json', JSON.stringify({ projects: { [files.folder]: { disabledMcpServers: ['c'] } } }))
    const { servers, files: read } = await files.load('.mcp.json')
    expect(servers.map(({ key }) => key)).toEqual(['d'])
    expect(read).toContain(files.path('.claude/settings.local.json'))
  })
  test('Claude Code: tools that the permissions of its settings deny', async () => {
    await using files = await workspace({
      '.mcp.json': JSON.stringify({
        mcpServers: { hub: { command: 'a' }, 'my db': { command: 'b' }, c: { command: 'c' }, d: { command: 'd' } },
      }),
      '.claude/settings.json': '{\n  "permissions": { "deny": ["Bash(rm *)", "mcp__hub__delete_repo", "mcp__my_db"] }\n}',
      'home/.claude/settings.json':
        '{ "permissions": { "allow": ["mcp__d__x"], "deny": ["mcp__hub__admin_*", "mcp__c__*", 7] } }',
      'home/.claude.json': JSON.stringify({ mcpServers: { hub: { command: 'a' } } }),
    })
    const denied = async (name: string) =>
      (await files.load(name)).servers.map(({ key, curation }) => [key, curation?.tools.deny.map(({ glob }) => glob)])
    expect(await denied('.mcp.json')).toEqual([
      ['hub', ['delete_repo', 'admin_*']],
      ['my-db', ['*']],
      ['c', ['*']],
      ['d', undefined],
    ])
    expect(await denied('home/.claude.json')).toEqual([['hub', ['admin_*']]])
    const { servers, files: read } = await files.load('.mcp.json')
    expect(servers[0]?.curation?.tools.deny[0]?.place).toBe(`${files.path('.claude/settings.json')}:2:43`)
    expect(read).toContain(files.path('home/.claude/settings.json'))
  })
  test('opencode: mcp, a command in one list, tools and permission by pattern', async () => {
    await using files = await workspace({
      'opencode.json': JSON.stringify({
        mcp: {
          'my.files': { type: 'local', command: ['npx', '-y', 'files'], environment: { KEY: '{env:KEY}' }, enabled: true },
          remote: { type: 'remote', url: 'https://x.test/mcp', headers: { A: 'Bearer {env:KEY}' }, oauth: false },
          off: { type: 'local', command: ['x'], enabled: false },
        },
        tools: { 'my_files_delete*': false, 'remote*': false, bash: false },
        permission: { my_files_move: 'deny', edit: 'ask' },
      }),
    })
    const { servers, warnings } = await files.load('opencode.json', { env: { KEY: 'k' } })
    expect(servers[0]?.launch).toMatchObject({ command: 'npx', args: ['-y', 'files'], env: { KEY: 'k' } })
    expect(servers[0]?.curation?.tools.deny.map(({ glob }) => glob)).toEqual(['delete*', 'move'])
    expect(servers[1]?.curation?.tools.deny.map(({ glob }) => glob)).toEqual(['*'])
    expect(servers[1]).toMatchObject({ transport: 'auto', headers: { A: 'Bearer k' } })
    expect(servers).toHaveLength(2)
    expect(warnings).toEqual([expect.stringContaining('is called "my-files" here')])
  })
  test('Codex: mcp_servers in TOML, headers and a token from variables, texts as they are', async () => {
    await using files = await workspace({
      '.codex/config.toml': `model = "m"

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs", "\${KEY}"]
env_vars = ["KEY", "NONE"]
enabled_tools = ["a", "b"]
disabled_tools = ["b"]
startup_timeout_sec = 20

[mcp_servers.docs.env]
LEVEL = "1"

[mcp_servers."figma.remote"]
url = "https://x.test/mcp"
bearer_token_env_var = "KEY"
http_headers = { A = "1" }
env_http_headers = { B = "KEY" }

[mcp_servers.unset]
url = "https://x.test/mcp"
bearer_token_env_var = "NONE"

[mcp_servers.off]
command = "x"
enabled = false
`,
    })
    const { servers, warnings } = await files.load('.codex/config.toml', { env: { KEY: 'k' } })
    expect(servers.map(({ key, place }) => [key, place])).toEqual([
      ['docs', '.codex/config.toml:3:1'],
      ['figma-remote', '.codex/config.toml:14:1'],
    ])
    expect(servers[0]?.launch).toMatchObject({ command: 'npx', args: ['-y', 'docs', '${KEY}'], env: { KEY: 'k', LEVEL: '1' } })
    expect(servers[0]?.curation?.tools).toMatchObject({ allow: { globs: [{ glob: 'a' }, { glob: 'b' }] }, deny: [{ glob: 'b' }] })
    expect(servers[1]?.headers).toEqual({ A: '1', B: 'k', Authorization: 'Bearer k' })
    expect(warnings).toEqual([
      expect.stringContaining('is called "figma-remote" here'),
      '.codex/config.toml:22:1 mcp_servers.unset.bearer_token_env_var: variable NONE is not set; set it; server "unset" is left out',
    ])
  })
  test('TOML that cannot be read is told with its place', async () => {
    await using files = await workspace({ 'config.toml': '[mcp_servers.a]\ncommand = \n' })
    expect(await files.errors('config.toml')).toEqual([
      expect.stringMatching(/^config\.toml:2:\d+: .+; correct the syntax here$/),
    ])
  })
  test('Goose: extensions, cmd and envs; its built-in ones are not servers', async () => {
    await using files = await workspace({
      'config.yaml':
        'GOOSE_MODEL: m\nextensions:\n  developer: { type: builtin, enabled: true }\n  a: { type: stdio, enabled: true, cmd: npx, args: [-y, a], envs: { K: $KEY }, env_keys: [SECRET], available_tools: [] }\n' +
        '  b: { type: streamable_http, enabled: true, uri: "https://x.test/mcp", available_tools: [one] }\n  c: { type: stdio, cmd: x, enabled: false }\n',
    })
    const { servers, warnings } = await files.load('config.yaml', { env: { KEY: 'k' } })
    expect(servers.map(({ key }) => key)).toEqual(['a', 'b'])
    expect(servers[0]?.launch).toMatchObject({ command: 'npx', env: { K: 'k' } })
    expect(servers[0]?.curation?.tools.allow).toBeUndefined()
    expect(servers[1]?.curation?.tools.allow?.globs.map(({ glob }) => glob)).toEqual(['one'])
    expect(warnings).toEqual([
      expect.stringMatching(/^config\.yaml:4:\d+ extensions\.a\.env_keys: not honoured; the values are in the keyring/),
    ])
  })
})

test('Goose: the empty lists that it writes for every server are no reason for a warning', async () => {
  await using files = await workspace({
    'config.yaml': 'extensions:\n  a: { type: stdio, cmd: npx, enabled: true, env_keys: [], envs: {} }\n',
  })
  expect((await files.load('config.yaml')).warnings).toEqual([])
})

test('a duplicate key in JSON is a warning, and the last one counts, as in every host; in YAML and in our files it is an error', async () => {
  await using files = await workspace({
    '.mcp.json': '{ "mcpServers": { "a": { "command": "x" }, "b": { "command": "y" }, "a": { "command": "z" } } }',
    'config.yaml': 'mcpServers:\n  - { name: a, command: x, command: y }\n',
    'ours.json': '{ "servers": { "a": { "command": "x" }, "a": { "command": "z" } } }',
  })
  const { servers, warnings } = await files.load('.mcp.json')
  expect(servers.map(({ key, launch }) => [key, launch?.command])).toEqual([
    ['a', 'z'],
    ['b', 'y'],
  ])
  expect(warnings).toEqual([
    '.mcp.json:1:69 mcpServers.a: duplicate key "a", first written at .mcp.json:1:19; keep one of them; the last one counts, as in the host',
  ])
  expect(await files.errors('config.yaml')).toEqual([expect.stringMatching(/duplicate key "command".*; keep one of them$/)])
  expect(await files.errors('ours.json')).toEqual([expect.stringMatching(/duplicate key "a".*; keep one of them$/)])
})

test('a file that is included as one of a host may contain no servers, or untyped ones of VS Code', async () => {
  await using files = await workspace({
    'trunkline.yaml':
      'version: 1\ninclude:\n  - mcpServers: ./.gemini/settings.json\n  - mcpServers: ./config.toml\n  - mcpServers: ./code.json\nservers: { a: { command: x } }\n',
    '.gemini/settings.json': '{ "theme": "dark", "telemetry": { "enabled": false } }',
    'config.toml': 'model = "m"\n',
    'code.json': '{ "servers": { "b": { "command": "y", "gallery": true } } }',
    '.vscode/mcp.json': '{ "servers": { "c": { "command": "z", "version": "1" } } }',
    'ours.yaml': 'include: [{ mcpServers: ./own.yaml, tags: [t] }]\n',
    'own.yaml': 'servers: { d: { command: x, prefix: e } }\n',
  })
  const keys = async (name: string) => (await files.load(name)).servers.map(({ key }) => key)
  expect(await keys('trunkline.yaml')).toEqual(['a', 'b'])
  expect(await keys('.vscode/mcp.json')).toEqual(['c'])
  expect(await keys('ours.yaml')).toEqual(['d'])
})

test('docker run -e NAME gets the variable of the environment, unless it is not set or the entry has it', async () => {
  const args = [
    'run',
    '-i',
    '--rm',
    '-e',
    'SET',
    '--env=OWN',
    '-eMORE',
    '-e',
    'NONE',
    '-e',
    'A=b',
    '--name',
    'run',
    'image',
    '-e',
    'LATER',
  ]
  const mcpServers = {
    a: { command: '/usr/bin/docker', args, env: { OWN: 'own' } },
    b: { command: 'node', args },
    c: { command: 'docker', args: ['ps', '-e', 'SET'] },
  }
  await using files = await workspace({ '.mcp.json': JSON.stringify({ mcpServers }) })
  const env = { SET: 's', OWN: 'o', MORE: 'm', LATER: 'l' }
  const { servers } = await files.load('.mcp.json', { env })
  expect(servers[0]?.launch?.env).toMatchObject({ SET: 's', OWN: 'own', MORE: 'm' })
  for (const name of ['LATER', 'NONE', 'A']) expect(servers[0]?.launch?.env).not.toHaveProperty(name)
  for (const server of servers.slice(1)) expect(server.launch?.env).not.toHaveProperty('SET')
})

test('LibreChat: the proxy of a server is kept, and what it replaces for each user is reported', async () => {
  await using files = await workspace({
    'librechat.yaml':
      'version: 1.3.1\nmcpServers:\n  a:\n    type: streamable-http\n    url: https://x.test/mcp\n    proxy: http://proxy.test:3128\n    headers: { X-User: "{{LIBRECHAT_USER_ID}}" }\n    customUserVars: { KEY: { title: Key } }\n',
  })
  const { servers, warnings } = await files.load('librechat.yaml')
  expect(JSON.stringify(servers[0])).toContain('proxy.test:3128')
  expect(warnings).toEqual([
    expect.stringMatching(/^librechat\.yaml:8:5 mcpServers\.a\.customUserVars: not honoured; no user is asked/),
    expect.stringMatching(/^librechat\.yaml:7:\d+ mcpServers\.a\.headers\.X-User: \{\{LIBRECHAT_USER_ID\}\} stays as it is/),
  ])
})

test('opencode: a tool that a later rule enables again stays disabled, which is reported', async () => {
  await using files = await workspace({
    'opencode.json': JSON.stringify({
      mcp: { hub: { type: 'remote', url: 'https://x.test/mcp' }, other: { type: 'remote', url: 'https://y.test/mcp' } },
      tools: { hub_first: true, 'hub_ado*': false, hub_ado_search: true, hub_free: true },
      permission: { hub_ado_get: 'ask', other_one: 'allow' },
    }),
  })
  const { servers, warnings } = await files.load('opencode.json')
  expect(servers[0]?.curation?.tools.deny.map(({ glob }) => glob)).toEqual(['ado*'])
  expect(warnings).toEqual([
    expect.stringMatching(/^opencode\.json:1:\d+ tools\.hub_ado_search: not honoured; "hub_ado\*" disables it$/),
    expect.stringMatching(/^opencode\.json:1:\d+ permission\.hub_ado_get: not honoured; "hub_ado\*" disables it$/),
  ])
})

test.each([
  [{ transport: 'sse' }, 'sse'],
  [{ transport: 'streamable-http' }, 'http'],
  [{ transportType: 'sse' }, 'sse'],
  [{ transport: 'other' }, 'auto'],
  [{ type: 'http', transport: 'sse' }, 'http'],
])('FastMCP and others name the transport by another member: %j', async (entry, transport) => {
  const mcpServers = { a: { url: 'https://x.test/mcp', ...entry }, b: { command: 'x', ...entry, type: 'stdio' } }
  await using files = await workspace({ 'm.json': JSON.stringify({ mcpServers }) })
  const { servers } = await files.load('m.json')
  expect(servers.map((server) => [server.transport, server.launch?.command])).toEqual([
    [transport, undefined],
    ['auto', 'x'],
  ])
})

test('Cherry Studio and mcporter name the URL baseUrl or base_url; AnythingLLM names Streamable HTTP streamable', async () => {
  const mcpServers = {
    a: { type: 'streamableHttp', baseUrl: 'https://a.test/mcp', isActive: true },
    b: { base_url: 'https://b.test/mcp' },
    c: { type: 'streamable', url: 'https://c.test/mcp' },
  }
  await using files = await workspace({ 'm.json': JSON.stringify({ mcpServers }) })
  const { servers, warnings } = await files.load('m.json')
  expect(warnings).toEqual([])
  expect(servers.map(({ key, transport, url }) => [key, transport, url?.href])).toEqual([
    ['a', 'http', 'https://a.test/mcp'],
    ['b', 'auto', 'https://b.test/mcp'],
    ['c', 'http', 'https://c.test/mcp'],
  ])
})

describe('how a server of a host is authenticated to', () => {
  test('Continue: apiKey is a bearer token', async () => {
    await using files = await workspace({
      'config.yaml':
        'mcpServers:\n  - { name: a, url: "https://x.test/mcp", apiKey: "${{ secrets.KEY }}", requestOptions: { headers: { A: b } } }\n',
    })
    const { servers, warnings } = await files.load('config.yaml', { env: { KEY: 'k' } })
    expect(servers[0]?.headers).toEqual({ A: 'b', Authorization: 'Bearer k' })
    expect(warnings).toEqual([])
  })
  test.each([
    [
      'Claude, Gemini and opencode',
      { oauth: { clientId: 'i', clientSecret: 's', scopes: ['a', 'b'] } },
      { clientId: 'i', scopes: ['a', 'b'] },
    ],
    ['Cursor', { auth: { CLIENT_ID: 'i', scopes: 'a b' } }, { clientId: 'i', scopes: ['a', 'b'] }],
    ['Copilot', { oauthClientId: 'i' }, { clientId: 'i' }],
    ['FastMCP', { auth: 'oauth' }, {}],
  ])('a client that was registered by hand: %s', async (_, entry, expected) => {
    await using files = await workspace({
      'm.json': JSON.stringify({ mcpServers: { a: { url: 'https://x.test/mcp', ...entry } } }),
    })
    const { servers, warnings } = await files.load('m.json')
    expect(warnings).toEqual([])
    expect(JSON.stringify(servers[0]?.credential)).toContain('"mode":"user"')
    if ('clientId' in expected) expect(JSON.stringify(servers[0]?.credential)).toContain('"i"')
    if ('scopes' in expected) expect(servers[0]?.credential).toMatchObject({ scopes: expected.scopes })
  })
  test.each([
    [{ headersHelper: './token.sh' }, /^m\.json:1:\d+ mcpServers\.a\.headersHelper: not honoured; it runs a program/],
    [{ oauth: { enabled: true, callbackPort: 1 } }, /mcpServers\.a\.oauth\.callbackPort: not honoured/],
    [{ authProviderType: 'google_credentials' }, /authProviderType: not honoured/],
    [{ sandbox: { network: false } }, /sandbox: not honoured; the server is started without/],
    [{ apiKey: 'abc' }, /apiKey: not honoured; write the header that carries it/],
  ])('%j is warned about with its place', async (entry, warning) => {
    await using files = await workspace({
      'm.json': JSON.stringify({ mcpServers: { a: { url: 'https://x.test/mcp', ...entry } } }),
    })
    const { warnings } = await files.load('m.json')
    expect(warnings).toEqual([expect.stringMatching(warning)])
  })
})

describe('variables as the host reads them', () => {
  const ENV = { KEY: 'k', EMPTY: '' }
  const read = async (name: string, args: string[], as: (entry: object) => object = (a) => ({ mcpServers: { a } })) => {
    await using files = await workspace({ [name]: JSON.stringify(as({ type: 'stdio', command: 'x', args })) })
    const { servers, warnings } = await files.load(name, { env: ENV })
    return { args: servers[0]?.launch?.args, warnings }
  }

  test('Claude: an unset variable stays as it is written, with a warning; an empty one is a value; $VAR is a text', async () => {
    const { args, warnings } = await read('.mcp.json', [
      '${KEY}',
      '${NONE}',
      '${NONE:-d}',
      '${EMPTY:-d}',
      '$KEY',
      '${HOME%/}',
      '$${KEY}',
      '${',
    ])
    expect(args).toEqual(['k', '${NONE}', 'd', '', '$KEY', '${HOME%/}', '$k', '${'])
    expect(warnings).toEqual([
      expect.stringMatching(/^\.mcp\.json:1:\d+ mcpServers\.a\.args\[1\]: variable NONE is not set; the text stays as it is/),
      expect.stringMatching(/HOME%.*the text stays as it is/),
    ])
  })
  test('Gemini: $VAR and ${VAR}, an unset one stays', async () => {
    const { args, warnings } = await read('.gemini/settings.json', ['$KEY', '${KEY}/x', 'a$NONE', '$5', '${NONE:-d}'])
    expect(args).toEqual(['k', 'k/x', 'a$NONE', '$5', 'd'])
    expect(warnings).toEqual([])
  })
  test('VS Code: an unset ${env:VAR} is empty', async () => {
    const { args, warnings } = await read('.vscode/mcp.json', ['${env:KEY}', '<${env:NONE}>'], (a) => ({ servers: { a } }))
    expect(args).toEqual(['k', '<>'])
    expect(warnings).toEqual([expect.stringMatching(/NONE is not set; it is empty/)])
  })
})

describe('keys made from long names', () => {
  test.each([
    ['@modelcontextprotocol/server-sequential-thinking', 'sequential-thinking'],
    ['io.github.upstash/context7-mcp-server', 'upstash-context7'],
    ['company-internal-production-postgres', 'production-postgres'],
    ['company-internal-staging-postgres', 'staging-postgres'],
    ['averyveryverylongnamewithoutanybreak', 'averyveryverylongnam'],
    ['mcp-server', 'mcp-server'],
    ['com.example.tools/2024', 'example-tools-2024'],
  ])('%s is %s', async (name, key) => {
    await using files = await workspace({ 'm.json': JSON.stringify({ mcpServers: { [name]: { command: 'x' } } }) })
    expect((await files.load('m.json')).servers.map((server) => server.key)).toEqual([key])
  })
})

test('T-13 processes inherit how the network is reached, and it is documented', async () => {
  await using files = await workspace({ 'a.json': '{ "mcpServers": { "a": { "command": "x" } } }' })
  const network = Object.fromEntries(INHERITED.filter((name) => /PROXY|proxy|CERT|CA/.test(name)).map((name) => [name, name]))
  expect(Object.keys(network)).toEqual(
    expect.arrayContaining([
      'HTTP_PROXY',
      'http_proxy',
      'HTTPS_PROXY',
      'https_proxy',
      'NO_PROXY',
      'no_proxy',
      'NODE_EXTRA_CA_CERTS',
      'SSL_CERT_FILE',
    ]),
  )
  const { servers } = await files.load('a.json', { env: { ...network, AWS_SECRET_ACCESS_KEY: 'x', PATH: '/bin' } })
  expect(servers[0]?.launch?.env).toEqual({ ...network, PATH: '/bin' })
  const page = await readFile(new URL('../../../docs/configuration.md', import.meta.url), 'utf8')
  for (const name of INHERITED) expect(page.toLowerCase(), name).toContain(`\`${name.toLowerCase()}\``)
})
