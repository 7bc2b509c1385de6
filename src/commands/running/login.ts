/** `trunkline login`: prints the link to sign in to a server and waits for the end. The link opens in a browser only with `--open` (T-11). */
import { withGateway } from '../serve/inline.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { openUrl } from '../terminal/open-url.ts'
import { printJson, printLines, remark } from '../terminal/print.ts'

export const login = async (invocation: Invocation, server: string, opens: boolean): Promise<number> => {
  const { io, json, context } = invocation
  const end = await withGateway(invocation, async (control) => {
    const link = await control.login(server)
    if (link === undefined) {
      const keys = (await control.status()).servers.map(({ key }) => key)
      const hint = keys.includes(server) ? `servers.${server}.credentials has no oauth` : `known: ${keys.join(', ')}`
      throw new CommandError(EXIT.usage, `"${server}" is not a server with a sign-in; ${hint}`)
    }
    const { url, code } = link
    if (json) await printJson(io, link)
    else await printLines(io, code === undefined ? [url] : [url, `code: ${code}`])
    if (opens) void openUrl(url, context.platform)
    return control.loginEnd(server, io.interrupted)
  })
  if (end === 'done') {
    remark(io, `signed in to ${server}`)
    return EXIT.ok
  }
  if (io.interrupted.aborted) throw new CommandError(EXIT.interrupted, 'interrupted')
  throw new CommandError(EXIT.authorization, `${server}: ${end === 'failed' ? 'sign-in failed' : 'sign-in was not completed'}`)
}
