/** A real redis-server on a port of its own, with a folder that is removed with it. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port.ts'

export interface RedisServer extends AsyncDisposable {
  readonly port: number
  readonly url: string
  readonly process: ChildProcess
}

/** `more`: arguments, such as `--requirepass secret`. */
export const startRedis = async (more: readonly string[] = [], port?: number): Promise<RedisServer> => {
  const listening = port ?? (await freePort())
  const folder = mkdtempSync(join(tmpdir(), 'redis-'))
  const args = ['--port', String(listening), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder, ...more]
  const process = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  for await (const piece of process.stdout) {
    text += String(piece)
    if (/Ready to accept connections|Sentinel ID is/.test(text)) break
  }
  if (!/Ready to accept|Sentinel ID is/.test(text)) throw new Error(`redis-server did not start: ${text}`)
  return {
    port: listening,
    url: `redis://127.0.0.1:${listening}`,
    process,
    [Symbol.asyncDispose]: async () => {
      if (process.exitCode === null && process.signalCode === null) {
        process.kill('SIGKILL')
        await once(process, 'exit')
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
