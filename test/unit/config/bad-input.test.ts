import { describe, expect, test } from 'vitest'
import { ConfigError } from '../../../src/config/syntax/problems.ts'
import { workspace, yaml } from './workspace.ts'

/** What is written, and the one line a person reads. */
const cases: readonly (readonly [string, string, string | RegExp])[] = [
  [
    'a number where a duration belongs',
    'servers:\n  github:\n    url: https://x.test/mcp\n    timeouts:\n      idle: 5\n',
    'trunkline.yaml:5:7 servers.github.timeouts.idle: expected a duration such as 30s, got 5; write a number above 0 with ms, s, m or h, at most 596h',
  ],
  ['a duration of nothing', 'reload: { drain: 0s }\n', /1:11 reload\.drain: expected a duration such as 30s, got "0s"/],
  ['a duration without unit', 'reload: { drain: "30" }\n', /got "30"/],
  [
    'a duration longer than a timer',
    'reload: { drain: 600h }\n',
    /got "600h"; write a number above 0 with ms, s, m or h, at most 596h/,
  ],
  [
    'a wrong size',
    'listen: { limits: { max_body: 4 MB } }\n',
    /listen\.limits\.max_body: expected a size such as 4MiB, got "4 MB"/,
  ],
  [
    'an unknown key with a slip',
    'servers:\n  a:\n    command: x\n    roost: [.]\n',
    'trunkline.yaml:4:5 servers.a: unknown key "roost"; did you mean "roots"?',
  ],
  ['an unknown section', 'nameing: { prefix: never }\n', 'trunkline.yaml:1:1: unknown key "nameing"; did you mean "naming"?'],
  [
    'a key of a later version',
    'naming: { quux: 1 }\n',
    'trunkline.yaml:1:11 naming: unknown key "quux"; known keys: prefix, max_length, collision',
  ],
  [
    'a word of a host',
    'servers:\n  a: { serverUrl: https://x.test, url: https://x.test }\n',
    /unknown key "serverUrl"; did you mean "url"\?/,
  ],
  [
    'a wrong type',
    'listen: { http: { sse: "yes" } }\n',
    'trunkline.yaml:1:19 listen.http.sse: expected true or false, got "yes"',
  ],
  ['a text where a mapping belongs', 'listen: 7420\n', 'trunkline.yaml:1:1 listen: expected a mapping, got 7420'],
  ['a text where a list belongs', 'servers:\n  a: { command: x, args: -v }\n', /servers\.a\.args: expected a list, got "-v"/],
  ['a server that is no mapping', 'servers:\n  a: npx\n', /2:3 servers\.a: expected a mapping with command or url/],
  ['a number out of range', 'naming: { max_length: 200 }\n', /expected a whole number from 16 to 128, got 200/],
  ['a word that is not a choice', 'naming: { prefix: sometimes }\n', /expected one of always, never, got "sometimes"/],
  ['another version', 'version: 2\n', /version: expected 1, got 2/],
  [
    'a bad address',
    'listen: { http: { bind: 7420 } }\n',
    /expected an address such as 127\.0\.0\.1:7420, a list of them, or none, got 7420/,
  ],
  ['a path in use', 'listen: { http: { path: /sse } }\n', /listen\.http\.path: \/sse is reserved/],
  [
    'revisions in the wrong order',
    'listen: { revisions: { min: 2026-07-28, max: 2025-03-26 } }\n',
    /min 2026-07-28 is later than max 2025-03-26/,
  ],
  [
    'a duplicate key',
    'servers:\n  a: { command: x }\n  a: { command: y }\n',
    'trunkline.yaml:3:3 servers.a: duplicate key "a", first written at trunkline.yaml:2:3; keep one of them',
  ],
  ['broken syntax', 'servers: {\n', /^trunkline\.yaml:\d+:\d+: .*; correct the syntax here$/],
  [
    'a second document',
    'servers: { a: { command: x } }\n---\nservers: { b: { command: y } }\n',
    'trunkline.yaml:2:1: a second document begins here, and a file has one; remove the line "---", or write two files and name one under include',
  ],
  ['a list at the top', '- a\n', 'trunkline.yaml:1:1: expected a mapping at the top; begin with "servers:"'],
  [
    'an unset variable',
    'servers:\n  a:\n    url: ${BASE}/mcp\n',
    'trunkline.yaml:3:5 servers.a.url: variable BASE is not set; set it, or give a default: ${BASE:-…}',
  ],
  [
    'an unreadable include',
    'include: [gone.yaml]\n',
    'trunkline.yaml:1:11 include[0]: gone.yaml cannot be read (ENOENT); check the path',
  ],
  [
    'an unreadable env_file',
    'env_file: .env\n',
    /env_file: env_file \.env cannot be read \(ENOENT\); create it, or remove it here/,
  ],
  [
    'a merge of YAML',
    'servers:\n  a: &b { command: x }\n  c: { <<: *b }\n',
    /servers\.c: unknown key "<<"; repeat the keys here, or set them for every server under defaults/,
  ],
  ['an env_file that is a folder', 'env_file: "."\n', /env_file: env_file \. cannot be read \(EISDIR\); name a file/],
  ['an include that is no path', 'include: [{ mcpServer: x }]\n', /include\[0\]: expected a path such as \.\/servers\/\*\.yaml/],
  ['a file that includes itself', 'include: [trunkline.yaml]\n', /include\[0\]: trunkline\.yaml is read twice; name it once/],
  [
    'a prefix that is a key',
    'servers:\n  a: { command: x }\n  b: { command: x, prefix: a }\n',
    'trunkline.yaml:3:20 servers.b.prefix: "a" is already the key or prefix of server "a" at trunkline.yaml:2:3; choose another prefix',
  ],
  [
    'two equal prefixes',
    'servers:\n  a: { command: x, prefix: p }\n  b: { command: x, prefix: p }\n',
    /servers\.b\.prefix: "p" is already .*"a" at trunkline\.yaml:2:20/,
  ],
  ['a prefix that breaks the rule', 'servers:\n  a: { command: x, prefix: a_b }\n', /expected a prefix such as gh .*got "a_b"/],
  ['a reserved prefix', 'servers:\n  a: { command: x, prefix: ui }\n', /prefix "ui" is reserved/],
  [
    'a reserved key',
    'servers:\n  mcp: { command: x }\n',
    'trunkline.yaml:2:3 servers.mcp: server key "mcp" is reserved; call it "mcp-2"',
  ],
  [
    'a key that breaks the rule',
    'servers:\n  My_Server: { command: x }\n',
    /server key "My_Server" breaks the rule: .*; call it "my-server"/,
  ],
  [
    'neither command nor url',
    'servers:\n  a: { tags: [x] }\n',
    'trunkline.yaml:2:3 servers.a: neither command nor url; give one of them, or both',
  ],
  [
    'arguments without a command',
    'servers:\n  a: { url: "http://x.test/", args: [x] }\n',
    /servers\.a\.args: "args" without command has no effect/,
  ],
  ['a transport without a url', 'servers:\n  a: { command: x, transport: sse }\n', /"transport" without url has no effect/],
  [
    'a URL of another scheme',
    'servers:\n  a: { url: ftp://x.test/ }\n',
    /expected a URL with http:\/\/ or https:\/\/ .*, got "ftp:\/\/x\.test\/"/,
  ],
  [
    'a header set by us',
    'servers:\n  a: { url: "http://x.test/", headers: { Mcp-Session-Id: x } }\n',
    /headers\.Mcp-Session-Id: header Mcp-Session-Id is set by Trunkline/,
  ],
  [
    'a header said twice',
    'servers:\n  a: { url: "http://x.test/", headers: { authorization: x }, credentials: { bearer: y } }\n',
    /already given by headers\.authorization/,
  ],
  [
    'two equal aliases',
    'servers:\n  a: { command: x, alias: { one: t, two: t } }\n',
    /servers\.a\.alias\.two: "t" is already the alias of "one"/,
  ],
  [
    'an alias hosts would refuse',
    'servers:\n  a: { command: x, alias: { one: a.b } }\n',
    /expected a name of letters, digits, _ and - \(at most 128\), got "a\.b"/,
  ],
  [
    'an address of the network',
    'listen: { http: { bind: 0.0.0.0:7420 } }\n',
    /bind: 0\.0\.0\.0:7420 can be reached from the network, and hosts are not authenticated/,
  ],
  [
    'permissions of a socket that is not there',
    'listen: { unix_mode: "0660" }\n',
    'trunkline.yaml:1:11 listen.unix_mode: "unix_mode" without unix has no effect; remove it, or name the socket: unix: ./trunkline.sock',
  ],
  [
    'an origin with a path',
    'listen: { http: { allowed_origins: ["https://a.test/x"] } }\n',
    /allowed_origins\[0\]: expected an origin/,
  ],
  ['an alias that refers to itself', 'servers: &all\n  a: *all\n', /nested deeper than 64 levels/],
  [
    'a pattern without quotes, which YAML reads as an alias',
    'servers:\n  a: { command: x, filter: { deny: [x, *_delete] } }\n',
    'trunkline.yaml:2:40: there is no anchor &_delete for *_delete; write a text that begins with * in quotes',
  ],
  [
    'a section that is an alias of nothing',
    'servers:\n  a: { command: x }\npolicy: *rules\n',
    'trunkline.yaml:3:9: there is no anchor &rules for *rules; write a text that begins with * in quotes',
  ],
  [
    'a pattern of only *',
    'servers:\n  a: { command: x, filter: { deny: * } }\n',
    /^trunkline\.yaml:2:36: .*; write a text that begins with \* in quotes$/,
  ],
  ['a package with a scope', 'servers:\n  a: { command: npx, args: [-y, @scope/x] }\n', /2:33: .* @; write it in quotes$/],
  [
    'a path of Windows in double quotes',
    'servers:\n  a: { command: "C:\\Users\\x" }\n',
    /^trunkline\.yaml:2:20: .*; write it in single quotes, where \\ is an ordinary character$/,
  ],
]

describe('a configuration is refused with its place and a remedy', () => {
  test.each(cases)('%s', async (_, text, line) => {
    await using files = await yaml(text)
    const errors = await files.errors()
    expect(errors).toHaveLength(1)
    expect(errors[0]).toMatch(typeof line === 'string' ? exactly(line) : line)
  })

  test('all errors are told at once, in the order of the file', async () => {
    await using files = await workspace({
      'trunkline.yaml':
        'versoin: 1\nservers:\n  a: { command: 5, url: "${NOPE}" }\n  b: {}\n  c_d: { command: x, prefix: a }\ninclude: [gone.yaml]\n',
    })
    expect(await files.errors()).toEqual([
      expect.stringMatching(/^trunkline\.yaml:1:1: unknown key "versoin"/),
      expect.stringMatching(/^trunkline\.yaml:3:8 servers\.a\.command: expected a text/),
      expect.stringMatching(/^trunkline\.yaml:3:20 servers\.a\.url: variable NOPE is not set/),
      expect.stringMatching(/^trunkline\.yaml:4:3 servers\.b: neither command nor url/),
      expect.stringMatching(/^trunkline\.yaml:5:3 servers\.c_d: server key "c_d" breaks the rule/),
      expect.stringMatching(/^trunkline\.yaml:5:22 servers\.c_d\.prefix: "a" is already/),
      expect.stringMatching(/^trunkline\.yaml:6:11 include\[0\]: gone\.yaml cannot be read/),
    ])
  })

  test('a problem carries its parts for --json', async () => {
    await using files = await yaml('naming: { max_length: few }\n')
    await expect(files.load()).rejects.toSatisfy((error) => error instanceof ConfigError && error.problems.length === 1)
    await expect(files.load()).rejects.toMatchObject({
      problems: [
        {
          place: 'trunkline.yaml:1:11',
          path: 'naming.max_length',
          message: 'expected a whole number from 16 to 128, got "few"',
          remedy: '',
        },
      ],
    })
  })

  test('a file that does not exist, and a folder', async () => {
    await using files = await workspace({})
    expect(await files.errors('gone.yaml')).toEqual(['gone.yaml:1:1: cannot be read (ENOENT); check the path'])
    expect(await files.errors('.')).toEqual(['.:1:1: is a folder; name a YAML, JSON or TOML file in it'])
    expect(await files.errors('/dev/null')).toEqual(['/dev/null:1:1: is not a file; name a YAML, JSON or TOML file'])
  })

  test('T-12 a file that everyone may write is refused', async () => {
    await using files = await workspace({})
    await files.write('trunkline.yaml', 'servers: {}\n', 0o666)
    expect(await files.errors()).toEqual([
      'trunkline.yaml:1:1: can be written by every user, and a configuration runs commands; chmod o-w trunkline.yaml',
    ])
    await files.write('trunkline.yaml', 'env_file: .env\n')
    await files.write('.env', 'A=1\n', 0o666)
    expect(await files.errors()).toEqual([expect.stringContaining('env_file .env can be written by every user')])
  })

  test('T-14 no message shows a password, a token or what a variable holds', async () => {
    await using files = await yaml(
      [
        'servers:',
        '  a: { url: "https://me:hunter2@x.test/" }',
        '  b: { url: "https://x.test/", credentials: { bearer: "hunter2\\u0007" } }',
        '  c: { url: "${SECRET_URL}" }',
        'state: { key: hunter2 }',
        'store: "redis://:a/hunter2@store.test:6379/0"',
      ].join('\n'),
    )
    const errors = await files.errors(undefined, { env: { SECRET_URL: 'hunter2' } })
    expect(errors).toHaveLength(6)
    expect(errors.join('\n')).not.toContain('hunter2')
  })
})

const exactly = (line: string) => new RegExp(`^${line.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`)
