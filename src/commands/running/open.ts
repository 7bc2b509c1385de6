/** `trunkline open`: a link to the dashboard of the running process, opened in a browser where a person asks at a terminal. */
import { running } from '../serve/inline.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { openUrl } from '../terminal/open-url.ts'
import { printJson, printLines } from '../terminal/print.ts'

export const open = async (invocation: Invocation, opens: boolean): Promise<number> => {
  const { io, json, context } = invocation
  const opened = await (await running(invocation)).open()
  if (opened === undefined)
    throw new CommandError(
      EXIT.unreachable,
      'the dashboard is switched off: set ui.enabled, and admin.bind if it is to stay open',
    )
  if (json) await printJson(io, opened)
  else await printLines(io, [opened.url])
  if (opens) void openUrl(opened.url, context.platform)
  return EXIT.ok
}
