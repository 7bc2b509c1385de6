/**
 * `trunkline stdio`: one host on stdin and stdout, which carry only the protocol. Attaches to a running process of the same configuration,
 * and to the next one; without one it serves by itself. The host sees the same bytes (DECISIONS 1).
 */
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import { openPipe } from '../../admin/socket/client.ts'
import type { NoPipe } from '../../admin/socket/client.ts'
import { loadConfiguration } from '../../config/load.ts'
import { startGateway } from '../../app.ts'
import { NoEndpoint } from '../../app/running.ts'
import type { Running } from '../../app/running.ts'
import type { HostStreams } from '../../app/environment.ts'
import { DEFAULT_TOOLSET } from '../../catalog/view/toolsets.ts'
import type { EndpointPath } from '../../rpc/call.ts'
import { CommandError, CRASH_MS, EXIT, load } from '../terminal/io.ts'
import type { Invocation, Io, Loaded } from '../terminal/io.ts'
import { remark } from '../terminal/print.ts'
import { pipeTo, relay } from './relay.ts'
import { openLog, openServices } from './serving.ts'
import { unknownToolset } from '../terminal/unknown-name.ts'

/** How long a gateway may be missing, and the interval of attempts to connect. */
const GIVE_UP_MS = 30_000
const RETRY_MS = 250

export interface StdioOptions {
  /** Serve by itself even where a process runs. */
  readonly inline?: boolean
  /** This server only, under its own names. */
  readonly server?: string
  /** This toolset only. */
  readonly toolset?: string
  /** A bridge to the server at this URL, without a configuration. */
  readonly url?: string
  /** Sent with every request to it: `Name: value`. */
  readonly header?: readonly string[]
}

export const stdio = async (invocation: Invocation, { inline, server, toolset, header }: StdioOptions): Promise<number> => {
  const path = { server, toolset }
  if (header !== undefined)
    throw new CommandError(EXIT.usage, '--header belongs to --url; of a configured server it is servers.<key>.headers')
  if (server !== undefined && toolset !== undefined)
    throw new CommandError(EXIT.usage, '--server and --toolset exclude each other; a toolset may name one server')
  const attached = inline === true ? 'none' : await attach(invocation, path)
  // A second process beside it would start all servers again.
  if (attached === 'silent')
    throw new CommandError(
      EXIT.unreachable,
      'the running process of this configuration does not answer: it is stopped or stuck. Continue or end it, or use --inline',
    )
  if (attached !== 'none') return relayed(invocation, path, attached)
  const { stdin: input, stdout: output } = invocation.io
  return serve(await load(invocation), path, { input, output })
}

/** A pipe to the running process. Rejects where it has no such endpoint. */
const attach = async (invocation: Invocation, path: EndpointPath): Promise<Duplex | Exclude<NoPipe, 'unknown'>> => {
  const pipe = await openPipe(invocation.socket, path)
  if (pipe === 'unknown') throw unknownEndpoint(path, await load(invocation))
  return pipe
}

/** The one server of a bridge without a configuration. */
const BRIDGED = 'server'

/** `trunkline stdio --url`: one server, unchanged, over a pipe. Reads no configuration, keeps no state and opens no socket. */
export const bridge = async (invocation: Invocation, { url, header = [], server, toolset }: StdioOptions): Promise<number> => {
  const { context, io } = invocation
  if (server !== undefined || toolset !== undefined)
    throw new CommandError(EXIT.usage, '--url takes neither --server nor --toolset: there is one server only')
  if (url !== undefined && !url.includes('${') && !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw new CommandError(EXIT.usage, `--url takes a URL with http:// or https://, got "${url}"`)
  const headers = Object.fromEntries(
    header.map((line) => {
      const [, name, value] = /^([^:\s]+):\s*(.*)$/.exec(line) ?? []
      if (name === undefined) throw new CommandError(EXIT.usage, `--header takes "Name: value", got "${line}"`)
      return [name, value]
    }),
  )
  const value = { servers: { [BRIDGED]: { url, ...(header.length > 0 && { headers }) } } }
  const configuration = await loadConfiguration({ files: [], value }, context)
  io.redactor.learn([...configuration.secrets, ...Object.values(headers).filter((text) => text !== undefined)])
  const voice = openLog({ configuration, io })
  const pipe = { input: io.stdin, output: io.stdout, path: { server: BRIDGED } }
  await using running = await startGateway(configuration, { ...voice, path: context.env['PATH'], atExit: io.atExit, pipe })
  return await untilEnd(running, io)
}

const serve = async (loaded: Loaded, path: EndpointPath, streams: HostStreams): Promise<number> => {
  const { configuration, context, io } = loaded
  const voice = openLog(loaded)
  const pipe = { ...streams, path }
  await using running = await startGateway(configuration, { ...voice, path: context.env['PATH'], atExit: io.atExit, pipe }).catch(
    (error: unknown) => {
      throw error instanceof NoEndpoint ? unknownEndpoint(path, loaded) : error
    },
  )
  await using _services = await openServices(running, loaded, voice, false)
  return await untilEnd(running, io)
}

/** Waits until the host disconnects or the process is interrupted, and stops the gateway. */
const untilEnd = async (running: Running, io: Io): Promise<number> => {
  const interrupted = io.interrupted.aborted ? undefined : once(io.interrupted, 'abort')
  await Promise.race([running.hostLeft, interrupted])
  await running.stop(io.crashed.aborted ? CRASH_MS : undefined)
  return EXIT.ok
}

/** Relays to the running process and to the next ones; serves in this process if there is none. */
const relayed = async (invocation: Invocation, path: EndpointPath, first: Duplex | 'stopping'): Promise<number> => {
  const { io } = invocation
  let serving: Promise<number> = Promise.resolve(EXIT.ok)
  await relay(first === 'stopping' ? undefined : first, {
    input: io.stdin,
    output: io.stdout,
    connect: async () => {
      const pipe = await attach(invocation, path)
      return typeof pipe === 'string' ? undefined : pipe
    },
    inline: async () => {
      const loaded = await load(invocation)
      return pipeTo((streams) => (serving = serve(loaded, path, streams)))
    },
    interrupted: io.interrupted,
    giveUpMs: GIVE_UP_MS,
    retryMs: RETRY_MS,
    remark: (text) => remark(io, text),
  })
  return serving
}

const unknownEndpoint = ({ server, toolset }: EndpointPath, { configuration, command }: Loaded): CommandError => {
  const { servers, gateway } = configuration
  if (server === undefined) return unknownToolset(toolset, command)
  const standard = gateway.toolsets.find(({ name }) => name === DEFAULT_TOOLSET)
  if (standard === undefined || servers.every(({ key }) => key !== server))
    return new CommandError(EXIT.config, `no server "${server}" is configured; see which are: ${command('check', '--json')}`)
  return new CommandError(
    EXIT.config,
    `toolset "${standard.name}" (${standard.place}), which applies without --toolset, contains nothing of server "${server}"; name the server there, or in a toolset of its own`,
  )
}
