/** Starts the test servers as processes of their own and ends them with the scope that started them. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { peerProgram } from './peer-program.ts'
import { relayCommand } from './relay.ts'
import type { RelayCommand } from './relay.ts'

/** Something a host can connect to: an HTTP endpoint, or a command that speaks stdio. */
export type Target = { url: string } | { command: string; args: string[]; env?: Record<string, string> }

/** A server that listens; disposing it ends the process and waits for that. */
export interface ServerProcess extends AsyncDisposable {
  url: string
  pid: number
}

/** A server of the official SDKs. */
export type ServerName = 'reference-server' | 'sdk1-server'

/** The command that runs a test server over stdio; the host starts it. */
export const stdioTarget = (name: ServerName, ...args: string[]): Extract<Target, { command: string }> => ({
  command: process.execPath,
  args: [peerProgram(name), 'stdio', ...args],
})

/**
 * The command of a stdio server that runs in one process already (`startServer` with `pipes`), however often a gateway starts the command:
 * a start of the SDK needs 200 ms of CPU, one of a relay 4.
 */
export const pipedCommand = ({ url }: ServerProcess): RelayCommand => relayCommand(Number(new URL(url).port), '--plain')

/**
 * Starts a test server over HTTP (`args` begin with its transport, `http` or `sse`; or with `pipes`) and resolves once it listens.
 * Rejects with what it said on stderr when it ends before.
 */
export const startServer = async (name: ServerName, ...args: string[]): Promise<ServerProcess> => {
  const child = spawn(process.execPath, [peerProgram(name), ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
  const exited = once(child, 'exit')
  const said: string[] = []
  for await (const line of createInterface({ input: child.stderr })) {
    const url = /^listening (\S+)$/.exec(line)?.[1]
    if (url === undefined) {
      said.push(line)
      continue
    }
    child.stderr.resume()
    return {
      url,
      pid: child.pid ?? 0,
      async [Symbol.asyncDispose]() {
        child.kill()
        await exited
      },
    }
  }
  throw new Error(`${name} ended before it listened: ${said.join('\n')}`)
}
