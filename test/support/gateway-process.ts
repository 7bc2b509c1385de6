/** Trunkline as its users run it: a process with a configuration file, and the commands that hosts start. */
import { spawn } from 'node:child_process'
import type { ChildProcessByStdio, SpawnOptionsWithStdioTuple, StdioNull, StdioPipe } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { STATE_FOLDERS } from './memory-folder.ts'
import type { Target } from './processes.ts'
import { PROGRAM } from './program.ts'

/** What a configuration file may hold; only Trunkline checks it. */
export type GatewayConfig = Record<string, unknown> & {
  readonly state?: object
  readonly timeouts?: object
  readonly listen?: object & { readonly limits?: object }
}

/** A folder for one configuration and its state; disposing it removes both. */
export interface GatewayHome extends AsyncDisposable {
  folder: string
  /**
   * Writes `config`, with its state in this folder, and returns its path. It allows for a busy machine unless it says otherwise: the first
   * list waits a minute for servers, and no host is refused because the event loop is late.
   */
  write(name: string, config: GatewayConfig): Promise<string>
}

/** A gateway that listens. */
export interface GatewayProcess extends AsyncDisposable {
  /** Of Streamable HTTP. */
  url: string
  /** Of HTTP+SSE. */
  sseUrl: string
  pid: number
  /** What it said on stderr, line by line; `saw` resolves once `seen` is true of all that was said so far. */
  readonly said: readonly string[]
  saw(seen: (said: readonly string[]) => boolean): Promise<void>
  /** Sends SIGTERM and resolves with the exit code. */
  stop(): Promise<number | null>
}

export const gatewayHome = async (): Promise<GatewayHome> => {
  const folder = await mkdtemp(join(STATE_FOLDERS, 'gateway-'))
  return {
    folder,
    async write(name, config) {
      const file = join(folder, `${name}.json`)
      const state = { ...config.state, dir: join(folder, `${name}-state`) }
      const timeouts = { list_budget: '60s', ...config.timeouts }
      const listen = { ...config.listen, limits: { loop_lag: '1h', ...config.listen?.limits } }
      await writeFile(file, JSON.stringify({ ...config, state, timeouts, listen }))
      return file
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true, maxRetries: 5 }),
  }
}

/** The command with which a host starts a gateway of its own over stdio. */
export const stdioGateway = (file: string): Extract<Target, { command: string }> => ({
  command: process.execPath,
  args: [PROGRAM, 'stdio', '-c', file],
})

/**
 * Runs `trunkline up` on a free port and resolves once it says that it is ready; its servers may still be starting. Rejects with
 * what it said when it ends before.
 */
export const startGatewayProcess = (file: string, ...args: string[]): Promise<GatewayProcess> =>
  started(spawn(process.execPath, up(file, args), STDIO))

/** The same after a shell has said something first, such as `ulimit -n 64`. */
export const startGatewayAfter = (words: string, file: string): Promise<GatewayProcess> =>
  started(spawn('sh', ['-c', `${words}; exec "$@"`, 'sh', process.execPath, ...up(file, [])], STDIO))

const STDIO: SpawnOptionsWithStdioTuple<StdioNull, StdioNull, StdioPipe> = { stdio: ['ignore', 'ignore', 'pipe'] }
const up = (file: string, args: readonly string[]): string[] => [PROGRAM, 'up', '-c', file, '--listen', '127.0.0.1:0', ...args]

const started = async (child: ChildProcessByStdio<null, null, Readable>): Promise<GatewayProcess> => {
  const exited = once(child, 'exit') as Promise<[number | null]>
  const said: string[] = []
  const waiters = new Set<() => void>()
  createInterface({ input: child.stderr }).on('line', (line) => {
    said.push(line)
    for (const check of waiters) check()
  })
  const saw: GatewayProcess['saw'] = (seen) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const check = () => (seen(said) ? resolve() : undefined)
    waiters.add(check)
    check()
    void exited.then(() => reject(new Error(`the gateway ended: ${said.join('\n')}`)))
    return promise.finally(() => waiters.delete(check))
  }
  const stop = async (): Promise<number | null> => {
    child.kill()
    return (await exited)[0]
  }
  const readyUrl = () => said.map((line) => /^trunkline is ready: (\S+)$/.exec(line)?.[1]).find((url) => url !== undefined)
  await saw(() => readyUrl() !== undefined)
  const url = readyUrl() ?? ''
  return {
    url,
    sseUrl: new URL('/sse', url).href,
    pid: child.pid ?? 0,
    said,
    saw,
    stop,
    [Symbol.asyncDispose]: async () => void (await stop()),
  }
}
