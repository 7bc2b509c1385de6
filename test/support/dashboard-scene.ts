/**
 * A Trunkline with servers as people have them, for the dashboard's tests, screenshots and frame figures: files and memory (the official
 * ones), code (hand-written; slow, pinned arguments, hostile texts), tickets (an expired sign-in). Works outside of vitest as well.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Browser } from './browser.ts'
import { FakeDownstream, fake } from './fake-downstream.ts'
import type { Host, HostOptions } from './fake-host.ts'
import { FakeIssuer, protect } from './fake-issuer.ts'
import { connectHttp, connectModernHttp } from './fakes/http-hosts.ts'
import type { TestGateway } from './gateway.ts'

const require = createRequire(import.meta.url)
const CODE = fileURLToPath(new URL('./children/dashboard-server.ts', import.meta.url))

export interface DashboardScene extends AsyncDisposable {
  readonly folder: string
  readonly issuer: FakeIssuer
  /** The MCP endpoint. */
  readonly url: URL
  /** A link to the dashboard, good once. */
  open(): Promise<string>
  /** A command of the running process; its stdout. */
  command(...args: readonly string[]): Promise<string>
  host(options?: HostOptions & { readonly era?: 'legacy' | 'modern'; readonly name?: string }): Promise<Host>
  /** Other text of the configuration, in place of `text`. */
  rewrite(text: string, other: string): Promise<void>
  /** What `code__list_pulls` is described by from the next start of its server on. */
  describe(words: string): Promise<void>
  /** As a person in a browser. */
  signIn(): Promise<void>
}

const server = (name: string): string => require.resolve(`@modelcontextprotocol/server-${name}/dist/index.js`)
const quoted = (value: unknown): string => JSON.stringify(value)

const configurationOf = (folder: string, tickets: URL): string => `admin: { bind: "127.0.0.1:0" }
ui: { write: true, capture: { bodies: all } }
lock: { on_change: hold }
reload: { watch: false }
servers:
  files:
    command: ${quoted(process.execPath)}
    args: ${quoted([server('filesystem'), join(folder, 'documents')])}
  memory:
    command: ${quoted(process.execPath)}
    args: ${quoted([server('memory')])}
    env: { MEMORY_FILE_PATH: ${quoted(join(folder, 'memory.json'))} }
  code:
    trusted: true
    command: ${quoted(process.execPath)}
    args: ${quoted([CODE, join(folder, 'words.txt')])}
    tools:
      search_code:
        args:
          org: { value: acme, hide: true }
          per_page: { default: 20 }
  tickets:
    url: ${quoted(tickets.href)}
    credentials: { oauth: { scopes: [read] } }
toolsets:
  everything: { servers: ["*"], budget: { tools: 60, tokens: 12k } }
  review:
    description: Reading code and files
    tools: ["code__*", "files__read_*"]
    budget: { tools: 10, tokens: 1500 }
`

/** `program`: what is started, the cached build. */
export const startScene = async (program: string): Promise<DashboardScene> => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'tl-')))
  await Promise.all(['run', 'home', 'documents'].map((name) => mkdir(join(folder, name), { mode: 0o700 })))
  await writeFile(join(folder, 'documents', 'notes.md'), '# Notes\n\nShip it on Tuesday.\n')
  const issuer = await FakeIssuer.start()
  const tickets = await FakeDownstream.start(fake.of({ kind: 'modern http', tools: ['search_tickets', 'close_ticket'] }))
  protect(tickets, issuer)
  const { url: ticketsUrl } = tickets.address as { url: URL }
  let configuration = configurationOf(folder, ticketsUrl)
  const file = join(folder, 'trunkline.yaml')
  await writeFile(file, configuration, { mode: 0o600 })
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: join(folder, 'home'),
    XDG_RUNTIME_DIR: join(folder, 'run'),
    XDG_STATE_HOME: join(folder, 'state'),
  }
  const start = (...args: string[]): ChildProcess =>
    spawn(process.execPath, [program, ...args], { cwd: folder, env, stdio: 'pipe' })
  const up = start('up', '--listen', '127.0.0.1:0')
  const url = new URL(await saidBy(up, /^trunkline is ready: (.*)/))
  const command = async (...args: readonly string[]): Promise<string> => {
    const child = start(...args)
    let out = ''
    child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()))
    child.stderr?.resume()
    await once(child, 'close')
    return out
  }
  return {
    folder,
    issuer,
    url,
    command,
    open: async () => (JSON.parse(await command('open', '--json')) as { url: string }).url,
    host: ({ era = 'modern', ...options } = {}) => {
      const gateway = { url } as TestGateway
      return era === 'modern' ? connectModernHttp(gateway, options) : connectHttp(gateway, options)
    },
    rewrite: async (text, other) => {
      if (!configuration.includes(text)) throw new Error(`the configuration has no ${text}`)
      configuration = configuration.replace(text, other)
      await writeFile(file, configuration, { mode: 0o600 })
    },
    describe: (words) => writeFile(join(folder, 'words.txt'), words),
    signIn: async () => {
      const login = start('login', 'tickets')
      const link = await new Promise<string>((resolve) => {
        createInterface({ input: login.stdout! }).on('line', (line) => line.startsWith('http') && resolve(line))
      })
      await new Browser().signIn(link)
      if (login.exitCode === null) await once(login, 'exit')
    },
    async [Symbol.asyncDispose]() {
      if (up.exitCode === null) {
        up.kill('SIGTERM')
        await once(up, 'exit')
      }
      await tickets[Symbol.asyncDispose]()
      await issuer[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    },
  }
}

const saidBy = (child: ChildProcess, pattern: RegExp): Promise<string> =>
  new Promise((resolve, reject) => {
    const lines: string[] = []
    createInterface({ input: child.stderr! }).on('line', (line) => {
      lines.push(line)
      const found = pattern.exec(line)?.[1]
      if (found !== undefined) resolve(found)
    })
    child.on('exit', () => reject(new Error(`it ended: ${lines.join('\n')}`)))
  })
