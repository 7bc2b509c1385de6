/** `trunkline open`: prints a link to the dashboard of the running process, and opens it in a browser if asked to. */
import { running } from '../serve/inline.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { openUrl } from '../terminal/open-url.ts'
import { printResult } from '../terminal/print.ts'

export const open = async (invocation: Invocation, opens: boolean): Promise<number> => {
  const opened = await (await running(invocation)).open()
  if (opened === undefined)
    throw new CommandError(EXIT.unreachable, 'the dashboard is disabled: set ui.enabled, and admin.bind if it should stay open')
  await printResult(invocation, opened, () => [opened.url])
  if (opens) void openUrl(opened.url, invocation.context.platform)
  return EXIT.ok
}
