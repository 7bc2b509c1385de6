/**
 * One real host in a home folder of its own: connected by `trunkline connect`, asked by its own command whether it sees Trunkline, made
 * to call a tool by a model that always does, and disconnected. What is seen is an outcome, whatever it is.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { cachedProgram } from '../cached-build.ts'
import { startModel } from './model.ts'
import type { RealHost } from './table.ts'

export interface Outcome {
  readonly host: string
  readonly package: string
  readonly version: string
  readonly transport: 'stdio' | 'http'
  /** What `trunkline connect` reported of its first request; empty: none came. */
  readonly client: string
  readonly revision: string
  readonly tools: number | undefined
  /** How its own command showed Trunkline; `enabled`: it only reads its file; `undefined`: it has no such command. */
  readonly shown: 'connected' | 'enabled' | 'not' | undefined
  /** Its agent called a tool of a server behind Trunkline and passed the result on. */
  readonly hasCalled: boolean
  /** `bytes`: its file is as it was; `entry`: the host itself changed it meanwhile, and our entry is gone. */
  readonly undone: 'bytes' | 'entry' | 'not'
  /** Seconds from `connect` to the result of the call. */
  readonly seconds: number
}

const EVERYTHING = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url),
)
const NODE = process.execPath
const PATIENCE_MS = 120_000

interface Ended {
  readonly code: number | null
  readonly output: string
}

/** `bin`: its program. `tell` gets a line for every step. */
export const runHost = async (
  real: RealHost,
  bin: string,
  transport: Outcome['transport'],
  tell: (line: string) => void,
): Promise<Outcome> => {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'trunkline-host-')))
  const [home, project, runtime] = [join(root, 'home'), join(root, 'project'), join(root, 'run')]
  for (const folder of [home, project, runtime]) await mkdir(folder, { mode: 0o700 })
  const base = {
    PATH: process.env['PATH'],
    HOME: home,
    XDG_STATE_HOME: join(root, 'state'),
    XDG_RUNTIME_DIR: runtime,
    TERM: 'dumb',
    NO_COLOR: '1',
  }
  const run = (command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
    execute(command, args, { ...base, ...env }, project)
  const program = await cachedProgram()
  const trunkline = (...args: string[]): Promise<Ended> => run(NODE, [program, ...args])
  try {
    await using model = await startModel({ tool: /everything__echo$/, args: { message: 'hello' }, result: /Echo: hello/ })
    const servers = { everything: { command: NODE, args: [EVERYTHING] } }
    await writeFile(
      join(project, 'trunkline.yaml'),
      JSON.stringify({ version: 1, listen: { http: { bind: '127.0.0.1:0' } }, servers }),
    )
    const setting = real.setting?.(project) ?? {}
    for (const [name, text] of Object.entries(setting.home ?? {})) {
      await mkdir(dirname(join(home, name)), { recursive: true })
      await writeFile(join(home, name), text)
    }
    if (real.prepare !== undefined) await run(bin, real.prepare(model.url))
    await using _up = transport === 'http' ? await startUp(program, base, project) : undefined
    const before = await filesBelow(home)
    const started = performance.now()
    const how = transport === 'http' ? ['--http'] : []
    const connecting = trunkline('connect', real.host, '--yes', '--json', '--wait', '90s', ...how)
    const file = await fileWith(home, 'trunkline')
    tell(`connected in ${file.slice(home.length + 1)}`)
    const show = async (): Promise<Outcome['shown']> => {
      const list = real.list && (await run(bin, real.list, setting.env))
      if (list === undefined || real.connected!.test(list.output))
        return list && (real.readsOnly === true ? 'enabled' : 'connected')
      tell(`not shown: ${list.output.slice(-600)}`)
      return 'not'
    }
    let shown = real.isListedFirst === true ? await show() : undefined
    const { args, env = {} } = real.turn(model.url)
    const turn = await run(bin, args, { ...setting.env, ...env })
    const hasCalled = model.results.length > 0
    const seconds = Math.round((performance.now() - started) / 100) / 10
    if (!hasCalled)
      tell(
        `no call (exit ${turn.code}): ${turn.output.slice(-600)}\noffered: ${model.offered.join(', ')}\nasked: ${model.unknown.join(', ')}`,
      )
    shown ??= await show()
    const report = (await connecting).output
    const { hosts } = JSON.parse(report.slice(report.indexOf('{"hosts"'))) as {
      hosts: { firstRequest?: { seen: { name: string; version: string; revision: string; tools?: number } } }[]
    }
    const seen = hosts[0]?.firstRequest?.seen
    await trunkline('disconnect', real.host, '--yes')
    const undone = await undoneIn(file, before.get(file))
    const { package: name, version, host } = real
    return {
      host,
      package: name,
      version,
      transport,
      client: seen === undefined ? '' : `${seen.name} ${seen.version}`,
      revision: seen?.revision ?? '',
      tools: seen?.tools,
      shown,
      hasCalled,
      undone,
      seconds,
    }
  } finally {
    await rm(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
  }
}

/** Ends with its own process group, at the latest after `PATIENCE_MS`. */
const execute = async (
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  cwd: string,
): Promise<Ended> => {
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const chunks: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => void chunks.push(chunk))
  const timer = setTimeout(() => killGroup(child.pid), PATIENCE_MS)
  const [code] = (await once(child, 'close')) as [number | null]
  clearTimeout(timer)
  killGroup(child.pid)
  return { code, output: stripVTControlCharacters(Buffer.concat(chunks).toString()) }
}

const killGroup = (pid: number | undefined): void => {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

const startUp = async (
  program: string,
  env: Readonly<Record<string, string | undefined>>,
  cwd: string,
): Promise<AsyncDisposable> => {
  const child = spawn(NODE, [program, 'up'], { cwd, env, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  for await (const chunk of child.stderr.iterator({ destroyOnReturn: false })) {
    said += String(chunk)
    if (/server is ready/.test(said)) break
  }
  child.stderr.resume()
  return {
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
    },
  }
}

const filesBelow = async (folder: string): Promise<ReadonlyMap<string, string>> => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return new Map(await Promise.all(files.map(async (file) => [file, await readFile(file, 'latin1')] as const)))
}

/** The file that names us, once there is one. */
const fileWith = async (folder: string, word: string): Promise<string> => {
  for (let attempt = 0; attempt < 300; attempt++) {
    for (const [file, text] of await filesBelow(folder))
      if (!file.endsWith('.trunkline') && (text.includes(`${word}.yaml`) || text.includes('/mcp'))) return file
    await sleep(100)
  }
  throw new Error(`nothing below ${folder} names ${word}`)
}

const undoneIn = async (file: string, before: string | undefined): Promise<Outcome['undone']> => {
  const now = await readFile(file, 'latin1').catch(() => undefined)
  if (now === before) return 'bytes'
  return now?.includes('trunkline') === true ? 'not' : 'entry'
}
