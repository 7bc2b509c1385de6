/** The services of a serving process besides its hosts: reloads, the admin socket and listener, a log without secrets. */
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

/** The log of a process, and what keeps secrets out of it. */
export interface ProcessLog {
  readonly log: ReturnType<typeof createLog>
  readonly redactor: Redactor
}

/** The opened services. */
export interface Services extends AsyncDisposable {
  readonly listener: AdminListener
}

/** The log of a serving process; warnings of the configuration are logged at once. */
export const openLog = ({ configuration, io }: Pick<Loaded, 'configuration' | 'io'>): ProcessLog => {
  const { redactor } = io
  const log = createLog(configuration.log, io.stderr, redactor.hideJson)
  for (const warning of configuration.warnings) log.warn({}, warning)
  io.crashed.addEventListener('abort', () => {
    const { reason } = io.crashed
    log.fatal({ error: reason instanceof Error ? reason.stack : String(reason) }, 'unexpected error: the process ends')
  })
  return { log, redactor }
}

/**
 * Opens the services of a running gateway; `takesHosts`: other hosts may attach to it. `whole`: combines the control of this process with
 * those of others. Disposing twice is allowed.
 */
export const openServices = async (
  running: Running,
  { sinceMs, read, socket, io, context }: Loaded,
  { log, redactor }: ProcessLog,
  takesHosts: boolean,
  whole: (control: Control) => Control = (control) => control,
): Promise<Services> => {
  const reloading: Reloading = new Reloading(running, {
    context,
    read,
    sinceMs,
    onHangup: (callback) => io.onHangup(callback),
    log,
    prepare: (next) => listener.rebind(next.observe),
  })
  const history = new HistoryKeeper(running.gateway.feed)
  const control = whole(
    localControl(running, {
      reloader: reloading,
      context,
      redactor,
      open: () => listener.open(),
      history: () => history.all,
    }),
  )
  const listener: AdminListener = await makeListener(running, control, history, log)
  try {
    await bindListener(listener, running, log, takesHosts)
    const admin = await openAdmin(socket, {
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
  log: ProcessLog['log'],
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
  (log: ProcessLog['log'], file: string) =>
  (error: unknown): undefined => {
    log.warn({ file, error: String(error) }, 'there is no token for programs (admin.bind)')
  }

/** A process that serves one host goes on without the address, which another one may have; a process for all hosts fails. */
const bindListener = async (
  listener: AdminListener,
  running: Running,
  log: ProcessLog['log'],
  takesHosts: boolean,
): Promise<void> => {
  try {
    await listener.rebind(running.configuration.observe)
  } catch (error) {
    if (takesHosts) throw error
    log.warn({ error: asError(error).message }, 'the admin listener is not opened here (admin.bind)')
  }
}
