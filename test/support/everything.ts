/** server-everything from npm: a server with every feature of its era, over each transport that it has. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import { freePort } from './free-port.ts'
import type { Target } from './processes.ts'

const server = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js')

/** The command that runs it over stdio; the host starts it. */
export const everythingCommand = (): Extract<Target, { command: string }> => ({
  command: process.execPath,
  args: [server, 'stdio'],
})

/** Starts it over HTTP and resolves once it listens; disposing it ends the process. */
export const startEverything = async (transport: 'streamableHttp' | 'sse'): Promise<{ url: string } & AsyncDisposable> => {
  // It takes its port from the environment and does not say which one the system gave.
  const port = await freePort()
  const child = spawn(process.execPath, [server, transport], { env: { PORT: String(port) }, stdio: ['ignore', 'ignore', 'pipe'] })
  const exited = once(child, 'exit')
  for await (const line of createInterface(child.stderr)) if (line.includes(String(port))) break
  child.stderr.resume()
  return {
    url: `http://127.0.0.1:${port}/${transport === 'sse' ? 'sse' : 'mcp'}`,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await exited
    },
  }
}
