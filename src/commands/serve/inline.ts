/** Gives a command a gateway: the running process of the same configuration, else one that is started for the command. */
import { connectAdmin } from '../../admin/socket/client.ts'
import { localControl } from '../../admin/control.ts'
import type { Control } from '../../admin/control.ts'
import { startGateway } from '../../app.ts'
import { createLog } from '../../log.ts'
import { SHARED_PRINCIPAL } from '../../rpc/call.ts'
import { operatorCommand } from '../../operator-command.ts'
import { CommandError, EXIT, load } from '../terminal/io.ts'
import type { Invocation, Loaded } from '../terminal/io.ts'
import { showWaiting } from '../terminal/waiting.ts'
import { settled } from './settled.ts'

/** The running process of the same configuration; `undefined`: there is none. Ctrl-C ends every wait for its answers. */
export const runningProcess = ({ socket, io }: Pick<Invocation, 'socket' | 'io'>): Promise<Control | undefined> =>
  connectAdmin(socket, io.interrupted)

/** Uses the running process if there is one, else starts the servers here and ends them afterwards. */
export const withGateway = async <T>(invocation: Invocation, use: (control: Control) => Promise<T>): Promise<T> => {
  const remote = await runningProcess(invocation)
  return remote === undefined ? inline(await load(invocation), use) : use(remote)
}

/** Rejects with exit code 4 where no process of this configuration runs. */
export const running = async (invocation: Invocation): Promise<Control> => {
  const remote = await runningProcess(invocation)
  if (remote !== undefined) return remote
  const { files, isFound } = invocation
  // A file that does not exist is not suggested.
  const nothing = isFound ? `no process runs ${files[0]}` : 'no process of yours runs here'
  throw new CommandError(EXIT.unreachable, `${nothing}; start one: ${operatorCommand(isFound ? files : [], 'up')}`)
}

/** A gateway that serves no host, with all its servers started. */
export const inline = async <T>({ configuration, context, io }: Loaded, use: (control: Control) => Promise<T>): Promise<T> => {
  const { redactor } = io
  const log = createLog({ ...configuration.log, level: 'error' }, io.stderr, redactor.hideJson)
  const { host } = configuration
  // Lazy ones, too: a command shows what they offer now.
  const servers = configuration.servers.map((server) => ({ ...server, start: 'eager' as const }))
  const silent = { ...configuration, host: { ...host, addresses: [] }, servers }
  await using gateway = await startGateway(silent, { log, path: context.env['PATH'], atExit: io.atExit, redactor })
  // Without authentication, the command is the only caller of each server.
  if (host.auth === undefined) for (const downstream of gateway.fleet.downstreams$.value) downstream.for(SHARED_PRINCIPAL)
  {
    using _waiting = showWaiting(gateway, io, context.env)
    await settled(gateway, Math.max(0, ...servers.map(({ timeouts }) => timeouts.startMs)), io.interrupted)
  }
  if (io.interrupted.aborted) throw new CommandError(EXIT.interrupted, 'interrupted')
  const refuse = async () => ({ kind: 'refused', problems: [] }) as const
  const reloader = { problems: [], past: [], reload: refuse, plan: refuse }
  return await use(localControl(gateway, { reloader, context, redactor }))
}
