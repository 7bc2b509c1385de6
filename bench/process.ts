/** Starts a process of the bench and waits until it says its MCP URL on stderr; ends it, and awaits its end, when disposed. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** Folder of the project: every command runs there. */
export const ROOT = fileURLToPath(new URL('..', import.meta.url))

const READY_MS = 30_000
const STOP_MS = 10_000
const URL_LINE = /http:\/\/127\.0\.0\.1:\d+\/mcp/

export interface Running extends AsyncDisposable {
  readonly pid: number
  readonly url: URL
  /** From spawn to the line, ms. */
  readonly readyMs: number
}

/** `node ...args`. Rejects with the last of stderr when the process ends, or says no URL, within 30 s. */
export const startNode = async (args: readonly string[]): Promise<Running> => {
  const started = performance.now()
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(child, 'exit')
  const ready = Promise.withResolvers<URL>()
  const fail = (why: string) =>
    ready.reject(new Error(`node ${args.join(' ')}: ${why}${said === '' ? '' : `\n${said.trimEnd()}`}`))
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-4_000)
    const url = URL_LINE.exec(said)
    if (url !== null) ready.resolve(new URL(url[0]))
  })
  child.once('close', (code, signal) => fail(`ended with ${code ?? signal}`))
  const tooLate = setTimeout(() => fail(`not ready within ${READY_MS} ms`), READY_MS)
  const stop = async () => {
    const kill = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
    if (child.exitCode === null && child.signalCode === null && child.kill()) await ended
    clearTimeout(kill)
  }
  try {
    const url = await ready.promise
    return { pid: child.pid!, url, readyMs: performance.now() - started, [Symbol.asyncDispose]: stop }
  } catch (error) {
    await stop()
    throw error
  } finally {
    clearTimeout(tooLate)
  }
}
