/** Commands to the running process: `ps`, `reload`, `restart`, `approve`. */
import type { Control } from '../admin/control.ts'
import { ConfigError } from '../config/problems.ts'
import { printable } from '../log.ts'
import { reportLines } from './check.ts'
import { running } from './inline.ts'
import { CommandError, EXIT, printJson, printLines } from './io.ts'
import type { Invocation } from './io.ts'
import { painter } from './table.ts'

export const ps = async (invocation: Invocation): Promise<number> => {
  const { io, json, context } = invocation
  const status = await (await running(invocation)).status()
  if (json) {
    await printJson(io, status)
    return EXIT.ok
  }
  const { pid, version, uptimeMs, urls, auth, files } = status
  const head = `trunkline ${version}  pid ${pid}  up ${spell(uptimeMs)}  ${urls[0] ?? 'on a pipe'}  auth ${auth}  ${files[0]}`
  await printLines(io, [head, ...reportLines(status, painter(io.stdout, context.env['NO_COLOR']))])
  return EXIT.ok
}

export const reload = async (invocation: Invocation): Promise<number> => {
  const { io, json } = invocation
  const end = await (await running(invocation)).reload()
  if (end.kind === 'refused') throw new ConfigError(end.problems)
  if (json) await printJson(io, end)
  else {
    const signs = [
      ...end.added.map((key) => `+ ${key}`),
      ...end.removed.map((key) => `- ${key}`),
      ...end.changed.map((key) => `~ ${key}`),
    ]
    await printLines(io, signs.length === 0 ? ['reloaded; no server was added, removed or restarted'] : signs)
    for (const option of end.needsRestart) io.stderr.write(`${option} takes effect when trunkline is started again\n`)
  }
  return EXIT.ok
}

export const approve = async (invocation: Invocation, server: string, tool: string | undefined): Promise<number> => {
  const { io, json } = invocation
  const control = await running(invocation)
  const approved = await control.approve(server, tool)
  if (approved === undefined) throw await unknownServer(control, server)
  if (tool !== undefined && approved.length === 0)
    throw new CommandError(EXIT.usage, `no changed definition of "${tool}" waits for approval; trunkline ps shows which do`)
  if (json) await printJson(io, { approved })
  else
    await printLines(
      io,
      approved.length === 0 ? ['nothing waits for approval'] : approved.map((name) => printable(`approved ${name}`)),
    )
  return EXIT.ok
}

export const restart = async (invocation: Invocation, server: string): Promise<number> => {
  const { io, json } = invocation
  const control = await running(invocation)
  if (!(await control.restart(server))) throw await unknownServer(control, server)
  if (json) await printJson(io, { restarted: server })
  else await printLines(io, [`restarted ${server}`])
  return EXIT.ok
}

const unknownServer = async (control: Control, server: string): Promise<CommandError> => {
  const keys = (await control.status()).servers.map(({ key }) => key)
  return new CommandError(EXIT.usage, `no server "${server}" is running; known: ${keys.join(', ')}`)
}

const spell = (ms: number): string => {
  const seconds = Math.floor(ms / 1_000)
  if (seconds < 60) return `${seconds}s`
  return seconds < 3_600
    ? `${Math.floor(seconds / 60)}m`
    : `${Math.floor(seconds / 3_600)}h${Math.floor((seconds % 3_600) / 60)}m`
}
