/** What a `server.json` of the registry becomes as an entry of a configuration. */
import { describe, expect, test } from 'vitest'
import { InstallError } from '../../../src/install/inputs.ts'
import type { Answer, InputRequest } from '../../../src/install/inputs.ts'
import { draftOf, readServerJson, sourcesOf } from '../../../src/install/server-json.ts'
import type { ServerJson } from '../../../src/install/server-json.ts'

type Package = NonNullable<ServerJson['packages']>[number]

const none: Answer = () => Promise.resolve(undefined)
const standard: Answer = (request) => Promise.resolve(request.standard)
const of = (...packages: readonly Package[]): ServerJson => ({ name: 'io.example/server', packages: [...packages] })
const npm: Package = { registryType: 'npm', identifier: '@example/server', version: '1.2.3' }

describe('a package', () => {
  test.each<readonly [string, Package, object]>([
    ['npm', npm, { command: 'npx', args: ['-y', '@example/server@1.2.3'] }],
    ['npm, its latest version', { ...npm, version: 'latest' }, { command: 'npx', args: ['-y', '@example/server'] }],
    ['npm, without a version', { registryType: 'npm', identifier: 'server' }, { command: 'npx', args: ['-y', 'server'] }],
    [
      'npm, that says yes itself',
      {
        ...npm,
        runtimeArguments: [
          { type: 'positional', value: '-y' },
          { type: 'named', name: '--quiet', isRequired: true },
        ],
      },
      { command: 'npx', args: ['-y', '--quiet', '@example/server@1.2.3'] },
    ],
    ['pypi', { registryType: 'pypi', identifier: 'server', version: '2' }, { command: 'uvx', args: ['server@2'] }],
    [
      'nuget, that says yes itself',
      {
        registryType: 'nuget',
        identifier: 'Server',
        runtimeArguments: [
          { type: 'positional', value: '--yes' },
          { type: 'positional', value: '--quiet' },
        ],
      },
      { command: 'dnx', args: ['Server', '--quiet', '--yes'] },
    ],
    ['nuget', { registryType: 'nuget', identifier: 'Server', version: '3' }, { command: 'dnx', args: ['Server@3', '--yes'] }],
    [
      'oci',
      {
        registryType: 'oci',
        identifier: 'docker.io/example/server',
        version: '4',
        environmentVariables: [{ name: 'A', value: 'b' }],
      },
      { command: 'docker', args: ['run', '-i', '--rm', '-e', 'A', 'docker.io/example/server:4'], env: { A: 'b' } },
    ],
    [
      'oci, with its tag in the name',
      { registryType: 'oci', identifier: 'example/server:4', version: '5' },
      { command: 'docker', args: ['run', '-i', '--rm', 'example/server:4'] },
    ],
  ])('%s', async (_, pack, draft) => {
    expect(await draftOf(of(pack), none, undefined)).toEqual(draft)
  })

  test('over stdio is started, whether it says so or not', async () => {
    const draft = { command: 'npx', args: ['-y', '@example/server@1.2.3'] }
    expect(await draftOf(of({ ...npm, transport: { type: 'stdio' } }), none, undefined)).toEqual(draft)
    expect(await draftOf(of(npm), none, undefined)).toEqual(draft)
    const withUrl = { type: 'stdio', url: 'http://127.0.0.1:1/mcp' }
    expect(await draftOf(of({ ...npm, transport: withUrl }), none, undefined)).toEqual(draft)
  })

  test.each(['streamable-http', 'sse'])('that serves %s is started, and reached at its URL', async (type) => {
    const transport = { type, url: 'http://127.0.0.1:{port}/mcp', variables: { port: { default: '3000' } } }
    expect(await draftOf(of({ ...npm, transport }), standard, undefined)).toEqual({
      command: 'npx',
      args: ['-y', '@example/server@1.2.3'],
      url: 'http://127.0.0.1:3000/mcp',
    })
  })

  test('that serves a transport at no URL is refused, and the transport named', async () => {
    await expect(draftOf(of({ ...npm, transport: { type: 'sse' } }), none, undefined)).rejects.toThrow(
      new InstallError('the package @example/server has the transport sse but no URL'),
    )
  })

  test.each([
    [{ identifier: '--version' }, '"--version" is not a valid name of a package of npm'],
    [{ identifier: 'a b' }, '"a b" is not a valid name of a package of npm'],
    [{ version: '-x' }, '"@example/server" is not a valid name of a package of npm'],
    [{ version: '1 2' }, '"@example/server" is not a valid name of a package of npm'],
  ])('whose name or version could be an option or two words is refused: %j', async (change, message) => {
    await expect(draftOf(of({ ...npm, ...change }), none, undefined)).rejects.toThrow(message)
  })

  test('has its own arguments in their order; those with neither value nor answer are left out', async () => {
    const packageArguments: Package['packageArguments'] = [
      { type: 'named', name: '--flag', isRequired: true },
      { type: 'named', name: '--optional' },
      { type: 'named', name: '--level', default: 'high' },
      { type: 'named', name: '--file', valueHint: 'path' },
      { type: 'positional', valueHint: 'folder', value: '${HOME}/{name}', variables: { name: { value: 'notes' } } },
    ]
    expect(await draftOf(of({ ...npm, packageArguments }), standard, undefined)).toMatchObject({
      args: ['-y', '@example/server@1.2.3', '--flag', '--level', 'high', '$${HOME}/notes'],
    })
  })
})

test('a required argument has its name, and its value where it can have one; each is asked for by its name', async () => {
  const asked: string[] = []
  const answer: Answer = ({ name }) => {
    asked.push(name)
    return Promise.resolve(`<${name}>`)
  }
  const packageArguments: Package['packageArguments'] = [
    { type: 'named', name: '--flag', isRequired: true },
    { type: 'named', name: '--fixed', value: 'f', isRequired: true },
    { type: 'named', name: '--default', default: 'd', isRequired: true },
    { type: 'named', name: '--hinted', valueHint: 'path', isRequired: true },
    { type: 'named', isRequired: true },
    { type: 'positional', name: 'folder', valueHint: 'path', isRequired: true },
    { type: 'positional', valueHint: 'file', isRequired: true },
    { type: 'positional', name: 'unasked', value: 'p' },
  ]
  const draft = await draftOf(of({ ...npm, packageArguments }), answer, undefined)
  expect(asked).toEqual(['--default', '--hinted', 'argument', 'folder', 'file'])
  const own = [
    '--flag',
    '--fixed',
    'f',
    '--default',
    '<--default>',
    '--hinted',
    '<--hinted>',
    '<argument>',
    '<folder>',
    '<file>',
    'p',
  ]
  expect(draft).toEqual({ command: 'npx', args: ['-y', '@example/server@1.2.3', ...own] })
})

describe('a remote', () => {
  test('over Streamable HTTP is preferred; its headers are filled in', async () => {
    const server: ServerJson = {
      name: 'io.example/server',
      remotes: [
        { type: 'sse', url: 'https://example.com/sse' },
        { type: 'streamable-http', url: 'https://example.com/mcp', headers: [{ name: 'X-Key', value: 'k' }, { name: 'X-None' }] },
      ],
    }
    expect(await draftOf(server, none, undefined)).toEqual({ url: 'https://example.com/mcp', headers: { 'X-Key': 'k' } })
  })

  test('over HTTP+SSE says so', async () => {
    const server: ServerJson = { name: 'io.example/server', remotes: [{ type: 'sse', url: 'https://example.com/sse' }] }
    expect(await draftOf(server, none, undefined)).toEqual({ url: 'https://example.com/sse', transport: 'sse' })
  })

  test.each(['ftp://example.com/mcp', 'mcp', ''])('at %j cannot be reached', async (url) => {
    const server: ServerJson = { name: 'io.example/server', remotes: [{ type: 'sse', url }] }
    await expect(draftOf(server, none, undefined)).rejects.toThrow('is not a valid HTTP URL')
  })
})

describe('what is chosen', () => {
  const both: ServerJson = {
    ...of(npm, { registryType: 'mcpb', identifier: 'x' }),
    remotes: [{ type: 'sse', url: 'https://example.com' }],
  }

  test('the remote, where nothing was said; else what was', async () => {
    expect(sourcesOf(both)).toEqual(['remote', 'npm'])
    expect(await draftOf(both, none, undefined)).toMatchObject({ url: 'https://example.com' })
    expect(await draftOf(both, none, 'npm')).toMatchObject({ command: 'npx' })
    await expect(draftOf(both, none, 'oci')).rejects.toThrow('io.example/server has no oci; it has remote, npm')
  })

  test.each([
    [{}, 'io.example/server names no remote and no package that can be run here'],
    [{ packages: [{ registryType: 'cargo', identifier: 'x' }] }, 'that can be run here (cargo)'],
    [{ packages: [{ registryType: 'mcpb', identifier: 'x' }] }, 'is a bundle; download its .mcpb file and add that'],
    [{ remotes: [{ type: 'sse' }] }, 'names no remote'],
  ])('nothing of %j can be run: the reason is told', async (offer, message) => {
    await expect(draftOf({ name: 'io.example/server', ...offer }, none, undefined)).rejects.toThrow(message)
  })
})

test('what is left open is asked for as it is described; variables of a fixed value always need one', async () => {
  const requests: InputRequest[] = []
  const remote = {
    type: 'streamable-http',
    url: 'https://{region}.example.com/{fixed}',
    variables: {
      region: { description: 'Region', choices: ['eu', 'us'], default: 'e${u}' },
      fixed: { value: 'mcp' },
      unused: {},
    },
    headers: [
      { name: 'X-Key', isRequired: true, isSecret: true },
      { name: 'X-Open' },
      { name: 'X-Two', value: '{region} {a}', variables: { a: {} } },
    ],
  }
  const answer: Answer = (request) => {
    requests.push(request)
    return Promise.resolve(request.name === 'X-Key' ? 'k' : undefined)
  }
  const draft = await draftOf({ name: 'io.example/server', remotes: [remote] }, answer, undefined)
  expect(draft).toEqual({ url: 'https://.example.com/mcp', headers: { 'X-Key': 'k', 'X-Two': '{region} ' } })
  const open = { description: undefined, isRequired: false, isSecret: false, standard: undefined, choices: undefined }
  expect(requests).toEqual([
    { ...open, name: 'region', description: 'Region', isRequired: true, standard: 'e$${u}', choices: ['eu', 'us'] },
    { ...open, name: 'X-Key', isRequired: true, isSecret: true },
    { ...open, name: 'X-Open' },
    { ...open, name: 'a', isRequired: true },
  ])
})

test('what is no server.json is told with the place', () => {
  expect(() => readServerJson('{', 'a.json')).toThrow('a.json is not JSON; name a server.json')
  expect(() => readServerJson('[]', 'a.json')).toThrow('a.json is not a valid server.json (top level: ')
  expect(() => readServerJson('{"name":"x"}', 'a.json')).toThrow('a.json is not a valid server.json (name: ')
})
