/** What the checks of the examples share: Trunkline as a process on a free port, and one line per thing that was seen. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** The command line of a checkout: `node scripts/start.ts …`. */
export const TRUNKLINE: readonly [program: string, ...words: string[]] = [
  process.execPath,
  fileURLToPath(new URL('../scripts/start.ts', import.meta.url)),
]

export interface Trunkline extends AsyncDisposable {
  /** The MCP URL it said when it was ready. */
  readonly url: URL
  /** Variables that put state and admin socket into a folder of its own: what belongs to this process is started with them. */
  readonly env: Readonly<Record<string, string>>
  /** What it has said on stderr so far, line by line. */
  readonly said: readonly string[]
  /** Resolves with the first line that matches, said already or later. */
  hears(pattern: RegExp): Promise<string>
  /** Ends it with SIGTERM; the exit code. */
  stop(): Promise<number | null>
}

export interface RunOptions {
  /** Instead of `TRUNKLINE`. */
  readonly command?: readonly [program: string, ...words: string[]]
  readonly cwd?: string
  /** Beside our own environment. */
  readonly env?: Readonly<Record<string, string>>
  /** In place of a free one. */
  readonly port?: number
}

/**
 * Runs `trunkline up -c config` on a free port of 127.0.0.1, with a folder of its own for its state, and resolves when it is
 * ready. Rejects with what it said if it ends before.
 */
export const startTrunkline = async (config: string, options: RunOptions = {}): Promise<Trunkline> => {
  const state = await mkdtemp(join(tmpdir(), 'trunkline-'))
  const own = { XDG_STATE_HOME: state, XDG_RUNTIME_DIR: state }
  const [program, ...words] = options.command ?? TRUNKLINE
  const child = spawn(program, [...words, 'up', '-c', config, '--listen', `127.0.0.1:${options.port ?? 0}`], {
    cwd: options.cwd,
    env: { ...process.env, ...own, ...options.env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const exited = once(child, 'exit')
  const lines: string[] = []
  const listeners = new Set<(line: string) => void>()
  const hears = (pattern: RegExp): Promise<string> =>
    new Promise((resolve) => {
      const listen = (line: string): void => {
        if (pattern.test(line)) resolve(line)
      }
      lines.forEach(listen)
      listeners.add(listen)
    })
  const ready = Promise.withResolvers<URL>()
  createInterface({ input: child.stderr }).on('line', (line) => {
    lines.push(line)
    for (const listen of listeners) listen(line)
    const url = /^trunkline is ready: (\S+)$/.exec(line)?.[1]
    if (url !== undefined) ready.resolve(new URL(url))
  })
  child.once('error', ready.reject)
  child.once('close', () => ready.reject(new Error(`trunkline ended before it was ready:\n${lines.join('\n')}`)))
  const stop = async (): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) child.kill()
    const [code] = (await exited) as [number | null]
    await rm(state, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    return code
  }
  const url = await ready.promise.catch(async (error: unknown) => {
    await rm(state, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    throw error
  })
  return { url, env: own, said: lines, hears, stop, [Symbol.asyncDispose]: async () => void (await stop()) }
}

/** A port of 127.0.0.1 that nobody uses now. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** The text a tool answered, in one piece. */
export const textOf = (result: unknown): string =>
  (result as { content: { text?: string }[] }).content.map(({ text }) => text ?? '').join('\n')

/** Prints what was seen; throws, which ends the check with 1, if it is not so. */
export const saw = (what: string, isSo: boolean): void => {
  if (!isSo) throw new Error(`not so: ${what}`)
  console.log(`ok  ${what}`)
}
