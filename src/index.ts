/**
 * Trunkline inside another program: the gateway that `trunkline up` serves, without a command line and without signals. Nothing
 * runs until `createGateway` is called, and nothing is left when it is disposed.
 */
import type { Readable, Writable } from 'node:stream'
import { startGateway } from './app.ts'
import { loadConfiguration } from './config/load.ts'
import { ConfigError } from './config/problems.ts'
import { readSurroundings } from './config/surroundings.ts'
import type { Log } from './downstream/environment.ts'
import { VERSION } from './version.ts'

export { ConfigError, VERSION }
export type { Log }

export interface EmbedOptions {
  /** Configuration files, as `-c` names them; relative ones count from the working directory. */
  readonly files: readonly string[]
  /** Replaces `listen.http.bind`: `127.0.0.1:0` takes a free port. */
  readonly listen?: string
  /** Replaces `state.dir`. */
  readonly state?: string
  /** Serve one host on these streams instead of listening, as `trunkline stdio` does. */
  readonly pipe?: { readonly input: Readable; readonly output: Writable }
  /** Facts and a sentence for each event; nothing is logged without it. Any pino logger is one. */
  readonly log?: Log
}

/** A gateway that serves. */
export interface EmbeddedGateway extends AsyncDisposable {
  /** Where hosts reach it over Streamable HTTP; empty with `pipe`. */
  readonly urls: readonly URL[]
  /** Settles when the one host of `pipe` has gone; never without `pipe`. */
  readonly hostLeft: Promise<void>
  /** Ends within `reload.drain`: open calls first, then the servers. */
  stop(): Promise<void>
}

const SILENT: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

/**
 * Reads the configuration and serves it. Rejects with `ConfigError`, which holds every problem with its place, and with the
 * system's error if an address cannot be bound.
 */
export const createGateway = async (options: EmbedOptions): Promise<EmbeddedGateway> => {
  const { files, listen, state, pipe, log = SILENT } = options
  const context = readSurroundings({ listen, state })
  const configuration = await loadConfiguration({ files: [...files] }, context)
  for (const warning of configuration.warnings) log.warn({}, warning)
  const running = await startGateway(configuration, { log, path: context.env['PATH'], ...(pipe !== undefined && { pipe }) })
  const stop = (): Promise<void> => running.stop()
  return {
    urls: running.front.addresses.map(({ host, port }) => {
      const authority = host.includes(':') ? `[${host}]` : host
      return new URL(`http://${authority}:${port}${configuration.host.path}`)
    }),
    hostLeft: running.hostLeft,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
