/** The SDKs that have peers here: what is pinned, how it is set up, and how its servers and hosts are started. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export type Transport = 'stdio' | 'sse' | 'http'
export type Language = 'typescript' | 'python' | 'go'

/** A program and its first arguments. */
export type Command = readonly string[]

/** One SDK: a server and a host on it. */
export interface Sdk {
  /** Unique; in the page, and in names of tests. */
  readonly key: string
  readonly language: Language
  /** The package, and its version as the lock file pins it. */
  readonly name: string
  readonly version: string
  readonly server: Command
  readonly host: Command
  readonly serves: readonly Transport[]
  readonly connects: readonly Transport[]
}

const HERE = fileURLToPath(new URL('.', import.meta.url))
/** Where set-up puts what it downloads and builds; git ignores it. */
const CACHE = join(HERE, '../../.peers')
const ALL: readonly Transport[] = ['stdio', 'sse', 'http']
const run = promisify(execFile)

const npmVersion = (name: string): string =>
  (JSON.parse(readFileSync(join(HERE, `../../node_modules/${name}/package.json`), 'utf8')) as { version: string }).version

/** The official SDKs of TypeScript, from devDependencies: what the others are paired with. */
export const TYPESCRIPT_1: Sdk = {
  key: 'typescript-1',
  language: 'typescript',
  name: '@modelcontextprotocol/sdk',
  version: npmVersion('@modelcontextprotocol/sdk'),
  server: [process.execPath, `${HERE}typescript/server-sdk1.ts`],
  host: [process.execPath, `${HERE}typescript/host-sdk1.ts`],
  serves: ALL,
  connects: ALL,
}
export const TYPESCRIPT_2: Sdk = {
  key: 'typescript-2',
  language: 'typescript',
  name: '@modelcontextprotocol/server and client',
  version: npmVersion('@modelcontextprotocol/server'),
  server: [process.execPath, `${HERE}typescript/server-sdk2.ts`],
  host: [process.execPath, `${HERE}typescript/host-sdk2.ts`],
  serves: ['stdio', 'http'],
  connects: ['stdio', 'http'],
}

/** A folder whose name holds a digest of what it is made from, so that a changed lock file or source makes a new one. */
const madeFrom = (name: string, ...files: string[]): string => {
  const digest = createHash('sha256')
  for (const file of files) digest.update(readFileSync(join(HERE, file)))
  return join(CACHE, `${name}-${digest.digest('hex').slice(0, 12)}`)
}

/** Makes a folder once: `make` works in it, and what it leaves half done is made again. */
const makeOnce = async (folder: string, make: () => Promise<void>): Promise<void> => {
  const done = join(folder, '.done')
  if ((await readFile(done).catch(() => undefined)) !== undefined) return
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  await make()
  await writeFile(done, '')
}

/** The environments: a lock file of pip each; FastMCP 4 brings the official SDK 2. */
const ENVIRONMENTS = ['mcp1', 'fastmcp4'] as const
const environment = (lock: (typeof ENVIRONMENTS)[number]): string => madeFrom(lock, `python/${lock}.lock`)

const pythonSdk = (key: string, lock: (typeof ENVIRONMENTS)[number], name: string): Sdk => {
  const python = join(environment(lock), 'bin/python')
  const pins = readFileSync(join(HERE, `python/${lock}.lock`), 'utf8')
  return {
    key: `python-${key}`,
    language: 'python',
    name,
    version: new RegExp(`^${name}==(.+)$`, 'm').exec(pins)?.[1] ?? '',
    server: [python, `${HERE}python/server.py`, key],
    host: [python, `${HERE}python/host_${key}.py`],
    serves: ALL,
    connects: ALL,
  }
}

interface LanguageSetup {
  readonly sdks: readonly Sdk[]
  /** Programs of `.ci/programs`, without which nothing of it runs. */
  readonly needs: readonly string[]
  /** Downloads and builds what is not there yet. Rejects where that is impossible, with the reason. */
  readonly setUp: () => Promise<void>
}

const python: LanguageSetup = {
  sdks: [pythonSdk('mcp1', 'mcp1', 'mcp'), pythonSdk('mcp2', 'fastmcp4', 'mcp'), pythonSdk('fastmcp4', 'fastmcp4', 'fastmcp')],
  needs: ['python3', 'venv'],
  setUp: async () => {
    const make = (lock: (typeof ENVIRONMENTS)[number]) => {
      const folder = environment(lock)
      return makeOnce(folder, async () => {
        await run('python3', ['-m', 'venv', folder])
        const quiet = ['--quiet', '--disable-pip-version-check', '--no-compile', '--no-deps']
        await run(join(folder, 'bin/python'), ['-m', 'pip', 'install', ...quiet, '-r', join(HERE, `python/${lock}.lock`)])
      })
    }
    await Promise.all(ENVIRONMENTS.map(make))
  },
}

/** The programs, built from one module; 1.0 of the SDK has a module file of its own. */
const GO = {
  'go-sdk1.0': {
    package: './sdk',
    build: ['-modfile=sdk1.0.mod', '-tags=sdk10'],
    mod: 'sdk1.0',
    name: 'modelcontextprotocol/go-sdk',
  },
  'go-sdk1.8': { package: './sdk', build: [], mod: 'go', name: 'modelcontextprotocol/go-sdk' },
  'go-mcpgo': { package: './mcpgo', build: [], mod: 'go', name: 'mark3labs/mcp-go' },
} as const
const GO_SOURCES = [
  'wire/wire',
  'sdk/main',
  'sdk/server',
  'sdk/host',
  'sdk/questions',
  'sdk/sdk10',
  'sdk/sdk18',
  'mcpgo/main',
  'mcpgo/server',
  'mcpgo/host',
]
const goFolder = (): string =>
  madeFrom(
    'go',
    ...GO_SOURCES.map((source) => `go/${source}.go`),
    ...['go.mod', 'go.sum', 'sdk1.0.mod', 'sdk1.0.sum'].map((file) => `go/${file}`),
  )

const go: LanguageSetup = {
  sdks: Object.entries(GO).map(([key, { mod, name }]) => {
    const program = join(goFolder(), key)
    const pins = readFileSync(join(HERE, `go/${mod}.mod`), 'utf8')
    return {
      key,
      language: 'go',
      name,
      version: new RegExp(`github.com/${name} v(\\S+)`).exec(pins)?.[1] ?? '',
      server: [program, 'server'],
      host: [program, 'host'],
      serves: ALL,
      // The host of mcp-go answers no requests over HTTP+SSE.
      connects: key === 'go-mcpgo' ? (['stdio', 'http'] as const) : ALL,
    }
  }),
  needs: ['go1.25'],
  setUp: async () => {
    const folder = goFolder()
    await makeOnce(folder, async () => {
      for (const [key, { package: source, build }] of Object.entries(GO))
        await run('go', ['build', ...build, '-o', join(folder, key), source], {
          cwd: join(HERE, 'go'),
          env: { ...process.env, GOFLAGS: '' },
        })
    })
  },
}

export const LANGUAGES = { python, go } as const satisfies Record<string, LanguageSetup>
export type PeerLanguage = keyof typeof LANGUAGES
