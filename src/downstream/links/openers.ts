/** Opens channels to configured servers. The only place that knows every transport. */
import type { LimitCounts } from '../../rpc/limit-counts.ts'
import { ChildProcessChannel, DEFAULT_CHILD_PROCESS } from '../../transport/process/child-process.ts'
import type { HttpClients } from '../../transport/http1/client/http-clients.ts'
import type { Launcher } from '../../transport/process/launcher.ts'
import type { Launch, StderrOptions } from '../../transport/process/process-group.ts'
import { SseChannel } from '../../transport/channel/sse-channel.ts'
import { StreamableChannel } from '../../transport/channel/streamable-channel.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { Log } from '../../values/log.ts'
import type { Openers } from '../environment.ts'
import type { ServerOptions } from '../options.ts'
import type { ServerLogs } from '../server-logs.ts'
import { limitsOf } from './channel-limits.ts'

/** State that all channels share. `userAgent`: the header of every HTTP request to a server (BRIDGING 3.21). */
export interface OpenersEnvironment {
  readonly launcher: Launcher
  readonly clients: HttpClients
  readonly userAgent: string
  readonly log: Log
  readonly logs: ServerLogs
  readonly counts: LimitCounts
}

export const makeOpeners = ({ launcher, clients, userAgent, log, logs, counts }: OpenersEnvironment): Openers => {
  /** A configured `User-Agent` takes precedence. */
  const headersOf = ({ headers }: ServerOptions): Readonly<Record<string, string>> => ({ 'user-agent': userAgent, ...headers })
  const onStderr =
    (now: () => ServerOptions) =>
    (line: string, skipped: number): void => {
      const { key, limits } = now()
      logs.printed(key, limits.maxStderrBytes, line, skipped)
      log.debug({ server: key }, line)
    }
  const stderrOf = (now: () => ServerOptions): StderrOptions => ({
    maxBytes: () => now().limits.maxStderrBytes,
    onDropped: () => counts.passed('limits.stderr', now().key),
  })
  return {
    pipe: (options) =>
      new ChildProcessChannel({
        ...DEFAULT_CHILD_PROCESS,
        launch: launchOf(options()),
        launcher,
        bodies: clients.bodies,
        ...limitsOf(options()),
        onStderr: onStderr(options),
        stderr: stderrOf(options),
      }),
    http: (options, bearer) => {
      const url = urlOf(options)
      return new StreamableChannel(clients.for(url, options), url, headersOf(options), limitsOf(options), bearer)
    },
    sse: (options, bearer) => {
      const url = urlOf(options)
      return new SseChannel(clients.for(url, options), url, headersOf(options), limitsOf(options), bearer)
    },
    companion: async (options) => {
      const tree = await launcher(launchOf(options()), { onStderr: onStderr(options), stderr: stderrOf(options) })
      tree.drainStdout()
      return tree
    },
  }
}

const launchOf = ({ key, launch }: ServerOptions): Launch => {
  if (launch === undefined) throw new Failure('spawn_failed', `servers.${key} has no command`, { executed: 'no' })
  return launch
}

const urlOf = ({ key, url }: ServerOptions): URL => {
  if (url === undefined) throw new Failure('unreachable', `servers.${key} has no url`, { executed: 'no' })
  return url
}
