/** The SDKs that have peers here: what is pinned, how it is set up, and how its servers and hosts are started. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { acquireFileLock, releaseFileLock } from '../../src/file-lock.ts'
import { peerProgram } from '../support/peer-program.ts'

export type Transport = 'stdio' | 'sse' | 'http'
export type Language = 'typescript' | 'python' | 'go' | 'java' | 'rust' | 'program'

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
  /** What a user has set on it; absent: nothing. */
  readonly option?: string
}

export const HERE = fileURLToPath(new URL('.', import.meta.url))
/** Where set-up puts what it downloads and builds: outside the repository, so that every clone and worktree finds it. */
const CACHE = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'trunkline-peers')
const ALL: readonly Transport[] = ['stdio', 'sse', 'http']
export const run = promisify(execFile)

const npmVersion = (name: string): string =>
  (JSON.parse(readFileSync(join(HERE, `../../node_modules/${name}/package.json`), 'utf8')) as { version: string }).version

/** The official SDKs of TypeScript, from devDependencies: what the others are paired with. */
export const TYPESCRIPT_1: Sdk = {
  key: 'typescript-1',
  language: 'typescript',
  name: '@modelcontextprotocol/sdk',
  version: npmVersion('@modelcontextprotocol/sdk'),
  server: [process.execPath, peerProgram('typescript/server-sdk1')],
  host: [process.execPath, peerProgram('typescript/host-sdk1')],
  serves: ALL,
  connects: ALL,
}
export const TYPESCRIPT_2: Sdk = {
  key: 'typescript-2',
  language: 'typescript',
  name: '@modelcontextprotocol/server and client',
  version: npmVersion('@modelcontextprotocol/server'),
  server: [process.execPath, peerProgram('typescript/server-sdk2')],
  host: [process.execPath, peerProgram('typescript/host-sdk2')],
  serves: ['stdio', 'http'],
  connects: ['stdio', 'http'],
}

/** The SDK with an option that its users set: the words go behind the program of each side, before the role and the transport. */
const withOption = (sdk: Sdk, option: string, { server = [], host = [] }: { server?: Command; host?: Command }): Sdk => {
  const count = sdk.language === 'go' ? 1 : 2
  const put = (command: Command, words: Command): Command => [...command.slice(0, count), ...words, ...command.slice(count)]
  return { ...sdk, key: `${sdk.key} (${option})`, option, server: put(sdk.server, server), host: put(sdk.host, host) }
}

/** The SDK as its users make it speak one revision. */
export const only = (sdk: Sdk, revision: string): Sdk => {
  const flag = [sdk.language === 'go' ? `-revision=${revision}` : `--revision=${revision}`]
  return withOption(sdk, `${revision} only`, { server: flag, host: flag })
}

/** The runner puts the path of a file in its place, to which a server writes each ping that was not answered. */
export const JOURNAL = '{journal}'
const KEEP_ALIVE_MS = 3_000
/** A few pings fit into it. */
export const KEPT_ALIVE_MS = 7_000
/**
 * The SDK of Go with `KeepAlive`: it pings in the handshake revisions only, so its host, which finds 2026-07-28 behind Trunkline, is kept
 * to one of them.
 */
export const withKeepAlive = (sdk: Sdk): Sdk => {
  const flag = `-keep-alive=${KEEP_ALIVE_MS}ms`
  return withOption(sdk, 'KeepAlive', { server: [flag, `-journal=${JOURNAL}`], host: [flag, '-revision=2025-11-25'] })
}

/** A folder whose name holds a digest of what it is made from, so that a changed lock file or source makes a new one. */
export const madeFrom = (name: string, ...files: string[]): string => {
  const digest = createHash('sha256')
  for (const file of files) digest.update(readFileSync(join(HERE, file)))
  return join(CACHE, `${name}-${digest.digest('hex').slice(0, 12)}`)
}

/** No set-up takes longer; a lock that is older was left behind. */
const SET_UP_MS = 20 * 60_000

/** Makes a folder once on a machine: `make` works in it, and what it leaves half done is made again. */
export const makeOnce = async (folder: string, make: () => Promise<void>): Promise<void> => {
  const done = join(folder, '.done')
  const isDone = async (): Promise<boolean> => (await readFile(done).catch(() => undefined)) !== undefined
  if (await isDone()) return
  const lock = `${folder}.lock`
  await acquireFileLock(lock, SET_UP_MS)
  try {
    if (await isDone()) return
    await rm(folder, { recursive: true, force: true })
    await mkdir(folder, { recursive: true })
    await make()
    await writeFile(done, '')
  } finally {
    releaseFileLock(lock)
  }
}

/** The environments: a lock file of pip each; FastMCP 4 brings the official SDK 2. */
const ENVIRONMENTS = ['mcp1', 'fastmcp4'] as const
/** The folder of an environment of Python: `lock` is the name of its lock file. */
export const environment = (lock: string): string => madeFrom(lock, `python/${lock}.lock`)

export const makeEnvironment = (lock: string): Promise<void> => {
  const folder = environment(lock)
  return makeOnce(folder, async () => {
    await run('python3', ['-m', 'venv', folder])
    const quiet = ['--quiet', '--disable-pip-version-check', '--no-compile', '--no-deps']
    await run(join(folder, 'bin/python'), ['-m', 'pip', 'install', ...quiet, '-r', join(HERE, `python/${lock}.lock`)])
  })
}

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

export interface LanguageSetup {
  readonly sdks: readonly Sdk[]
  /** Programs without which nothing of it runs; those of the languages that run with all other tests stand in `.ci/programs`. */
  readonly needs: readonly string[]
  /** Downloads and builds what is not there yet. Rejects where that is impossible, with the reason. */
  readonly setUp: () => Promise<void>
}

const python: LanguageSetup = {
  sdks: [pythonSdk('mcp1', 'mcp1', 'mcp'), pythonSdk('mcp2', 'fastmcp4', 'mcp'), pythonSdk('fastmcp4', 'fastmcp4', 'fastmcp')],
  needs: ['python3', 'venv'],
  setUp: async () => {
    await Promise.all(ENVIRONMENTS.map(makeEnvironment))
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

/** The versions of the official SDK: a profile of `pom.xml` each, and the sources that differ between SDK 1 and 2. */
const JAVA = { 'java-1.1': 'sdk1', 'java-2.0': 'sdk2', 'java-2.1': 'sdk2' } as const
const JAVA_SOURCES = ['Peer', 'PeerHost', 'PeerServer', 'Wire'].map((name) => `java/src/${name}.java`)
const javaFolder = (key: keyof typeof JAVA): string =>
  madeFrom(key, 'java/pom.xml', `java/${JAVA[key]}/Questions.java`, ...JAVA_SOURCES)
const JAVA_NAME = 'io.modelcontextprotocol.sdk'

const java: LanguageSetup = {
  sdks: (Object.keys(JAVA) as (keyof typeof JAVA)[]).map((key) => {
    const pins = readFileSync(join(HERE, 'java/pom.xml'), 'utf8')
    // The JVM compiles less and starts sooner; nothing here runs for long.
    const program = [
      'java',
      '-XX:TieredStopAtLevel=1',
      '-XX:+UseSerialGC',
      '-cp',
      `${javaFolder(key)}/classes:${javaFolder(key)}/lib/*`,
      'Peer',
    ]
    return {
      key,
      language: 'java',
      name: JAVA_NAME,
      version: new RegExp(`<id>${key}</id>\\s*<properties><sdk.version>(.+?)<`).exec(pins)?.[1] ?? '',
      server: [...program, 'server'],
      host: [...program, 'host'],
      serves: ALL,
      connects: ALL,
    }
  }),
  needs: ['javac', 'mvn'],
  setUp: async () => {
    for (const key of Object.keys(JAVA) as (keyof typeof JAVA)[]) {
      const folder = javaFolder(key)
      await makeOnce(folder, async () => {
        const copy = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies'
        await run('mvn', [
          '-q',
          '-B',
          '-f',
          join(HERE, 'java/pom.xml'),
          `-P${key}`,
          copy,
          `-DoutputDirectory=${join(folder, 'lib')}`,
        ])
        const sources = [...JAVA_SOURCES, `java/${JAVA[key]}/Questions.java`].map((file) => join(HERE, file))
        await run('javac', ['-nowarn', '-encoding', 'UTF-8', '-d', join(folder, 'classes'), '-cp', `${folder}/lib/*`, ...sources])
      })
    }
  },
}

const rustFolder = (): string =>
  madeFrom('rust', 'rust/Cargo.toml', 'rust/Cargo.lock', ...['main', 'server', 'host'].map((name) => `rust/src/${name}.rs`))

const rust: LanguageSetup = {
  sdks: [
    {
      key: 'rust',
      language: 'rust',
      name: 'rmcp',
      version: /name = "rmcp"\nversion = "(.+)"/.exec(readFileSync(join(HERE, 'rust/Cargo.lock'), 'utf8'))?.[1] ?? '',
      server: [join(rustFolder(), 'debug/peer'), 'server'],
      host: [join(rustFolder(), 'debug/peer'), 'host'],
      serves: ['stdio', 'http'],
      connects: ['stdio', 'http'],
    },
  ],
  needs: ['cargo1.85'],
  setUp: async () => {
    const folder = rustFolder()
    await makeOnce(folder, async () => {
      const manifest = join(HERE, 'rust/Cargo.toml')
      await run('cargo', ['build', '--locked', '--quiet', '--manifest-path', manifest, '--target-dir', folder], {
        maxBuffer: 64 << 20,
      })
      await rm(join(folder, 'debug/deps'), { recursive: true, force: true })
    })
  },
}

export const LANGUAGES = { python, go, java, rust } as const satisfies Record<string, LanguageSetup>
export type PeerLanguage = keyof typeof LANGUAGES
