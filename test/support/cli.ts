/** The command line as a person uses it: a folder with a configuration, commands run in it as processes, a gateway that serves. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, watch } from 'node:fs'
import { chmod, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { PassThrough } from 'node:stream'
import { onTestFinished } from 'vitest'
import { run } from '../../src/cli.ts'
import { peerProgram } from './peer-program.ts'
import { PROGRAM } from './program.ts'
import { ioWith } from './io.ts'

const FAKE = peerProgram('fake-server')
const COMPILED = process.env['NODE_COMPILE_CACHE']

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** The lines of stderr. */
  readonly errors: readonly string[]
}

/** A process of ours that goes on until it is told to end. */
export interface Serving extends AsyncDisposable {
  readonly pid: number
  readonly child: ChildProcess
  /** Everything said on stderr so far. */
  readonly lines: readonly string[]
  /** Resolves with the first line of stderr that matches, said already or later. */
  said(pattern: RegExp): Promise<string>
  signal(name: NodeJS.Signals): void
  /** Resolves with the exit code. */
  readonly ended: Promise<number | null>
}

/** A gateway that was started with `up` and is ready. */
export interface Up extends Serving {
  readonly url: string
}

export interface Cli extends AsyncDisposable {
  readonly folder: string
  /** What commands find in their environment; those begun later find what a test has changed in it. */
  readonly env: Record<string, string>
  path(name: string): string
  /** Writes a file, `trunkline.yaml` for what is served. */
  write(name: string, text: string): Promise<void>
  run(args: readonly string[], input?: string): Promise<Ended>
  /** The same in this process, which costs less than a process of its own. */
  here(...args: readonly string[]): Promise<Ended>
  /** The same on a terminal: each question, a text that ends with `: ` or `] `, gets the next answer. */
  onTerminal(args: readonly string[], answers: readonly (string | (() => string))[]): Promise<Ended>
  spawn(args: readonly string[]): Serving
  up(...args: readonly string[]): Promise<Up>
  /** The entry of a fake server in `trunkline.yaml`. */
  fake(mode?: string, log?: string): string
  /** Lines that a fake server wrote to its log: `start 4711`. */
  log(name: string): readonly string[]
  /** Resolves once a fake server with this log has been called (its tool `wait`) so many times. */
  called(log: string, times?: number): Promise<void>
}

/** `env` is added to what the commands find in their environment. */
export const commandLine = async (
  files: Readonly<Record<string, string>> = {},
  env: Record<string, string> = {},
): Promise<Cli> => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'tl-')))
  const path = (name: string): string => join(folder, name)
  const write = async (name: string, text: string): Promise<void> => {
    await writeFile(path(name), text)
    await chmod(path(name), 0o600)
  }
  await Promise.all(['run', 'home'].map((name) => mkdir(path(name), { mode: 0o700 })))
  for (const [name, text] of Object.entries(files)) await write(name, text)
  const around: Record<string, string> = {
    PATH: process.env['PATH'] ?? '',
    HOME: path('home'),
    XDG_RUNTIME_DIR: path('run'),
    XDG_STATE_HOME: path('state'),
    // Else each folder of a test has compiled code of its own, and the first start in it takes twice the CPU.
    ...(COMPILED !== undefined && { NODE_COMPILE_CACHE: COMPILED }),
    ...env,
  }
  const serving = new Set<Serving>()
  const start = (args: readonly string[]): Serving => {
    const made = serve(spawn(process.execPath, [PROGRAM, ...args], { cwd: folder, env: around, stdio: 'pipe' }))
    serving.add(made)
    return made
  }
  const spawned: Cli['run'] = async (args, input = '') => {
    const child = spawn(process.execPath, [PROGRAM, ...args], { cwd: folder, env: around, stdio: 'pipe' })
    child.stdin.end(input)
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
    return { code: code as number | null, stdout, stderr, errors: stderr.trimEnd().split('\n') }
  }
  const inside = async (args: readonly string[], answers: Parameters<Cli['onTerminal']>[1] | undefined): Promise<Ended> => {
    const isTTY = answers !== undefined
    const stream = () => Object.assign(new PassThrough(), { isTTY })
    const [stdin, stdout, stderr] = [stream(), stream(), stream()]
    const left = [...(answers ?? [])]
    const answerOf = (next: (typeof left)[number] | undefined): string => (typeof next === 'function' ? next() : (next ?? ''))
    stderr.on('data', (chunk: Buffer) => {
      if (isTTY && /[:\]] $/.test(chunk.toString())) setImmediate(() => stdin.write(`${answerOf(left.shift())}\n`))
    })
    const io = ioWith({ stdin, stdout, stderr })
    const context = { env: around, cwd: folder, home: path('home'), uid: process.getuid?.(), platform: process.platform }
    const said = Promise.all([text(stdout), text(stderr)])
    const code = await run(args, io, (overrides) => ({ ...context, overrides }))
    stdout.end()
    stderr.end()
    const [out, err] = await said
    return { code, stdout: out, stderr: err, errors: err.trimEnd().split('\n') }
  }
  const here: Cli['here'] = (...args) => inside(args, undefined)
  const dispose = async (): Promise<void> => {
    await Promise.all([...serving].map((one) => one[Symbol.asyncDispose]()))
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  }
  // A test that runs into its time limit never leaves its scope.
  onTestFinished(dispose)
  return {
    folder,
    env: around,
    path,
    write,
    run: spawned,
    here,
    onTerminal: inside,
    spawn: start,
    up: async (...args) => {
      const up = start(['up', '--listen', '127.0.0.1:0', ...args])
      const line = await up.said(/^trunkline is ready: /)
      return Object.assign(up, { url: line.replace('trunkline is ready: ', '') })
    },
    fake: (mode = 'good', log) =>
      `{ command: ${JSON.stringify(process.execPath)}, args: ${JSON.stringify([FAKE, mode, ...(log === undefined ? [] : [path(log)])])} }`,
    log: (name) => readFileSync(path(name), 'utf8').trimEnd().split('\n'),
    called: (name, times = 1) =>
      new Promise((resolve) => {
        const watcher = watch(folder, () => look())
        const look = (): void => {
          const log = existsSync(path(name)) ? readFileSync(path(name), 'utf8') : ''
          if (log.split('called').length <= times) return
          watcher.close()
          resolve()
        }
        look()
      }),
    [Symbol.asyncDispose]: dispose,
  }
}

const serve = (child: ChildProcess): Serving => {
  const lines: string[] = []
  const waiting = new Set<() => void>()
  const tell = (): void => {
    for (const look of waiting) look()
  }
  const ended = once(child, 'exit').then(([code]) => {
    tell()
    return code as number | null
  })
  createInterface({ input: child.stderr! }).on('line', (line) => {
    lines.push(line)
    tell()
  })
  return {
    pid: child.pid ?? 0,
    child,
    lines,
    ended,
    signal: (name) => void child.kill(name),
    said: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = lines.find((line) => pattern.test(line))
          if (found === undefined && child.exitCode === null) return
          waiting.delete(look)
          if (found === undefined) reject(new Error(`ended without saying ${String(pattern)}: ${lines.join('\n')}`))
          else resolve(found)
        }
        waiting.add(look)
        look()
      }),
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
      await ended
    },
  }
}

const text = async (stream: AsyncIterable<Buffer>): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

/** A message as a host writes it. */
export const message = (id: number | undefined, method: string, params: object = {}): string =>
  `${JSON.stringify({ jsonrpc: '2.0', ...(id !== undefined && { id }), method, params })}\n`

export const INITIALIZE = message(0, 'initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'host', version: '1' },
})
