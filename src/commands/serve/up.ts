/** `trunkline up`: serves the configuration until it is stopped. */
import { once } from 'node:events'
import { serverStatuses, urlsOf } from '../../admin/state/status.ts'
import type { Control } from '../../admin/control.ts'
import { startGateway } from '../../app.ts'
import { asError } from '../../values/as-error.ts'
import type { CommandPrinter } from '../../operator-command.ts'
import type { Running } from '../../app/running.ts'
import { foundFoot, foundHead } from '../setup/found.ts'
import { CommandError, CRASH_MS, EXIT, load } from '../terminal/io.ts'
import type { Invocation, Io, Loaded } from '../terminal/io.ts'
import { portHolder } from '../terminal/port-holder.ts'
import { WORKER_VARIABLE } from './exchange.ts'
import { openLog, openServices } from './serving.ts'
import type { ProcessLog, Services } from './serving.ts'
import { settled, statusChanges } from './settled.ts'
import { openUrl } from '../terminal/open-url.ts'
import { LiveScreen, NOTHING } from '../terminal/screen.ts'
import { painter, remark, remarkLines, terminalSize } from '../terminal/print.ts'
import type { Line, Paint } from '../terminal/print.ts'
import { faultLines, serverLines, thousands } from '../terminal/table.ts'
import { counted } from '../../values/counted.ts'

export interface UpOptions {
  /** Also serves one host on stdin and stdout, and ends when it has disconnected. */
  readonly stdio?: boolean
  /** Open the dashboard in a browser. */
  readonly open?: boolean
}

/** Why a serving process ends. */
type Ending = 'interrupted' | 'exhausted' | 'host left'

export const up = async (invocation: Invocation, options: UpOptions = {}): Promise<number> => {
  if (invocation.context.env[WORKER_VARIABLE] !== undefined) {
    const { serveAsWorker } = await import('./worker.ts')
    return serveAsWorker(invocation)
  }
  const loaded = await load({ ...invocation, io: withEarlyHangup(invocation.io) })
  const { io } = loaded
  using screen = options.stdio === true ? undefined : openScreen(loaded)
  if (screen === undefined) remarkLines(io, headLines(loaded))
  else screen.show({ ...NOTHING, top: [...headLines(loaded), '  starting'] })
  const served = screen === undefined ? loaded : { ...loaded, io: { ...io, stderr: screen.log } }
  const processLog = openLog(served)
  await using running = await start(served, processLog)
  if (running === undefined) return EXIT.ok
  await using services = await openServices(running, served, processLog, true, running.whole).catch(explainAddress)
  if (screen === undefined) remark(io, `trunkline is ready: ${urlsOf(running)[0]}`)
  const pipe = options.stdio === true ? running.attach({ input: io.stdin, output: io.stdout }, {}) : undefined
  const ending = endingOf(running, io, pipe)
  const show = { running, services, loaded, isOpened: options.open === true, ending }
  await (screen === undefined ? report(show) : keepShowing(screen, show))
  const isExhausted = (await ending) === 'exhausted'
  screen?.[Symbol.dispose]()
  if (isExhausted) processLog.log.fatal({ reason: await running.exhausted }, 'unrecoverable: the process ends, to be restarted')
  await running.stop(isExhausted || io.crashed.aborted ? CRASH_MS : undefined)
  await services[Symbol.asyncDispose]()
  return isExhausted ? EXIT.internal : EXIT.ok
}

/** SIGHUP during the start asks for a reload after it: service managers take a process for started as soon as it runs. */
const withEarlyHangup = (io: Io): Io => {
  let isAsked = false
  const off = io.onHangup(() => (isAsked = true))
  return {
    ...io,
    onHangup: (callback) => {
      off()
      if (isAsked) queueMicrotask(callback)
      return io.onHangup(callback)
    },
  }
}

/** `pipe`: settles when the host on it has disconnected. */
const endingOf = (running: Running, { interrupted }: Loaded['io'], pipe: Promise<void> | undefined): Promise<Ending> => {
  if (interrupted.aborted) return Promise.resolve('interrupted')
  return Promise.race([
    once(interrupted, 'abort').then((): Ending => 'interrupted'),
    running.exhausted.then((): Ending => 'exhausted'),
    ...(pipe === undefined ? [] : [pipe.then((): Ending => 'host left')]),
  ])
}

/** A live screen if stderr is a terminal and `telemetry.log.format` does not set a form of the log. */
const openScreen = ({ io, context, configuration, json }: Loaded): LiveScreen | undefined => {
  const { TERM } = context.env
  const isWanted = !json && configuration.log.format === 'auto' && terminalSize(io, TERM) !== undefined
  return isWanted ? new LiveScreen(io, TERM) : undefined
}

/** The content of the screen, and its end. */
interface Showing {
  readonly running: Running
  readonly services: Services
  readonly loaded: Loaded
  /** The dashboard is opened in a browser at once. */
  readonly isOpened: boolean
  readonly ending: Promise<Ending>
}

/** Prints the servers once, when they have started or failed; the log reports changes. Resolves when the process is to end. */
const report = async ({ running, services, loaded, isOpened, ending }: Showing): Promise<void> => {
  const { io, context, configuration, command } = loaded
  const opened = isOpened ? await openPage(services, context.platform) : undefined
  await Promise.race([settled(running, configuration.gateway.listBudgetMs, io.interrupted), ending])
  if (io.interrupted.aborted) return
  const paint = painter(io.stderr, context.env)
  const { rows, sum } = serverTable(running, paint, command)
  const page = await pageLine(services, io.stderr.isTTY === true, command)
  remarkLines(io, [...rows, sum, ...page, ...troubleLine(opened), ...footLines(loaded, paint)])
  await ending
}

/** Shows the servers, and updates them with every change; the key `o` opens the dashboard. */
const keepShowing = async (screen: LiveScreen, { running, services, loaded, isOpened, ending }: Showing): Promise<void> => {
  const { io, context, command } = loaded
  const paint = painter(io.stderr, context.env)
  let page = await pageLine(services, true, command)
  const keys = io.onKey === undefined ? 'Ctrl-C ends' : 'o opens the dashboard, Ctrl-C ends'
  const show = (): void => {
    const { rows, sum } = serverTable(running, paint, command, io.stderr.columns)
    screen.show({
      top: headLines(loaded),
      middle: rows,
      bottom: [sum, ...page, ...footLines(loaded, paint), `  ${keys}`],
      rest: (left) => `  … ${left} more lines: ${command('ps')}`,
    })
  }
  show()
  const shown = statusChanges(running).subscribe(show)
  const showPage = async (): Promise<void> => {
    const opened = await openPage(services, context.platform)
    page = [...(opened.url === undefined ? [] : [`  UI   ${opened.url}`]), ...troubleLine(opened)]
    show()
  }
  const offKeys = io.onKey?.((key) => {
    if (key === 'o') void showPage()
  })
  if (isOpened) await showPage()
  await ending
  offKeys?.()
  shown.unsubscribe()
  show()
}

const headLines = ({ discovered, context }: Loaded): Line[] => (discovered === undefined ? [] : foundHead(discovered, context))
const footLines = ({ discovered, command }: Loaded, paint: Paint): Line[] =>
  discovered === undefined ? [] : foundFoot(discovered, paint, command)

/** A line per server, and one with the endpoint and totals. */
const serverTable = (
  running: Running,
  paint: Paint,
  command: CommandPrinter,
  width?: number,
): { readonly rows: Line[]; readonly sum: Line } => {
  const servers = serverStatuses(running)
  const tools = servers.reduce((sum, server) => sum + server.tools, 0)
  const tokens = servers.reduce((sum, server) => sum + server.tokens, 0)
  return {
    rows: [...faultLines(running.faults, paint), ...serverLines(servers, paint, command, width)],
    sum: `  MCP  ${urlsOf(running)[0]}     ${counted(tools, 'tool')}, ${thousands(tokens)} tokens`,
  }
}

/** A running gateway, of one or several processes; `whole`: combines the control of this process with those of others. */
interface Started extends Running {
  readonly whole?: (control: Control) => Control
}

/** `undefined`: interrupted. */
const start = async (loaded: Loaded, processLog: ProcessLog): Promise<Started | undefined> => {
  const { configuration, context, io } = loaded
  try {
    if (configuration.workers === 1)
      return await startGateway(configuration, { ...processLog, path: context.env['PATH'], atExit: io.atExit })
    const { startWorkers } = await import('./workers.ts')
    return await startWorkers(loaded, processLog)
  } catch (error) {
    // A signal to all processes ends the workers before they serve.
    if (io.interrupted.aborted && !io.crashed.aborted) return undefined
    return explainAddress(error)
  }
}

/** Throws the error, with a sentence if an address could not be bound. */
const explainAddress = (error: unknown): never => {
  // Cast: Node adds these members to the errors of a listener, `listen` the option.
  const { code, address, port, option } = error as NodeJS.ErrnoException & { address?: string; port?: number; option?: string }
  if (address === undefined) throw error
  // It was bound, and must not be served.
  if (code === undefined) throw new CommandError(EXIT.config, asError(error).message)
  const remedy = option === undefined ? 'choose another with --listen HOST:PORT' : `choose another for ${option}`
  if (code === 'EADDRINUSE' && port === undefined)
    throw new CommandError(EXIT.config, `${address} is in use: end the process that listens there, or ${remedy}`)
  if (code !== 'EADDRINUSE' || port === undefined)
    throw new CommandError(EXIT.config, `${address} cannot be bound (${code}): ${remedy}`)
  const holder = portHolder(port)
  const by = holder === undefined ? '' : ` by ${holder}`
  throw new CommandError(EXIT.config, `${address} is in use${by}: end the process that listens there, or ${remedy}`)
}

/** A link that was passed to a browser, and why that failed. */
interface OpenedPage {
  readonly url?: string
  readonly trouble?: string
}

/** Passes a new link to the dashboard to a browser. Opens the listener if it is closed. */
const openPage = async ({ listener }: Services, platform: NodeJS.Platform | undefined): Promise<OpenedPage> => {
  const opened = await listener.open().catch((error: unknown) => asError(error))
  if (opened === undefined) return { trouble: 'the dashboard is disabled: set ui.enabled' }
  if (opened instanceof Error) return { trouble: `the dashboard cannot be opened: ${opened.message}` }
  const { url } = opened
  return (await openUrl(url, platform)) ? { url } : { url, trouble: 'no browser can be started here: open this link in one' }
}

const troubleLine = ({ url, trouble }: OpenedPage = {}): Line[] =>
  trouble === undefined ? [] : [`  ${url === undefined ? 'UI ' : '   '}  ${trouble}`]

/** The link to the dashboard if the listener is open. It has a key only on a terminal, not in a log. */
const pageLine = async ({ listener }: Services, isTerminal: boolean, command: CommandPrinter): Promise<Line[]> => {
  if (listener.origin === undefined) return []
  const opened = isTerminal ? await listener.open() : undefined
  return [`  UI   ${opened?.url ?? `${listener.origin}   (a link: ${command('open')})`}`]
}
