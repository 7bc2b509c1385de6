/** `trunkline up`: serves the configuration until it is told to end. */
import { once } from 'node:events'
import { serverStatuses, urlsOf } from '../../admin/status.ts'
import { startGateway } from '../../app.ts'
import type { CommandPrinter } from '../../operator-command.ts'
import type { Running } from '../../app.ts'
import { foundFoot, foundHead } from '../setup/found.ts'
import { CommandError, CRASH_MS, EXIT, load } from '../terminal/io.ts'
import type { Invocation, Loaded } from '../terminal/io.ts'
import { portHolder } from '../terminal/port-holder.ts'
import { openLog, openServices } from './serving.ts'
import type { Services, Voice } from './serving.ts'
import { settled } from './settled.ts'
import { painter, remark, remarkLines } from '../terminal/print.ts'
import type { Line, Paint } from '../terminal/print.ts'
import { faultLines, serverLines, thousands } from '../terminal/table.ts'

export const up = async (invocation: Invocation): Promise<number> => {
  const loaded = await load(invocation)
  const { io, context, configuration } = loaded
  if (loaded.discovered !== undefined) remarkLines(io, foundHead(loaded.discovered))
  const voice = openLog(loaded)
  await using running = await start(loaded, voice)
  await using services = await openServices(running, loaded, voice, true).catch(explainAddress)
  remark(io, `trunkline is ready: ${urlsOf(running)[0]}`)
  await settled(running, configuration.gateway.listBudgetMs, io.interrupted)
  if (!io.interrupted.aborted) {
    const paint = painter(io.stderr, context.env['NO_COLOR'])
    remarkLines(io, [
      ...startTable(running, paint, invocation.command),
      ...(await pageLine(services, io.stderr.isTTY === true, invocation.command)),
      ...(loaded.discovered === undefined ? [] : foundFoot(loaded.discovered, paint, invocation.command)),
    ])
    await Promise.race([once(io.interrupted, 'abort'), running.exhausted])
  }
  const isExhausted = !io.interrupted.aborted
  if (isExhausted) voice.log.fatal({ reason: await running.exhausted }, 'beyond help; ending, to be started again')
  await running.stop(isExhausted || io.crashed.aborted ? CRASH_MS : undefined)
  await services[Symbol.asyncDispose]()
  return isExhausted ? EXIT.internal : EXIT.ok
}

const startTable = (running: Running, paint: Paint, command: CommandPrinter): Line[] => {
  const servers = serverStatuses(running)
  const tools = servers.reduce((sum, server) => sum + server.tools, 0)
  const tokens = servers.reduce((sum, server) => sum + server.tokens, 0)
  return [
    ...faultLines(running.faults, paint),
    ...serverLines(servers, paint, command),
    `  MCP  ${urlsOf(running)[0]}     ${tools} tools, ${thousands(tokens)} tokens`,
  ]
}

const start = async ({ configuration, context }: Loaded, voice: Voice): Promise<Running> => {
  try {
    return await startGateway(configuration, { ...voice, path: context.env['PATH'] })
  } catch (error) {
    return explainAddress(error)
  }
}

/** Throws what was caught, in words where an address could not be bound. */
const explainAddress = (error: unknown): never => {
  const { code, address, port, option } = error as NodeJS.ErrnoException & { address?: string; port?: number; option?: string }
  if (address === undefined) throw error
  const remedy = option === undefined ? 'choose another with --listen HOST:PORT' : `choose another for ${option}`
  if (code !== 'EADDRINUSE' || port === undefined)
    throw new CommandError(EXIT.config, `${address} cannot be bound (${code}): ${remedy}`)
  const holder = portHolder(port)
  const by = holder === undefined ? '' : ` by ${holder}`
  throw new CommandError(EXIT.config, `${address} is in use${by}: end what listens there, or ${remedy}`)
}

/** The link to the dashboard where the listener is open. Its key is for the person at a terminal, not for a log. */
const pageLine = async ({ listener }: Services, isTerminal: boolean, command: CommandPrinter): Promise<Line[]> => {
  if (listener.origin === undefined) return []
  const opened = isTerminal ? await listener.open() : undefined
  return [`  UI   ${opened?.url ?? `${listener.origin}   (a link: ${command('open')})`}`]
}
