/**
 * Starts processes of the benchmark and waits until they are ready: until they print their MCP URL on stderr, until a port accepts, or not at
 * all if they have a pipe. Ends them, and awaits their end, when disposed.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { Pipe } from './lane.ts'
import type { Reach } from './load.ts'

/** Folder of the project: every command runs there. */
export const ROOT = fileURLToPath(new URL('..', import.meta.url))

const READY_MS = 30_000
const STOP_MS = 10_000
const POLL_MS = 2
const URL_LINE = /http:\/\/127\.0\.0\.1:\d+\/mcp/
const INSPECTOR_LINE = /ws:\/\/127\.0\.0\.1:\d+\/[\w-]+/

export interface Command {
  readonly args: readonly string[]
  /** The node of the bench unless said. */
  readonly file?: string
  /** For processes that do not say where they listen. */
  readonly url?: string
  /** Beside the environment of the bench. */
  readonly env?: Readonly<Record<string, string>>
  /** Its stdin and stdout are a host's. */
  readonly isPiped?: boolean
}

export interface Started extends AsyncDisposable {
  readonly pid: number
  readonly reach: Reach
  /** Where its inspector listens, when started with `--inspect`. */
  readonly inspector: string | undefined
  /** From spawn to the line or the open port, ms. */
  readonly readyMs: number
}

export interface Running extends Started {
  readonly url: URL
}

/** Resolves when somebody accepts connections there. */
const accepts = async (url: URL, isOver: () => boolean): Promise<URL> => {
  while (!isOver()) {
    const socket = connect({ host: url.hostname, port: Number(url.port) })
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (isOpen) return url
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  return url
}

const pipeOf = (child: ChildProcess): Pipe => {
  const lost = once(child, 'close').then(() => Promise.reject(new Error('the process ended')))
  lost.catch(() => {})
  child.stdin!.on('error', () => {}) // heard as the end of the process
  return { input: child.stdin!, output: child.stdout!, lost }
}

/** Rejects with the last of stderr when the process ends, or cannot be asked, within 30 s. */
export const start = async ({ args, file = process.execPath, url, env, isPiped = false }: Command): Promise<Started> => {
  const started = performance.now()
  const pipe = isPiped ? 'pipe' : 'ignore'
  const child = spawn(file, args, { cwd: ROOT, env: { ...process.env, ...env }, stdio: [pipe, pipe, 'pipe'] })
  const ended = once(child, 'exit').catch(() => {})
  const ready = Promise.withResolvers<Reach>()
  let isOver = false
  let said = ''
  let inspector: string | undefined
  const fail = (why: string) =>
    ready.reject(new Error(`${file} ${args.join(' ')}: ${why}${said === '' ? '' : `\n${said.trimEnd()}`}`))
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-4_000)
    inspector ??= INSPECTOR_LINE.exec(said)?.[0]
    const line = url === undefined && !isPiped ? URL_LINE.exec(said) : null
    if (line !== null) ready.resolve(new URL(line[0]))
  })
  child.once('error', ({ message }) => fail(message))
  child.once('close', (code, signal) => fail(`ended with ${code ?? signal}`))
  if (isPiped) ready.resolve(pipeOf(child))
  if (url !== undefined) void accepts(new URL(url), () => isOver).then(ready.resolve)
  const tooLate = setTimeout(() => fail(`not ready within ${READY_MS} ms`), READY_MS)
  const stop = async () => {
    const kill = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
    if (child.exitCode === null && child.signalCode === null && child.kill()) await ended
    clearTimeout(kill)
  }
  try {
    const reach = await ready.promise
    const readyMs = performance.now() - started
    return {
      pid: child.pid!,
      reach,
      get inspector() {
        return inspector
      },
      readyMs,
      [Symbol.asyncDispose]: stop,
    }
  } catch (error) {
    await stop()
    throw error
  } finally {
    isOver = true
    clearTimeout(tooLate)
  }
}

/** `node ...args`, which says its URL. */
export const startNode = async (args: readonly string[]): Promise<Running> => {
  const running = await start({ args })
  return { ...running, url: running.reach as URL }
}
