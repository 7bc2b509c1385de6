/** The dashboard of a real process, opened in a browser: one server with the tools of `children/dashboard-server.ts`. */
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'
import { openAdmin } from './admin.ts'
import { commandLine } from './cli.ts'
import type { Cli } from './cli.ts'
import { openWindow } from './real-browser.ts'

const SERVER = join(import.meta.dirname, 'children/dashboard-server.ts')

const configurationOf = (folder: string, body: string): string => `admin: { bind: "127.0.0.1:0" }
ui: { write: true, capture: { bodies: all, body: ${body} } }
reload: { watch: false }
servers:
  code:
    command: ${JSON.stringify(process.execPath)}
    args: ${JSON.stringify([SERVER, join(folder, 'words.txt')])}
`

export interface Visit {
  readonly cli: Cli
  /** The MCP endpoint. */
  readonly url: string
  readonly origin: string
  readonly page: Page
  /** Shows a path of the dashboard. */
  readonly open: (path: string) => Promise<void>
  /** The number of the newest call. */
  readonly latest: () => Promise<number>
}

/** `body`: `ui.capture.body`. `more`: lines behind the server `code`. */
export const visitDashboard = async (browser: Browser, { body = '64KiB', more = '' } = {}): Promise<Visit> => {
  const cli = await commandLine()
  await cli.write('trunkline.yaml', configurationOf(cli.folder, body) + more)
  const { url } = await cli.up()
  const { origin, token, ask } = await openAdmin(cli)
  await expect.poll(async () => JSON.stringify((await ask('GET', '/api/tools')).json), { timeout: 10_000 }).toContain('code__')
  const { page, context } = await openWindow(browser)
  onTestFinished(() => context.close())
  await context.addInitScript(`sessionStorage.setItem('trunkline-token', ${JSON.stringify(token)})`)
  return {
    cli,
    url,
    origin,
    page,
    open: async (path) => void (await page.goto(origin + path)),
    latest: async () => ((await ask('GET', '/api/calls?limit=1')).json as { calls: { id: number }[] }).calls[0]?.id ?? 0,
  }
}
