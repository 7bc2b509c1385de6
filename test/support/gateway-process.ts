/** Trunkline as its users run it: a process with a configuration file, and the commands that hosts start. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Target } from './processes.ts'

/** What a configuration file may hold; only Trunkline checks it. */
export type GatewayConfig = Record<string, unknown>

/** A folder for one configuration and its state; disposing it removes both. */
export interface GatewayHome extends AsyncDisposable {
  folder: string
  /** Writes `config`, with its state in this folder, and returns its path. */
  write(name: string, config: GatewayConfig): Promise<string>
}

/** A gateway that listens. */
export interface GatewayProcess extends AsyncDisposable {
  /** Of Streamable HTTP. */
  url: string
  /** Of HTTP+SSE. */
  sseUrl: string
  pid: number
  /** Sends SIGTERM and resolves with the exit code. */
  stop(): Promise<number | null>
}

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

export const gatewayHome = async (): Promise<GatewayHome> => {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-'))
  return {
    folder,
    async write(name, config) {
      const file = join(folder, `${name}.json`)
      await writeFile(file, JSON.stringify({ ...config, state: { dir: join(folder, `${name}-state`) } }))
      return file
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

/** The command with which a host starts a gateway of its own over stdio. */
export const stdioGateway = (file: string): Extract<Target, { command: string }> => ({
  command: process.execPath,
  args: [main, 'stdio', '-c', file],
})

/**
 * Runs `trunkline up` on a free port and resolves once it says that it is ready. Rejects with what it said when it ends before.
 * It keeps answering while its servers start.
 */
export const startGatewayProcess = async (file: string, ...args: string[]): Promise<GatewayProcess> => {
  const child = spawn(process.execPath, [main, 'up', '-c', file, '--listen', '127.0.0.1:0', ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const exited = once(child, 'exit') as Promise<[number | null]>
  const stop = async (): Promise<number | null> => {
    child.kill()
    return (await exited)[0]
  }
  const said: string[] = []
  for await (const line of createInterface({ input: child.stderr })) {
    const url = /^trunkline is ready: (\S+)$/.exec(line)?.[1]
    if (url === undefined) {
      said.push(line)
      continue
    }
    child.stderr.resume()
    return {
      url,
      sseUrl: new URL('/sse', url).href,
      pid: child.pid ?? 0,
      stop,
      [Symbol.asyncDispose]: async () => void (await stop()),
    }
  }
  throw new Error(`the gateway ended before it was ready: ${said.join('\n')}`)
}
