/** `trunkline replay`: a captured call again, as it was or edited. A tool that may do more than read is asked for first. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AdminRefusal } from '../../admin/refusal.ts'
import type { ReplayEnd, ReplayRequest } from '../../admin/calls/replay.ts'
import type { CallDetail } from '../../observe/capture/captured.ts'
import { asError } from '../../values/as-error.ts'
import { jsonObject, memberOf } from '../../values/json-object.ts'
import { running } from '../serve/inline.ts'
import { canAsk, confirm } from '../terminal/ask.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { printJsonText, remark } from '../terminal/print.ts'
import { explainRefusal } from './refused.ts'

export interface ReplayOptions {
  /** Open the parameters in `$VISUAL` or `$EDITOR` first. */
  readonly edit?: boolean
  /** Do not ask. */
  readonly yes?: boolean
}

const OPERATOR = { principal: 'local', isOperator: true }

export const replayCall = async (invocation: Invocation, id: string, { edit, yes }: ReplayOptions): Promise<number> => {
  const { io, command } = invocation
  if (!/^\d{1,15}$/.test(id)) throw new CommandError(EXIT.usage, `"${id}" is no number of a call; ${command('tail')} shows them`)
  const control = await running(invocation)
  const detail = await control.callDetail(OPERATOR, Number(id)).catch(explainRefusal)
  const params = edit === true ? await edited(invocation, paramsOf(detail)) : undefined
  const send = (isConfirmed: boolean): Promise<ReplayEnd> => {
    const request: ReplayRequest = { id: Number(id), params, isConfirmed }
    return control.replay(OPERATOR, request, io.interrupted)
  }
  const end = await send(yes === true).catch(async (error: unknown) => {
    if (!(error instanceof AdminRefusal) || error.code !== 'confirm') return explainRefusal(error)
    if (!canAsk(io)) throw new CommandError(EXIT.usage, `${error.message}: add --yes`)
    if (!(await confirm(io, `${error.message}. Call it?`, false))) throw new CommandError(EXIT.interrupted, 'nothing was called')
    return send(true).catch(explainRefusal)
  })
  if (end.kind !== 'result') throw new CommandError(EXIT.tool, `${detail.name ?? detail.method}: ${end.message}`)
  await printJsonText(io, end.result.toString())
  remark(io, `call ${end.call}; what was sent and answered: ${command('report', String(end.call))}`)
  return end.isError ? EXIT.tool : EXIT.ok
}

const paramsOf = ({ id, request }: CallDetail): string => {
  if (request?.text === undefined)
    throw new CommandError(EXIT.usage, `the request of call ${id} is not kept whole (ui.capture.bodies, ui.capture.body)`)
  const { _meta, ...rest } = jsonObject(memberOf(JSON.parse(request.text), 'params')) ?? {}
  return JSON.stringify(rest, undefined, 2)
}

/** What the person made of it; the command ends where that is nothing, or no JSON. */
const edited = async ({ io, context }: Invocation, text: string): Promise<string> => {
  const editor = context.env['VISUAL'] ?? context.env['EDITOR']
  if (editor === undefined || editor === '') throw new CommandError(EXIT.usage, 'no editor is named: set VISUAL or EDITOR')
  const folder = await mkdtemp(join(tmpdir(), 'trunkline-'))
  try {
    const file = join(folder, 'params.json')
    await writeFile(file, `${text}\n`, { mode: 0o600 })
    // As git does: the variable may hold options.
    const child = spawn('sh', ['-c', `${editor} "$1"`, 'sh', file], { stdio: 'inherit' })
    const [code]: (number | null)[] = await once(child, 'exit')
    if (code !== 0) throw new CommandError(EXIT.interrupted, `the editor ended with ${code}: nothing was called`)
    const made = await readFile(file, 'utf8')
    try {
      JSON.parse(made)
    } catch (error) {
      throw new CommandError(EXIT.usage, `what was edited is no JSON (${asError(error).message}): nothing was called`)
    }
    remark(io, `sending ${made.trim().length} characters of parameters`)
    return made
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
