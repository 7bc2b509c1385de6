/** `trunkline up`: serves the configuration until it is told to end. */
import { startGateway } from '../app.ts'
import type { Running } from '../app.ts'
import { createLog } from '../log.ts'
import type { Configuration } from '../config/options.ts'
import type { Context } from '../config/surroundings.ts'
import { CommandError, EXIT } from './io.ts'
import type { Io } from './io.ts'
import { reloading } from './reloading.ts'
import { statusTable } from './status-table.ts'

export const up = async (
  configuration: Configuration,
  reload: () => Promise<Configuration>,
  context: Context,
  io: Io,
): Promise<number> => {
  const log = createLog(configuration.log, io.stderr)
  for (const warning of configuration.warnings) log.warn({}, warning)
  await using running = await start(configuration, context, log)
  const [first] = running.front.addresses
  const url = `http://${first?.host.includes(':') ? `[${first.host}]` : first?.host}:${first?.port}${configuration.host.path}`
  io.stderr.write(`trunkline is ready: ${url}\n`)
  await using _reloads = reloading(running, reload, io, log)
  await settled(running, configuration.gateway.listBudgetMs, io.interrupted)
  if (!io.interrupted.aborted) io.stderr.write(statusTable(running, url))
  await until(io.interrupted)
  await running.stop()
  return EXIT.ok
}

const start = async (configuration: Configuration, context: Context, log: ReturnType<typeof createLog>): Promise<Running> => {
  try {
    return await startGateway(configuration, { log, path: context.env['PATH'] })
  } catch (error) {
    const { code, address } = error as NodeJS.ErrnoException & { address?: string }
    if (code === 'EADDRINUSE')
      throw new CommandError(
        EXIT.config,
        `${address} is in use: end what listens there, or choose another with --listen HOST:PORT`,
      )
    if (code === 'EACCES' || code === 'EADDRNOTAVAIL')
      throw new CommandError(EXIT.config, `${address} cannot be bound (${code}): choose another with --listen HOST:PORT`)
    throw error
  }
}

/** Until every server has said what it is, at most as long as the first list would wait. */
const settled = async (running: Running, budgetMs: number, signal: AbortSignal): Promise<void> => {
  const deadlineMs = performance.now() + budgetMs
  const isStarting = (): boolean => running.fleet.downstreams$.value.some(({ health$ }) => health$.value.state === 'starting')
  while (isStarting() && performance.now() < deadlineMs && !signal.aborted)
    await new Promise((resolve) => setTimeout(resolve, 50))
}

const until = (signal: AbortSignal): Promise<void> =>
  signal.aborted ? Promise.resolve() : new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
