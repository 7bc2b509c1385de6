/** What every serving process has beside its hosts: reloads, the admin socket, a log without secrets. */
import { localControl } from '../admin/control.ts'
import { openAdmin } from '../admin/server.ts'
import { adminPlace } from '../admin/socket.ts'
import type { Running } from '../app.ts'
import { createLog } from '../log.ts'
import { Redactor } from '../redactor.ts'
import type { Invocation } from './io.ts'
import { Reloading } from './reloading.ts'

export interface Voice {
  readonly log: ReturnType<typeof createLog>
  readonly redactor: Redactor
}

/** The log of a serving process; what a person should know of the configuration is said at once. */
export const openLog = ({ configuration, io }: Invocation): Voice => {
  const redactor = new Redactor(configuration.secrets)
  const log = createLog(configuration.log, io.stderr, redactor.hide)
  for (const warning of configuration.warnings) log.warn({}, warning)
  return { log, redactor }
}

/** Opens both for a gateway that runs; `takesHosts`: others may attach to it. */
export const openServices = async (
  running: Running,
  { sinceMs, read, context, io }: Invocation,
  { log, redactor }: Voice,
  takesHosts: boolean,
): Promise<AsyncDisposable> => {
  const stack = new AsyncDisposableStack()
  const reloading = stack.use(new Reloading(running, read, sinceMs, io, log, redactor))
  const admin = await openAdmin(adminPlace(running.configuration, context.uid, context.platform), {
    control: localControl(running, reloading, redactor),
    attach: takesHosts ? (streams, server) => running.attach(streams, { server }) : undefined,
    hasServer: (server) => running.gateway.hasScope({ server }),
    log,
  })
  stack.use(admin)
  return stack
}
