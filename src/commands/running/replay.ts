/** `trunkline replay`: sends a captured call again, unchanged or edited. A tool that may do more than read needs a confirmation. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AdminRefusal } from '../../admin/refusal.ts'
import type { ReplayEnd, ReplayRequest } from '../../admin/calls/replay.ts'
import type { CallDetail } from '../../observe/capture/captured.ts'
import { asError } from '../../values/as-error.ts'
import { decodeUtf8 } from '../../values/utf8.ts'
import { join as joinParts, Payload } from '../../wire/message/payload.ts'
import { indentJson } from '../../values/json-tree.ts'
import { OPERATOR } from '../../observe/viewer.ts'
import { canAsk, confirm } from '../terminal/ask.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { printJsonText, remark } from '../terminal/print.ts'
import { explainRefusal, findCall } from './captured-calls.ts'

export interface ReplayOptions {
  /** Open the parameters in `$VISUAL` or `$EDITOR` first. */
  readonly edit?: boolean
  /** Do not ask. */
  readonly yes?: boolean
}

export const replayCall = async (invocation: Invocation, id: string, { edit, yes }: ReplayOptions): Promise<number> => {
  const { io, command } = invocation
  const { control, detail } = await findCall(invocation, id)
  const params = edit === true ? await editParams(invocation, paramsOf(detail)) : undefined
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
  remark(io, `call ${end.call}; see its messages: ${command('report', String(end.call))}`)
  if (!end.isError) return EXIT.ok
  throw new CommandError(EXIT.tool, `${detail.name ?? detail.method} ended with the error above`)
}

/** Without `_meta`; numbers keep their spelling. */
const paramsOf = ({ id, request }: CallDetail): string => {
  if (request?.text === undefined)
    throw new CommandError(EXIT.usage, `the request of call ${id} is not kept completely (ui.capture.bodies, ui.capture.body)`)
  const params = Payload.at(Payload.at(Buffer.from(request.text)).raw('params') ?? Buffer.from('{}'))
  params.delete('_meta')
  return indentJson(joinParts(params.parts()).toString())
}

/** The params after editing; throws if the editor fails, or for text that is not JSON. */
const editParams = async ({ io, context }: Invocation, text: string): Promise<string> => {
  const editor = context.env['VISUAL'] || context.env['EDITOR']
  if (editor === undefined || editor === '') throw new CommandError(EXIT.usage, 'no editor is named: set VISUAL or EDITOR')
  const folder = await mkdtemp(join(tmpdir(), 'trunkline-'))
  const takeBack = io.lendTerminal?.()
  try {
    const file = join(folder, 'params.json')
    await writeFile(file, `${text}\n`, { mode: 0o600 })
    // Through a shell, as git does: the variable may contain options.
    const child = spawn('sh', ['-c', `${editor} "$1"`, 'sh', file], { stdio: 'inherit' })
    const [code]: (number | null)[] = await once(child, 'exit')
    if (code !== 0) throw new CommandError(EXIT.interrupted, `the editor ended with ${code}: nothing was called`)
    const changed = decodeUtf8(await readFile(file)) ?? ''
    try {
      JSON.parse(changed)
    } catch (error) {
      throw new CommandError(EXIT.usage, `the edited text is not JSON (${asError(error).message}): nothing was called`)
    }
    remark(io, `sending ${changed.trim().length} characters of parameters`)
    return changed
  } finally {
    takeBack?.()
    await rm(folder, { recursive: true, force: true })
  }
}
