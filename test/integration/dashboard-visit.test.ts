/** What a person meets in the dashboard beside its screens: history, a browser that stores nothing, many calls, hidden values. */
import { expect, onTestFinished, test } from 'vitest'
import { callTool, openLink } from '../support/admin.ts'
import { connectHttp } from '../support/fakes/http-hosts.ts'
import type { TestGateway } from '../support/gateway.ts'
import { visitDashboard } from '../support/dashboard-visit.ts'
import { describeWithBrowser, openWindow } from '../support/real-browser.ts'

const makeCalls = async (url: string, count: number): Promise<void> => {
  await using host = await connectHttp({ url: new URL(url) } as TestGateway)
  for (let at = 0; at < count; at += 50)
    await Promise.all(Array.from({ length: 50 }, () => host.call('tools/call', { name: 'code__fail', arguments: {} })))
}

await describeWithBrowser('a visit of the dashboard', (browser) => {
  test('Back returns to what was shown before: a filter, an editor, a sorted list', async () => {
    const { page, url, open, latest } = await visitDashboard(browser, { more: 'toolsets: { review: { servers: ["*"] } }\n' })
    await callTool(url, 'code__fail', {})
    await open('/traffic')
    await page.locator('.vl-row').first().waitFor()
    await page.getByRole('button', { name: 'Errors' }).click()
    await page.getByRole('button', { name: 'Slow' }).click()
    await page.goBack()
    await expect.poll(() => new URL(page.url()).search).toBe('?q=err')
    await page.locator('.vl-row', { hasText: 'code__fail' }).click()
    await page.waitForURL(`**/calls/${await latest()}?q=err`)
    await page.goBack()
    await page.getByRole('heading', { name: 'Traffic', level: 1 }).waitFor()
    expect(new URL(page.url()).search).toBe(`?q=err&sel=${await latest()}`)
    await page.goBack()
    await expect.poll(() => new URL(page.url()).search).toBe('')

    await open('/toolsets')
    await page.getByRole('button', { name: 'Members …' }).click()
    await page.getByText('Members of review').waitFor()
    await page.goBack()
    await page.getByText('Members of review').waitFor({ state: 'detached' })
    expect(new URL(page.url()).pathname).toBe('/toolsets')

    await open('/catalog')
    await page.getByRole('button', { name: 'Tokens' }).click()
    await page.getByPlaceholder('Search names').fill('pulls')
    await page.getByText('1 of 6').waitFor()
    await page.goBack()
    await page.getByText('6 of 6').waitFor()
    expect(new URL(page.url()).search).toBe('?sort=tokens')
    await page.goBack()
    await expect.poll(() => new URL(page.url()).search).toBe('')
  }, 60_000)

  test('a key that is held moves the selection to the end', async () => {
    const { page, url, open } = await visitDashboard(browser)
    await makeCalls(url, 400)
    await open('/traffic')
    await page.getByText('400 of 400').waitFor()
    for (let at = 0; at < 400; at++) await page.keyboard.down('j')
    await page.locator('.vl-row[aria-selected=true][aria-rowindex="401"]').waitFor()
  }, 60_000)

  test('all kept calls are reached by scrolling, with a filter as well', async () => {
    const { page, url, open } = await visitDashboard(browser)
    await makeCalls(url, 2_500)
    for (const path of ['/traffic', '/traffic?q=name:code__fail']) {
      await open(path)
      await page.locator('.vl-row').first().waitFor()
      await page.getByRole('grid', { name: 'Calls' }).focus()
      await expect
        .poll(
          async () => {
            await page.keyboard.press('End')
            return page.locator('.vl-row').last().getAttribute('aria-rowindex')
          },
          { timeout: 15_000 },
        )
        .toBe('2501')
    }
  }, 90_000)

  test('T-14 a value that was hidden as a secret is not sent again as ***', async () => {
    const { page, url, open, latest } = await visitDashboard(browser)
    await callTool(url, 'code__search_code', { query: 'words', org: 'acme', options: { password: 'hunter2' } })
    const id = await latest()
    await open(`/calls/${id}`)
    await page.getByRole('button', { name: 'Replay', exact: true }).click()
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('edit it, and enter them').waitFor()
    expect(await latest()).toBe(id)
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Edit and replay' }).click()
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('it still has ***').waitFor()
    expect(await latest()).toBe(id)
    await page.getByLabel('options').fill('{"password":"hunter3"}')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('may do more than read').waitFor()
    expect(await page.getByText('it still has ***').count()).toBe(0)
    const confirm = page.getByRole('button', { name: 'Call it again anyway' })
    // It is seen without scrolling.
    const { y = 0, height = 0 } = (await confirm.boundingBox()) ?? {}
    expect(y + height).toBeLessThanOrEqual(800)
    await confirm.click()
    await page.getByText('Replay of').waitFor()
  }, 60_000)

  test('a list of tools is requested again when it has changed, not at an interval', async () => {
    const { cli, page, open } = await visitDashboard(browser)
    for (const [path, shown] of [
      ['/catalog', '6 of 6'],
      ['/tools/code__list_pulls', 'Lists open pull requests'],
      ['/servers/code', '6 tools'],
    ] as const) {
      let requests = 0
      page.on('request', (request) => (requests += /\/api\/tools(?:\?|$)/.test(request.url()) ? 1 : 0))
      await page.clock.install()
      await open(path)
      await page.getByText(shown).first().waitFor()
      for (let turn = 0; turn < 4; turn++) {
        const status = page.waitForResponse('**/api/status')
        await page.clock.fastForward(15_000)
        await status
      }
      expect(requests).toBe(1)
      page.removeAllListeners('request')
    }
    await open('/tools/code__list_pulls')
    await page.getByText('Lists open pull requests').first().waitFor()
    await cli.write('words.txt', 'Other words of the server.')
    await cli.here('restart', 'code')
    await expect
      .poll(async () => (await page.clock.fastForward(15_000), page.locator('.lead').innerText()), { timeout: 10_000 })
      .toBe('Other words of the server.')
  }, 60_000)

  test('a browser that stores nothing shows the page', async () => {
    const { cli } = await visitDashboard(browser)
    const { page, context } = await openWindow(browser)
    onTestFinished(() => context.close())
    await context.addInitScript(`for (const name of ['localStorage', 'sessionStorage'])
      Object.defineProperty(globalThis, name, { get() { throw new DOMException('denied', 'SecurityError') } })`)
    await page.goto((await openLink(cli)).url)
    await page.getByText('No calls yet').waitFor()
    await page.getByRole('button', { name: 'As the system' }).click()
    await page.getByRole('button', { name: 'Light' }).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('trunkline open').waitFor()
  }, 60_000)

  test('a lazy server that nothing uses works, and figures are those of the time for which there are some', async () => {
    const { page, cli, open } = await visitDashboard(browser, { more: '    lifecycle: { start: lazy, idle_stop: 1s }\n' })
    await expect
      .poll(async () => (await cli.here('ps', '--json')).stdout, { timeout: 20_000, interval: 500 })
      .toContain('its next use starts it')
    await open('/health')
    await page.getByText('All 1 server work').waitFor()
    expect(await page.getByText('last hour').count()).toBe(0)
    await open('/servers/code')
    await page.getByText('resting', { exact: true }).first().waitFor()
  }, 60_000)
})
