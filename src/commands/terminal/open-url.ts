/** Opens a link in the browser on this machine. */
import { spawn } from 'node:child_process'

/** The program that opens a URL, by platform; the URL is its only argument. */
const OPENERS: Readonly<Partial<Record<NodeJS.Platform, string>>> = { darwin: '/usr/bin/open', win32: 'explorer.exe' }
const OTHER_OPENER = 'xdg-open'

/** The program and its argument; `undefined` for a text that is not an http URL. */
export const openerFor = (text: string, platform: NodeJS.Platform | undefined): readonly [string, string] | undefined => {
  const url = URL.parse(text)
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined
  return [OPENERS[platform ?? 'linux'] ?? OTHER_OPENER, url.href]
}

/** Resolves with whether the program was started. The link was printed as well. */
export const openUrl = (text: string, platform: NodeJS.Platform | undefined): Promise<boolean> => {
  const [program, url] = openerFor(text, platform) ?? []
  if (program === undefined || url === undefined) return Promise.resolve(false)
  return new Promise((resolve) => {
    spawn(program, [url], { shell: false, stdio: 'ignore', detached: true })
      .on('error', () => resolve(false))
      .on('spawn', () => resolve(true))
      .unref()
  })
}
