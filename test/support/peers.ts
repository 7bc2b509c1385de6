/** Small peers in other languages without any SDK (`test/peers/bare`), which read and write JSON as their standard libraries do. */
import { execFile, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { freePort } from './free-port.ts'

export const peer = (path: string): string => fileURLToPath(new URL(`../peers/bare/${path}`, import.meta.url))

/** Compiles one file of Go; returns the program. The first time on a machine takes as long as compiling the standard library. */
export const buildGo = async (path: string): Promise<string> => {
  const program = join(mkdtempSync(join(tmpdir(), 'trunkline-go-')), 'program')
  await promisify(execFile)('go', ['build', '-o', program, peer(path)], {
    env: { ...process.env, GO111MODULE: 'off', GOFLAGS: '' },
  })
  return program
}

export interface ServerAt extends AsyncDisposable {
  readonly url: URL
}

const ended = (child: ChildProcess) => async (): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

/** A server in Python over HTTP. */
export const pythonHttp = async (era: string): Promise<ServerAt> => {
  const child = spawn('python3', [peer('server.py'), era, 'http'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [port] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return { url: new URL(`http://127.0.0.1:${port}/mcp`), [Symbol.asyncDispose]: ended(child) }
}

/** A server in PHP over HTTP, by the web server that PHP brings. */
export const phpHttp = async (era: string): Promise<ServerAt> => {
  const address = `127.0.0.1:${await freePort()}`
  const child = spawn('php', ['-S', address, peer('server.php')], {
    env: { ...process.env, ERA: era },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  for await (const line of createInterface({ input: child.stderr })) if (line.includes('started')) break
  child.stderr.resume()
  return { url: new URL(`http://${address}/mcp`), [Symbol.asyncDispose]: ended(child) }
}
