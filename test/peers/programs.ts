/**
 * Real programs beside the peers (`npm run peers programs`): servers that people install, frameworks as hosts, and bridges that stand
 * between a host or a server and Trunkline. Their tools are their own, and so are the scenarios: list, a call, an error, and a call after
 * the server's process was killed.
 */
import { readFileSync } from 'node:fs'
import { cp, mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PROGRAM } from '../support/program.ts'
import type { Bridge, Group } from './cells.ts'
import { environment, HERE, madeFrom, makeEnvironment, makeOnce, run, TYPESCRIPT_1, TYPESCRIPT_2 } from './languages.ts'
import type { Command, Sdk, Transport } from './languages.ts'
import type { Json, Scenario } from './scenarios.ts'

/** The lock files of Python; mcp-proxy and the frameworks ask for different versions of the same packages. */
const LOCKS = ['programs', 'mcpproxy', 'langchain', 'pydanticai'] as const
const npmFolder = (): string => madeFrom('programs', 'programs/npm.json', 'programs/npm-lock.json')
const SPRING_SOURCES = ['pom.xml', 'src/main/java/peers/SpringPeer.java', 'src/main/resources/application.properties']
const springFolder = (): string => madeFrom('spring', ...SPRING_SOURCES.map((source) => `spring/${source}`))
const SCENE = join(HERE, 'scene.ts')
/** A folder with what some servers work on: a repository with one commit, and a file for a cluster that is not there. */
const sceneFolder = (): string => madeFrom('scene', 'scene.ts')

export const setUpPrograms = async (): Promise<void> => {
  await Promise.all(LOCKS.map(makeEnvironment))
  const folder = npmFolder()
  await makeOnce(folder, async () => {
    await cp(join(HERE, 'programs/npm.json'), join(folder, 'package.json'))
    await cp(join(HERE, 'programs/npm-lock.json'), join(folder, 'package-lock.json'))
    // Not `npm ci`: a lock that was made on one platform lacks the optional packages of others, which that refuses.
    await run('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', folder], {
      cwd: folder,
      maxBuffer: 64 << 20,
    })
  })
  await makeOnce(springFolder(), () =>
    run('mvn', ['-q', '-B', '-f', join(HERE, 'spring/pom.xml'), `-Dfolder=${springFolder()}`, 'package'], {
      maxBuffer: 64 << 20,
    }).then(() => undefined),
  )
  await makeOnce(sceneFolder(), () => run(process.execPath, [SCENE, sceneFolder()]).then(() => undefined))
}

const pythonVersion = (lock: string, name: string): string =>
  new RegExp(`^${name}==(.+)$`, 'm').exec(readFileSync(join(HERE, `python/${lock}.lock`), 'utf8'))?.[1] ?? ''
const npmVersion = (name: string): string =>
  (JSON.parse(readFileSync(join(HERE, 'programs/npm.json'), 'utf8')) as { dependencies: Record<string, string> }).dependencies[
    name
  ] ?? ''

/** A server by its command line; over HTTP `$1` is its port. */
const program = (key: string, version: string, line: string, serves: readonly Transport[] = ['stdio']): Sdk => ({
  key,
  language: 'program',
  name: key,
  version,
  server: ['sh', '-c', line],
  host: [],
  serves,
  connects: [],
})
const inPython = (key: string, line: string): Sdk =>
  program(key, pythonVersion('programs', key), `exec '${join(environment('programs'), 'bin')}'/${line}`)
const bin = (name: string): string => join(npmFolder(), 'node_modules/.bin', name)
const framework = (key: string, lock: string, name: string): Sdk => ({
  key,
  language: 'program',
  name,
  version: pythonVersion(lock, name),
  server: [],
  host: [join(environment(lock), 'bin/python'), `${HERE}python/host_${lock}.py`],
  serves: [],
  connects: ['stdio', 'sse', 'http'],
})

const LANGCHAIN = framework('langchain', 'langchain', 'langchain-mcp-adapters')
const PYDANTIC_AI = framework('pydantic-ai', 'pydanticai', 'pydantic-ai-slim')
const FRAMEWORKS: readonly Sdk[] = [LANGCHAIN, PYDANTIC_AI]

const call = (name: string, args: Json | (() => Promise<Json>)): Scenario => ({
  name: `call: ${name}`,
  run: async (host) => host.do('call', { name, arguments: typeof args === 'function' ? await args() : args }),
})
const lists: readonly Scenario[] = ['tools', 'resources', 'resourceTemplates', 'prompts'].map((of) => ({
  name: `${of}: list, every page`,
  run: (host) => host.do('list', { of }),
}))
const failing = (name: string, args: Json): Scenario => ({ ...call(name, args), name: `error: ${name}` })

/** A page on loopback for the server that fetches, the same for every run of one process. */
let page: Promise<string> | undefined
const pageUrl = (): Promise<string> =>
  (page ??= new Promise((resolve) => {
    const server = createServer((_, response) => {
      response.setHeader('content-type', 'text/html')
      response.end('<html><body><h1>Title</h1><p>Some text.</p></body></html>')
    })
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}/page`))
    server.unref()
  }))

const repository = join(sceneFolder(), 'repository')
interface Real {
  readonly server: Sdk
  readonly scenarios: readonly Scenario[]
  readonly prints?: string
}
const kubernetes = `KUBECONFIG='${join(sceneFolder(), 'kubeconfig')}' exec '${bin('kubernetes-mcp-server')}'`
const KUBERNETES = (key: string, line: string, serves: readonly Transport[]): Real => ({
  server: program(key, npmVersion('kubernetes-mcp-server'), line, serves),
  scenarios: [...lists, call('configuration_view', {}), failing('pods_list', {})],
})
const SERVERS: readonly Real[] = [
  {
    server: inPython('mcp-server-git', 'mcp-server-git'),
    scenarios: [
      ...lists,
      call('git_status', { repo_path: repository }),
      call('git_log', { repo_path: repository, max_count: 1 }),
      failing('git_status', { repo_path: '/nowhere' }),
      failing('git_log', {}),
    ],
  },
  {
    server: inPython('mcp-server-time', 'mcp-server-time --local-timezone UTC'),
    scenarios: [
      ...lists,
      call('convert_time', { source_timezone: 'Europe/Berlin', time: '12:00', target_timezone: 'Asia/Tokyo' }),
      failing('get_current_time', { timezone: 'Nowhere/City' }),
    ],
  },
  {
    server: inPython('mcp-server-fetch', 'mcp-server-fetch --ignore-robots-txt'),
    scenarios: [
      ...lists,
      call('fetch', async () => ({ url: await pageUrl() })),
      failing('fetch', { url: 'http://127.0.0.1:9/' }),
    ],
  },
  KUBERNETES('kubernetes-mcp-server', kubernetes, ['stdio']),
  KUBERNETES('kubernetes-mcp-server-http', `${kubernetes} --port "$1"`, ['http']),
  {
    server: program('terraform-mcp-server', npmVersion('terraform-mcp-server'), `exec '${bin('terraform-mcp-server')}'`),
    scenarios: [...lists, failing('providerDetails', {})],
  },
  {
    server: program(
      'spring-boot',
      /<spring-ai.version>(.+)</.exec(readFileSync(join(HERE, 'spring/pom.xml'), 'utf8'))?.[1] ?? '',
      `exec java -XX:TieredStopAtLevel=1 -Dfile.encoding=UTF-8 -jar '${join(springFolder(), 'spring-peer-1.jar')}'`,
    ),
    scenarios: [
      ...lists,
      call('echo', { text: 'ünï "x"' }),
      call('noisy', { lines: 20 }),
      failing('fail', {}),
      failing('echo', {}),
    ],
    prints: ':: Spring Boot ::',
  },
]

const hosts = [TYPESCRIPT_1, TYPESCRIPT_2]
const ways = ['merged', 'alone'] as const

/** A program that is started with a URL, and speaks stdio. */
const bridge = (name: string, command: Bridge['command']): readonly Bridge[] =>
  (['host', 'server'] as const).map((side) => ({ name, side, command }))

/** A second Trunkline, as the only server of which the first stands. */
const chained = async (url: string): Promise<Command> => {
  const folder = await mkdtemp(join(tmpdir(), 'trunkline-chain-'))
  await mkdir(folder, { recursive: true })
  const file = join(folder, 'trunkline.json')
  await writeFile(file, JSON.stringify({ servers: { next: { url } }, state: { dir: join(folder, 'state') } }))
  return [process.execPath, PROGRAM, 'stdio', '-c', file, '--server', 'next']
}
const BRIDGES: readonly Bridge[] = [
  ...bridge('mcp-remote', (url) => [process.execPath, bin('mcp-remote'), url, '--allow-http', '--transport', 'http-only']),
  ...bridge('supergateway', (url) => [process.execPath, bin('supergateway'), '--streamableHttp', url, '--logLevel', 'none']),
  ...bridge('mcp-proxy', (url) => [join(environment('mcpproxy'), 'bin/mcp-proxy'), '--transport', 'streamablehttp', url]),
  ...bridge('trunkline', chained),
]

/** The version of a program that stands between, as it is pinned; of Trunkline none. */
export const bridgeVersion = (name: string): string =>
  name === 'trunkline' ? '–' : npmVersion(name) || pythonVersion('mcpproxy', name)

/** What these programs offer to stdio servers: a URL. */
const typescript = TYPESCRIPT_1.server.map((word) => `'${word}'`).join(' ')
const FRONTS: readonly Sdk[] = [
  program(
    'supergateway-http',
    npmVersion('supergateway'),
    `exec '${bin('supergateway')}' --stdio "${typescript} stdio" --outputTransport streamableHttp --stateful --port "$1" --logLevel none`,
    ['http'],
  ),
  program(
    'supergateway-sse',
    npmVersion('supergateway'),
    `exec '${bin('supergateway')}' --stdio "${typescript} stdio" --outputTransport sse --port "$1" --logLevel none`,
    ['sse'],
  ),
  program(
    'mcp-proxy-http',
    pythonVersion('mcpproxy', 'mcp-proxy'),
    `exec '${join(environment('mcpproxy'), 'bin/mcp-proxy')}' --port "$1" -- ${typescript} stdio`,
    ['http'],
  ),
]

export const PROGRAMS: readonly Sdk[] = [...SERVERS.map(({ server }) => server), ...FRONTS, ...FRAMEWORKS]

const FRAMEWORK_SCENARIOS: readonly Scenario[] = [
  { name: 'tools: list, every page', run: (host) => host.do('list', { of: 'tools' }) },
  call('echo', { text: 'hello' }),
  call('structured', { n: 2 }),
  call('blocks', {}),
  failing('fail', {}),
  failing('refuse', {}),
  failing('echo', { times: 9 }),
]

export const programGroups = (): readonly Group[] => [
  ...SERVERS.flatMap(({ server, scenarios, prints }) =>
    server.serves.map((transport) => ({ server, transport, hosts, ways, scenarios, ...(prints !== undefined && { prints }) })),
  ),
  ...FRONTS.flatMap((server) => server.serves.map((transport) => ({ server, transport, hosts: [TYPESCRIPT_1], ways }))),
  ...BRIDGES.map((one) => ({ server: TYPESCRIPT_1, transport: 'http' as const, hosts: [TYPESCRIPT_1], ways, bridge: one })),
  ...(['stdio', 'sse', 'http'] as const).map((transport) => ({
    server: TYPESCRIPT_1,
    transport,
    hosts: FRAMEWORKS,
    ways,
    scenarios: FRAMEWORK_SCENARIOS,
  })),
]
