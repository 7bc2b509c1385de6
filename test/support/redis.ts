/** A real redis-server on a port of its own, with a folder that is removed with it. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
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
  return started(args, folder, listening, 'Ready to accept connections')
}

/** A node of a cluster: its second port is not ten thousand above the first, where there may be none. */
export const startClusterNode = async (
  more: readonly string[] = [],
  port?: number,
): Promise<RedisServer & { readonly busPort: number }> => {
  const busPort = await freePort()
  const cluster = ['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf', '--cluster-announce-ip', '127.0.0.1']
  return { ...(await startRedis([...cluster, '--cluster-port', String(busPort), ...more], port)), busPort }
}

/** One sentinel, which alone decides that the primary is down, soon. `more`: lines of its configuration, after its port. */
export const startSentinel = async (
  name: string,
  primaryPort: number,
  more: readonly string[] = [],
  port?: number,
): Promise<RedisServer> => {
  const listening = port ?? (await freePort())
  const folder = mkdtempSync(join(tmpdir(), 'sentinel-'))
  const file = join(folder, 'sentinel.conf')
  const lines = [
    `port ${listening}`,
    'bind 127.0.0.1',
    `dir ${folder}`,
    `sentinel monitor ${name} 127.0.0.1 ${primaryPort} 1`,
    `sentinel down-after-milliseconds ${name} 500`,
    ...more,
  ]
  writeFileSync(file, `${lines.join('\n')}\n`)
  return started([file, '--sentinel'], folder, listening, '+monitor')
}

const started = async (args: readonly string[], folder: string, port: number, ready: string): Promise<RedisServer> => {
  const process = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  for await (const piece of process.stdout) {
    text += String(piece)
    if (text.includes(ready)) break
  }
  if (!text.includes(ready)) throw new Error(`redis-server did not start: ${text}`)
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
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
