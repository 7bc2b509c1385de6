/** The package as a stranger gets it: packed, installed in an empty folder, started. */
import { execFile } from 'node:child_process'
import { access, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTrunkline } from '../../examples/run.ts'
import { packagesIn } from '../../scripts/bundle.ts'
import { startCollector } from '../support/collector.ts'
import { connectHost } from '../support/hosts.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)
/** The Node of this test for everything that npm starts; none of what npm told us about the folder it runs in. */
const env = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(npm_|INIT_CWD|NODE_OPTIONS|VITEST)/.test(name))),
  PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH']}`,
}

/** What this test uses of the package's exports. */
interface Embedding {
  readonly createGateway: (options: { configuration: object }) => Promise<AsyncDisposable & { readonly urls: readonly string[] }>
}

let folder: string
let npx: (...words: string[]) => Promise<{ stdout: string; stderr: string }>

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trunkline-package-'))
  const packed = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: ROOT, env, maxBuffer: 2 ** 24 })
  // prepack may print before the JSON begins.
  const [{ filename }] = JSON.parse(packed.stdout.slice(packed.stdout.search(/^\[/m))) as [{ filename: string }]
  // What it depends on is taken from this checkout: no test waits for the network.
  const { dependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { dependencies: object }
  const overrides = Object.fromEntries(
    Object.keys(dependencies).map((name) => [name, `file:${join(ROOT, 'node_modules', name)}`]),
  )
  await writeFile(
    join(folder, 'package.json'),
    JSON.stringify({ private: true, dependencies: { trunkline: `file:./${filename}` }, overrides }),
  )
  const words = ['install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', '--cache', join(folder, 'cache')]
  await run('npm', words, { cwd: folder, env })
  npx = (...rest) => run('npx', ['--no-install', 'trunkline', ...rest], { cwd: folder, env })
}, 300_000)
afterAll(() => rm(folder, { recursive: true, force: true }))

const installed = (path: string): string => join(folder, 'node_modules/trunkline', path)

describe('the installed package', () => {
  test('says its version', async () => {
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string }
    expect((await npx('--version')).stdout.trim()).toBe(version)
  })

  test('holds what its manifest names, and no sources or tests', async () => {
    const { bin, exports } = JSON.parse(await readFile(installed('package.json'), 'utf8')) as {
      bin: Record<string, string>
      exports: Record<string, string | Record<string, string>>
    }
    const named = Object.values(exports).flatMap((entry) => (typeof entry === 'string' ? [entry] : Object.values(entry)))
    const files = [...Object.values(bin), ...named, 'config/trunkline.yaml', 'README.md', 'CHANGELOG.md', 'LICENSE']
    await Promise.all(files.map((file) => access(installed(file))))
    await expect(access(installed('src'))).rejects.toThrow('ENOENT')
    await expect(access(installed('test'))).rejects.toThrow('ENOENT')
  })

  test('is the program, the library and its types: a few hundred files, each reached from an entry', async () => {
    const files = await readdir(installed('dist'), { recursive: true, withFileTypes: true })
    const names = files.filter((file) => file.isFile()).map(({ name }) => name)
    expect(names.length).toBeLessThan(400)
    expect(names.filter((name) => name.endsWith('.js') && !/^(main|index)(-|\.)/.test(name))).toEqual([])
  })

  test('T-36 undici is the only package that is installed with it', async () => {
    const folders = await readdir(join(folder, 'node_modules'))
    expect(folders.filter((name) => !name.startsWith('.'))).toEqual(['trunkline', 'undici'])
  })

  test('has the licence of each package in its bundle, and an SBOM names them and what is installed, and no tool', async () => {
    const bundled = packagesIn(await readFile(installed('dist/THIRD-PARTY-LICENSES.txt'), 'utf8'))
    expect(bundled.length).toBeGreaterThan(50)
    const { stdout } = await run(process.execPath, [join(ROOT, 'scripts/sbom.ts'), installed('dist')], {
      cwd: ROOT,
      env,
      maxBuffer: 2 ** 24,
    })
    const { components, dependencies } = JSON.parse(stdout) as {
      components: { name: string; version: string; 'bom-ref': string }[]
      dependencies: { ref: string; dependsOn: string[] }[]
    }
    const { version } = JSON.parse(await readFile(join(folder, 'node_modules/undici/package.json'), 'utf8')) as {
      version: string
    }
    expect(components.map((one) => `${one.name}@${one.version}`).toSorted()).toEqual([...bundled, `undici@${version}`].toSorted())
    const known = new Set([
      ...components.map((one) => one['bom-ref']),
      `trunkline@${JSON.parse(await readFile(installed('package.json'), 'utf8')).version}`,
    ])
    expect(dependencies.flatMap(({ ref, dependsOn }) => [ref, ...dependsOn]).filter((ref) => !known.has(ref))).toEqual([])
  })

  test('its schema is found by the name that editors are told', async () => {
    const require = createRequire(join(folder, 'package.json'))
    const schema = JSON.parse(await readFile(require.resolve('trunkline/schema/v1.json'), 'utf8')) as { type: string }
    expect(schema.type).toBe('object')
  })

  test('serves a configuration, and a host uses what is behind it', async () => {
    const server = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js')
    const config = join(folder, 'trunkline.yaml')
    await writeFile(config, JSON.stringify({ servers: { demo: { command: 'node', args: [server, 'stdio'] } } }))
    await using trunkline = await startTrunkline(config, {
      command: [process.execPath, installed('dist/main.js')],
      cwd: folder,
      env: { PATH: env.PATH },
    })
    await using host = await connectHost('sdk2 auto http', { url: trunkline.url.href })
    expect(host.era).toBe('modern')
    const { content } = await host.callTool('demo__echo', { message: 'packed' })
    expect(content[0]?.text).toContain('packed')
    await host.close()
    expect(await trunkline.stop()).toBe(0)
  })

  test.each(['http/protobuf', 'grpc'] as const)('traces calls over %s with what is in it alone', async (protocol) => {
    await using collector = await startCollector(protocol)
    const server = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js')
    const config = join(folder, 'traced.yaml')
    const otlp = { endpoint: collector.url, protocol, delay: '50ms' }
    const servers = { demo: { command: 'node', args: [server, 'stdio'] } }
    await writeFile(config, JSON.stringify({ servers, telemetry: { otlp } }))
    await using trunkline = await startTrunkline(config, {
      command: [process.execPath, installed('dist/main.js')],
      cwd: folder,
      env: { PATH: env.PATH },
    })
    await using host = await connectHost('sdk2 auto http', { url: trunkline.url.href })
    await host.callTool('demo__echo', { message: 'traced' })
    await host.close()
    expect(await trunkline.stop()).toBe(0)
    const names = collector.spans.entries.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['tools/call demo__echo', 'tools/call echo']))
  })

  test('is embedded by its public exports', async () => {
    const { createGateway } = (await import(installed('dist/index.js'))) as Embedding
    const configuration = { servers: {}, listen: { http: { bind: '127.0.0.1:0' } } }
    await using gateway = await createGateway({ configuration })
    await using host = await connectHost('sdk1 http', { url: gateway.urls[0] ?? '' })
    expect(host.serverName).toBe('trunkline')
  })

  test.each([
    ['import', "await import('trunkline')"],
    ['require', "require('trunkline')"],
  ])('%s by a Node that is too old ends with the reason, before anything else is loaded', async (_, load) => {
    const older =
      "Object.defineProperty(process,'versions',{value:{...process.versions,node:'20.11.0'}});delete process.getBuiltinModule"
    const words = [
      '--import',
      `data:text/javascript,${older}`,
      ...(load.startsWith('await') ? ['--input-type=module'] : []),
      '-e',
      load,
    ]
    const { engines } = JSON.parse(await readFile(installed('package.json'), 'utf8')) as { engines: { node: string } }
    const reason = `Error: trunkline needs Node ${engines.node.replace('>=', '')} or later, and this is ${process.version}\n`
    await expect(run(process.execPath, words, { cwd: folder, env })).rejects.toMatchObject({
      stderr: expect.stringContaining(reason) as string,
    })
  })

  test('keeps the servers of a host, and enters itself in its file', async () => {
    const home = join(folder, 'home')
    await mkdir(join(home, '.cursor'), { recursive: true })
    const file = join(home, '.cursor', 'mcp.json')
    await writeFile(file, '{ "mcpServers": { "demo": { "command": "node", "args": ["server.js"] } } }')
    const own = { ...env, HOME: home, XDG_STATE_HOME: home, XDG_CONFIG_HOME: home }
    const trunkline = (...words: string[]) =>
      run(process.execPath, [installed('dist/main.js'), ...words], { cwd: home, env: own })
    await trunkline('init', 'cursor')
    expect(await readFile(join(home, 'trunkline.yaml'), 'utf8')).toContain('server.js')
    await trunkline('connect', 'cursor', '-y')
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ mcpServers: { demo: {}, trunkline: {} } })
  })

  test('a wrong word ends with 1 and says which', async () => {
    await expect(npx('--nonsense')).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('--nonsense') as string })
  })
})
