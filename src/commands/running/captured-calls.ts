/** Captured calls of the running process: found by number; refusals become errors of the command. */
import type { Control } from '../../admin/control.ts'
import { AdminRefusal } from '../../admin/refusal.ts'
import type { CallDetail } from '../../observe/capture/captured.ts'
import { OPERATOR } from '../../observe/viewer.ts'
import { running } from '../serve/inline.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'

/** The captured call with this number, as typed, and the process that has it. */
export const findCall = async (
  invocation: Invocation,
  id: string,
): Promise<{ readonly control: Control; readonly detail: CallDetail }> => {
  if (!/^\d{1,15}$/.test(id))
    throw new CommandError(EXIT.usage, `"${id}" is not the number of a call; ${invocation.command('tail')} shows them`)
  const control = await running(invocation)
  return { control, detail: await control.callDetail(OPERATOR, Number(id)).catch(explainRefusal) }
}

export const explainRefusal = (error: unknown): never => {
  if (!(error instanceof AdminRefusal)) throw error
  const place = error.at === undefined ? '' : ` (at character ${error.at + 1})`
  throw new CommandError(error.status >= 500 ? EXIT.unreachable : EXIT.usage, `${error.message}${place}`)
}
