/** What every serving process has beside its hosts: reloads, the admin socket, a log without secrets. */
import { localControl } from '../../admin/control.ts'
import { openAdmin } from '../../admin/server.ts'
import type { Running } from '../../app.ts'
import { LOCAL } from '../../auth/identity.ts'
import { createLog } from '../../log.ts'
import type { Redactor } from '../../redactor.ts'
import type { Loaded } from '../terminal/io.ts'
import { Reloading } from './reloading.ts'

export interface Voice {
  readonly log: ReturnType<typeof createLog>
  readonly redactor: Redactor
}

/** The log of a serving process; what a person should know of the configuration is said at once. */
export const openLog = ({ configuration, io }: Loaded): Voice => {
  const { redactor } = io
  const log = createLog(configuration.log, io.stderr, redactor.hideJson)
  for (const warning of configuration.warnings) log.warn({}, warning)
  io.crashed.addEventListener('abort', () => {
    const { reason } = io.crashed
    log.fatal({ error: reason instanceof Error ? reason.stack : String(reason) }, 'unexpected; ending')
  })
  return { log, redactor }
}

/** Opens both for a gateway that runs; `takesHosts`: others may attach to it. Disposing it again does nothing. */
export const openServices = async (
  running: Running,
  { sinceMs, read, place, io, context }: Loaded,
  { log, redactor }: Voice,
  takesHosts: boolean,
): Promise<AsyncDisposable> => {
  const reloading = new Reloading(running, context, read, sinceMs, io, log)
  try {
    const admin = await openAdmin(place, {
      control: localControl(running, reloading, context, redactor),
      attach: takesHosts ? (streams, path, isRelay) => running.attach(streams, path, isRelay) : undefined,
      isStopping: () => running.isStopping,
      isEndpoint: (path) => running.gateway.scopeFor(LOCAL, path) !== undefined,
      log,
    })
    const end = async (): Promise<void> => {
      await admin[Symbol.asyncDispose]()
      await reloading[Symbol.asyncDispose]()
    }
    let ended: Promise<void> | undefined
    return { [Symbol.asyncDispose]: () => (ended ??= end()) }
  } catch (error) {
    await reloading[Symbol.asyncDispose]()
    throw error
  }
}
