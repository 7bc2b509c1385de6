/** Megabytes of hostile texts in the dashboard: what is shown is bounded and cut with a mark, and the page goes on. */
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { callTool, openAdmin } from '../support/admin.ts'
import type { Admin } from '../support/admin.ts'
import { commandLine } from '../support/cli.ts'
import { describeWithBrowser, openWindow } from '../support/real-browser.ts'

const SERVER = join(import.meta.dirname, '../support/children/large-server.ts')
const MARK = /more are not shown|…/

const configurationOf = (folder: string): string => `admin: { bind: "127.0.0.1:0" }
ui: { write: true, capture: { bodies: all, body: 16MiB, ring: 128MiB } }
reload: { watch: false }
lock: { on_change: hold }
servers:
  large:
    command: ${JSON.stringify(process.execPath)}
    args: ${JSON.stringify([SERVER, join(folder, 'words.txt')])}
    limits: { max_text: 4MiB, max_schema: 4MiB, max_message: 64MiB }
toolsets:
  some: { tools: [large__all] }
`

/** What the page holds, and what of it the texts were able to do. */
const SEEN = `({
  characters: document.body.textContent.length,
  elements: document.querySelectorAll('*').length,
  made: document.querySelectorAll('main img, main script, main iframe, main b').length,
  turned: /[\\u202a-\\u202e\\u001b]/.test(document.body.textContent),
  wider: document.documentElement.scrollWidth - document.documentElement.clientWidth,
})`
interface Seen {
  readonly characters: number
  readonly elements: number
  readonly made: number
  readonly turned: boolean
  readonly wider: number
}

const expectBounded = async (page: Page, what: string): Promise<void> => {
  const { characters, elements, ...rest } = (await page.evaluate(SEEN)) as Seen
  expect(rest, what).toEqual({ made: 0, turned: false, wider: 0 })
  expect(characters, what).toBeLessThan(1_000_000)
  expect(elements, what).toBeLessThan(20_000)
  // It takes a key, and goes where that says; what is typed into a field is no key.
  await page.evaluate('document.activeElement?.blur()')
  await page.keyboard.press('g')
  await page.keyboard.press('h')
  await page
    .getByRole('heading', { name: 'Health', level: 1 })
    .waitFor()
    .catch((error: unknown) => {
      throw new Error(`${what}: ${String(error)}`)
    })
}

const latest = async ({ ask }: Admin): Promise<number> =>
  ((await ask('GET', '/api/calls?limit=1')).json as { calls: { id: number }[] }).calls[0]?.id ?? 0

await describeWithBrowser('megabytes in the dashboard', (browser) => {
  test('are cut with a mark on every screen', async () => {
    await using cli = await commandLine()
    await cli.write('trunkline.yaml', configurationOf(cli.folder))
    const { url } = await cli.up()
    const admin = await openAdmin(cli)
    const calls: number[] = []
    for (const as of ['text', 'tree', 'blocks']) {
      await callTool(url, 'large__all', { as })
      calls.push(await latest(admin))
    }
    await cli.write('words.txt', 'Other words. ')
    await cli.here('restart', 'large')
    await expect
      .poll(async () => JSON.stringify((await admin.ask('GET', '/api/changes')).json), { timeout: 10_000 })
      .toContain('Other words')
    const { page, context } = await openWindow(browser)
    await context.addInitScript(`sessionStorage.setItem('trunkline-token', ${JSON.stringify(admin.token)})`)
    for (const [path, shown] of [
      ['/traffic', 'large__all'],
      ['/catalog', 'large__all'],
      ['/servers', 'healthy'],
      ['/servers/large', 'onerror'],
      ['/tools/large__all', 'All of it.'],
      ['/toolsets?q=all+of+it', 'All of it.'],
      ['/toolsets?edit=some', 'large__all'],
      ['/changes', 'large__all'],
      ...calls.map((id): [string, string] => [`/calls/${id}`, 'Answer, both hops']),
    ] as const) {
      await page.goto(`${admin.origin}${path}`)
      await page.getByText(shown).first().waitFor()
      if (/^\/(?:tools|changes|calls)/.test(path)) await page.getByText(MARK).first().waitFor({ state: 'attached' })
      await expectBounded(page, path)
    }
    for (const as of ['text', 'tree', 'blocks']) {
      await page.goto(`${admin.origin}/tools/large__all`)
      await page.getByLabel('as', { exact: false }).first().fill(as)
      await page.getByRole('button', { name: 'Call', exact: true }).click()
      await page.getByText('The tool answered.').waitFor()
      await page.locator('.result').getByText('more are not shown').first().waitFor({ state: 'attached' })
      await expectBounded(page, `the answer as ${as}`)
    }
    await context.close()
  }, 90_000)
})
