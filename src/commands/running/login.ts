/** `trunkline login`: prints the link to sign in at a server and waits for the end. The link opens in a browser only with `--open` (T-11). */
import { spawn } from 'node:child_process'
import { withGateway } from '../serve/inline.ts'
import { CommandError, EXIT } from '../terminal/io.ts'
import type { Invocation } from '../terminal/io.ts'
import { printJson, printLines, remark } from '../terminal/print.ts'

/** What opens a URL, by platform: one program, and the URL as its one argument. */
const OPENERS: Readonly<Partial<Record<NodeJS.Platform, string>>> = { darwin: '/usr/bin/open', win32: 'explorer.exe' }
const OTHER_OPENER = 'xdg-open'

export const login = async (invocation: Invocation, server: string, opens: boolean): Promise<number> => {
  const { io, json, context } = invocation
  const end = await withGateway(invocation, async (control) => {
    const asked = await control.login(server)
    if (asked === undefined) {
      const keys = (await control.status()).servers.map(({ key }) => key)
      throw new CommandError(EXIT.usage, `"${server}" is no server that a person signs in to; known: ${keys.join(', ')}`)
    }
    const { url, code } = asked
    if (json) await printJson(io, asked)
    else await printLines(io, code === undefined ? [url] : [url, `code: ${code}`])
    if (opens) openUrl(url, context.platform)
    return control.loginEnd(server, io.interrupted)
  })
  if (end === 'done') {
    remark(io, `signed in to ${server}`)
    return EXIT.ok
  }
  throw new CommandError(EXIT.authorization, `${server}: ${end === 'failed' ? 'sign-in failed' : 'sign-in was not completed'}`)
}

/** The program and its argument; `undefined` for what no browser should be given. */
export const openerFor = (text: string, platform: NodeJS.Platform | undefined): readonly [string, string] | undefined => {
  const url = URL.parse(text)
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined
  return [OPENERS[platform ?? 'linux'] ?? OTHER_OPENER, url.href]
}

const openUrl = (text: string, platform: NodeJS.Platform | undefined): void => {
  const [program, url] = openerFor(text, platform) ?? []
  if (program === undefined || url === undefined) return
  // Without it the link that was printed is as good.
  spawn(program, [url], { shell: false, stdio: 'ignore', detached: true })
    .on('error', () => undefined)
    .unref()
}
