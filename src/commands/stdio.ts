/**
 * `trunkline stdio`: one host on stdin and stdout, which carry nothing but the protocol. Attaches to a process of the same
 * configuration where one runs, else serves by itself; the host sees the same bytes (DECISIONS 1).
 */
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import { openPipe } from '../admin/client.ts'
import { NoEndpoint, startGateway } from '../app.ts'
import { DEFAULT_TOOLSET } from '../catalog/toolsets.ts'
import type { EndpointPath } from '../rpc/call.ts'
import { CommandError, CRASH_MS, EXIT, load } from './io.ts'
import type { Invocation, Loaded } from './io.ts'
import { openLog, openServices } from './serving.ts'
import { unknownToolset } from './unknown-toolset.ts'

export interface StdioOptions {
  /** Serve by itself even where a process runs. */
  readonly inline?: boolean
  /** This server alone, under its own names. */
  readonly server?: string
  /** This toolset. */
  readonly toolset?: string
}

export const stdio = async (invocation: Invocation, { inline, server, toolset }: StdioOptions): Promise<number> => {
  const path = { server, toolset }
  if (server !== undefined && toolset !== undefined)
    throw new CommandError(EXIT.usage, '--server and --toolset exclude each other; a toolset may name one server')
  const attached = inline === true ? undefined : await openPipe(invocation.place, path)
  if (attached === 'unknown') throw unknownEndpoint(path, await load(invocation))
  return attached === undefined ? serve(await load(invocation), path) : relay(invocation, attached)
}

const serve = async (loaded: Loaded, path: EndpointPath): Promise<number> => {
  const { configuration, context, io } = loaded
  const voice = openLog(loaded)
  const pipe = { input: io.stdin, output: io.stdout, path }
  await using running = await startGateway(configuration, { ...voice, path: context.env['PATH'], pipe }).catch(
    (error: unknown) => {
      throw error instanceof NoEndpoint ? unknownEndpoint(path, loaded) : error
    },
  )
  await using _services = await openServices(running, loaded, voice, false)
  const interrupted = io.interrupted.aborted ? undefined : once(io.interrupted, 'abort')
  await Promise.race([running.hostLeft, interrupted])
  await running.stop(io.crashed.aborted ? CRASH_MS : undefined)
  return EXIT.ok
}

/** Bytes to the running process and back, until one side ends. The host's end is passed on: its open calls are answered first. */
const relay = async ({ io, command }: Invocation, socket: Duplex): Promise<number> => {
  let hasLeft = false
  const leave = (): void => {
    hasLeft = true
    socket.end()
  }
  io.stdin.on('end', leave)
  io.interrupted.addEventListener('abort', leave)
  io.stdout.on('error', leave)
  socket.on('error', () => socket.destroy())
  io.stdin.pipe(socket, { end: false })
  socket.pipe(io.stdout, { end: false })
  await once(socket, 'close')
  if (hasLeft) return EXIT.ok
  throw new CommandError(
    EXIT.unreachable,
    `the running process ended; start it again, or serve without: ${command('stdio', '--inline')}`,
  )
}

const unknownEndpoint = ({ server, toolset }: EndpointPath, { configuration, command }: Loaded): CommandError => {
  const { servers, gateway } = configuration
  if (server === undefined) return unknownToolset(toolset, command)
  const standard = gateway.toolsets.find(({ name }) => name === DEFAULT_TOOLSET)
  if (standard === undefined || servers.every(({ key }) => key !== server))
    return new CommandError(EXIT.config, `no server "${server}" is configured; see which are: ${command('check', '--json')}`)
  return new CommandError(
    EXIT.config,
    `nothing of server "${server}" is in a toolset, and toolset "${standard.name}" (${standard.place}) says what is served without one; name the server there, or in a toolset of its own`,
  )
}
