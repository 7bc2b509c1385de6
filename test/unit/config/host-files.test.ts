import { describe, expect, test } from 'vitest'
import { workspace } from './workspace.ts'

describe('files of hosts, read as they are', () => {
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

  test('errors point into the file of the host, under the names it uses', async () => {
    await using files = await workspace({
      '.mcp.json':
        '{\n "mcpServers": {\n  "My Server": {\n   "serverUrl": "nope"\n  },\n  "b": { "type": "ws", "url": "https://x.test" },\n  "c": 1,\n  "d": {}\n }\n}',
    })
    expect(await files.errors('.mcp.json')).toEqual([
      expect.stringMatching(/^\.mcp\.json:4:4 mcpServers\."My Server"\.serverUrl: expected a URL/),
      '.mcp.json:6:10 mcpServers.b.type: transport "ws" is not known; use stdio, http or sse',
      '.mcp.json:7:3 mcpServers.c: expected a mapping',
      expect.stringMatching(/^\.mcp\.json:8:3 mcpServers\.d: neither command nor url/),
    ])
  })
})
