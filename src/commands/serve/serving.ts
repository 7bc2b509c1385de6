/** What every serving process has beside its hosts: reloads, the admin socket and listener, a log without secrets. */
import { join } from 'node:path'
import { localControl } from '../../admin/control.ts'
import { HistoryKeeper } from '../../admin/catalog/history.ts'
import { folderAssets } from '../../admin/http/assets.ts'
import { AdminCredentials, readTokenFile } from '../../admin/http/credentials.ts'
import { AdminListener } from '../../admin/http/listener.ts'
import { openAdmin } from '../../admin/socket/server.ts'
import type { Control } from '../../admin/control.ts'
import type { Running } from '../../app/running.ts'
import { asError } from '../../values/as-error.ts'
import { LOCAL } from '../../auth/identity.ts'
import { DASHBOARD_FOLDER } from '../../dashboard-folder.ts'
import { createLog } from '../../log.ts'
import type { Redactor } from '../../redactor.ts'
import type { Loaded } from '../terminal/io.ts'
import { Reloading } from './reloading.ts'

export interface Voice {
  readonly log: ReturnType<typeof createLog>
  readonly redactor: Redactor
}

/** What is open beside the gateway. */
export interface Services extends AsyncDisposable {
  readonly listener: AdminListener
}

/** The log of a serving process; what a person should know of the configuration is said at once. */
export const openLog = ({ configuration, io }: Pick<Loaded, 'configuration' | 'io'>): Voice => {
  const { redactor } = io
  const log = createLog(configuration.log, io.stderr, redactor.hideJson)
  for (const warning of configuration.warnings) log.warn({}, warning)
  io.crashed.addEventListener('abort', () => {
    const { reason } = io.crashed
    log.fatal({ error: reason instanceof Error ? reason.stack : String(reason) }, 'unexpected; ending')
  })
  return { log, redactor }
}

/**
 * Opens both for a gateway that runs; `takesHosts`: others may attach to it. `whole`: the control of all processes, made of that of this
 * one. Disposing it again does nothing.
 */
export const openServices = async (
  running: Running,
  { sinceMs, read, place, io, context }: Loaded,
  { log, redactor }: Voice,
  takesHosts: boolean,
  whole: (control: Control) => Control = (control) => control,
): Promise<Services> => {
  const reloading: Reloading = new Reloading(running, context, read, sinceMs, io, log, (next) => listener.rebind(next.observe))
  const history = new HistoryKeeper(running.gateway.feed)
  const control = whole(
    localControl(
      running,
      reloading,
      context,
      redactor,
      () => listener.open(),
      () => history.all,
    ),
  )
  const listener: AdminListener = await makeListener(running, control, history, log)
  try {
    await bindListener(listener, running, log, takesHosts)
    const admin = await openAdmin(place, {
      control,
      attach: takesHosts ? (streams, path, isRelay) => running.attach(streams, path, isRelay) : undefined,
      isStopping: () => running.isStopping,
      isEndpoint: (path) => running.gateway.scopeFor(LOCAL, path) !== undefined,
      log,
    })
    const end = async (): Promise<void> => {
      await admin[Symbol.asyncDispose]()
      await listener[Symbol.asyncDispose]()
      await reloading[Symbol.asyncDispose]()
    }
    let ended: Promise<void> | undefined
    return { listener, [Symbol.asyncDispose]: () => (ended ??= end()) }
  } catch (error) {
    await listener[Symbol.asyncDispose]()
    await reloading[Symbol.asyncDispose]()
    throw error
  }
}

const makeListener = async (
  running: Running,
  control: Control,
  history: HistoryKeeper,
  log: Voice['log'],
): Promise<AdminListener> => {
  const { context, front, configuration } = running
  const file = configuration.stateDir === undefined ? undefined : join(configuration.stateDir, 'admin-token')
  const fileToken = file === undefined ? undefined : await readTokenFile(file).catch(warnOf(log, file))
  let stop: (() => void) | undefined
  return new AdminListener(configuration.observe, {
    control,
    context,
    credentials: new AdminCredentials(fileToken),
    tokenFile: fileToken === undefined ? undefined : file,
    named: () => running.configuration.named,
    hasFaults: () => running.faults.length > 0,
    identityOf: (token) => front.identityOf(token),
    assets: folderAssets(DASHBOARD_FOLDER),
    changed: (isOpen) => {
      history.watch(isOpen)
      if (isOpen) stop ??= running.watchCalls()
      else {
        stop?.()
        stop = undefined
      }
    },
    log,
  })
}

const warnOf =
  (log: Voice['log'], file: string) =>
  (error: unknown): undefined => {
    log.warn({ file, error: String(error) }, 'no token for programs can be kept (admin.bind)')
  }

/** Of several processes that serve one host each the first has the address; a process that any host may come to must have it. */
const bindListener = async (listener: AdminListener, running: Running, log: Voice['log'], takesHosts: boolean): Promise<void> => {
  try {
    await listener.rebind(running.configuration.observe)
  } catch (error) {
    if (takesHosts) throw error
    log.warn({ error: asError(error).message }, 'the admin listener is not opened here (admin.bind)')
  }
}
