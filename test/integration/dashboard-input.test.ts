/** What a person enters in the dashboard and what stays of it, and what is said of a call or a sign-in, in a real browser. */
import { expect, onTestFinished, test } from 'vitest'
import { callTool, openAdmin } from '../support/admin.ts'
import { commandLine } from '../support/cli.ts'
import { connectHttp } from '../support/fakes/http-hosts.ts'
import type { TestGateway } from '../support/gateway.ts'
import { visitDashboard } from '../support/dashboard-visit.ts'
import { axeViolations, describeWithBrowser, openWindow } from '../support/real-browser.ts'

await describeWithBrowser('what is entered in the dashboard', (browser) => {
  test('a definition is shown with the digits that its server wrote', async () => {
    const schema = '{"type":"object","properties":{"id":{"type":"integer","minimum":1.0,"maximum":9007199254740993}}}'
    const program = `
      const { createInterface } = require('node:readline')
      createInterface({ input: process.stdin }).on('line', (line) => {
        const { id, method } = JSON.parse(line)
        const initialized = '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"long","version":"1"}}'
        const result = { initialize: initialized, 'tools/list': '{"tools":[{"name":"by_id","inputSchema":${schema}}]}' }[method]
        const error = '"error":{"code":-32601,"message":"unknown"}'
        if (id !== undefined) console.log('{"jsonrpc":"2.0","id":' + id + ',' + (result ? '"result":' + result : error) + '}')
      })`
    const entry = { command: process.execPath, args: ['-e', program] }
    const { cli, page, open } = await visitDashboard(browser, { more: `  long: ${JSON.stringify(entry)}\n` })
    await expect.poll(async () => (await cli.here('tools', 'by_id')).stdout, { timeout: 10_000 }).toContain('long__by_id')
    await open('/tools/long__by_id')
    const shown = page.getByRole('region', { name: 'Definition as listed to hosts' })
    await shown.getByText('"maximum": 9007199254740993').waitFor()
    expect(await shown.innerText()).toContain('"minimum": 1.0,')
    const [row] = JSON.parse((await cli.here('tools', 'by_id', '--json')).stdout) as { text: string }[]
    expect(row?.text).toContain(schema)
  })

  test('a long text is typed to its end, and its letters are no keys of the page', async () => {
    const { page, open } = await visitDashboard(browser)
    await open('/tools/code__create_issue')
    const field = page.getByRole('region', { name: 'Try it' }).getByLabel('title')
    await field.click()
    const text = `${'a long title '.repeat(7)}gc`
    await page.keyboard.type(text)
    expect(await field.inputValue()).toBe(text)
    expect(new URL(page.url()).pathname).toBe('/tools/code__create_issue')
  })

  test('a selection of text that ends beside a dialog leaves it open', async () => {
    const { page, url, open, latest } = await visitDashboard(browser)
    await callTool(url, 'code__search_code', { query: 'words', org: 'acme' })
    await open(`/calls/${await latest()}`)
    await page.getByRole('button', { name: 'Edit and replay' }).click()
    const dialog = page.getByRole('dialog', { name: 'Edit and replay' })
    const field = dialog.getByLabel('query')
    await field.fill('other words')
    const { x = 0, y = 0, height = 0 } = (await field.boundingBox()) ?? {}
    await page.mouse.move(x + 60, y + height / 2)
    await page.mouse.down()
    await page.mouse.move(5, y + height / 2, { steps: 5 })
    await page.mouse.up()
    expect(await field.inputValue()).toBe('other words')
    await page.mouse.click(5, y)
    await dialog.waitFor({ state: 'detached' })
  })

  test('a description that only the server has changed is not written into the configuration', async () => {
    const { cli, page, open } = await visitDashboard(browser)
    await open('/tools/code__list_pulls')
    await page.getByLabel('New name after the prefix').fill('pulls')
    await cli.write('words.txt', 'Other words of the server.')
    await cli.here('restart', 'code')
    await page.locator('.lead', { hasText: 'Other words of the server.' }).waitFor({ timeout: 20_000 })
    expect(await page.getByLabel('Description for hosts').inputValue()).toBe('Other words of the server.')
    await page.getByRole('button', { name: 'Show the plan …' }).click()
    await page.getByText('name: pulls').waitFor()
    expect(await page.locator('.diff').innerText()).not.toContain('description')
  })

  test('of messages that were not kept completely nothing is claimed', async () => {
    const { page, url, open, latest } = await visitDashboard(browser, { body: '1KiB' })
    await callTool(url, 'code__list_pulls', { repository: 'r'.repeat(4_000) })
    await open(`/calls/${await latest()}`)
    await page.getByRole('region', { name: 'Request, both hops' }).getByText('omitted (ui.capture.body)').first().waitFor()
    await page.getByRole('region', { name: 'Answer, both hops' }).getByText('the host’s own id').waitFor()
    expect(await page.getByText('Both sides are the same').count()).toBe(0)
  })

  test('a sign-in whose end is not learned can be begun again', async () => {
    const { page, open } = await visitDashboard(browser)
    await page.route('**/api/status', async (route) => {
      const response = await route.fetch()
      const status = (await response.json()) as { servers: object[] }
      const servers = status.servers.map((server) => ({ ...server, needsSignIn: true }))
      await route.fulfill({ response, json: { ...status, servers } })
    })
    const ended = Promise.withResolvers<undefined>()
    await page.route('**/api/login?*', async (route) => {
      if (route.request().method() === 'POST') return route.fulfill({ json: { login: { url: 'https://issuer.example/' } } })
      await ended.promise
      await route.abort('connectionreset')
    })
    await open('/servers/code')
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByText('Waiting for the end of it').waitFor()
    ended.resolve(undefined)
    await page.getByText('Trunkline does not answer').waitFor()
    await page.getByRole('button', { name: 'Sign in', exact: true }).waitFor()
    await page.unrouteAll({ behavior: 'ignoreErrors' })
  })

  test('a call whose name is no well-formed text is shown like any other', async () => {
    const { page, url, open, latest } = await visitDashboard(browser)
    await using host = await connectHttp({ url: new URL(url) } as TestGateway)
    await expect(host.call('tools/call', { name: 'x\ud800y' })).rejects.toThrow('Unknown tool')
    await open(`/calls/${await latest()}`)
    await page.getByRole('list', { name: 'What happened' }).waitFor()
    await page.getByRole('button', { name: 'Edit and replay' }).click()
    await page.getByRole('dialog', { name: 'Edit and replay' }).getByRole('button', { name: 'Send' }).waitFor()
  })

  test('without servers the page shows a command that adds one to this configuration, and is scrolled by keyboard', async () => {
    const cli = await commandLine()
    await cli.write('trunkline.yaml', 'admin: { bind: "127.0.0.1:0" }\nservers: {}\n')
    await cli.up('-c', cli.path('trunkline.yaml'))
    const { origin, token } = await openAdmin(cli)
    const { page, context } = await openWindow(browser, { width: 320, height: 640 })
    onTestFinished(() => context.close())
    await page.goto(origin)
    const field = page.getByLabel(/Or sign in with/)
    await field.fill('токен')
    await field.press('Enter')
    expect(await page.getByRole('alert').innerText()).toContain('This is no token')
    await field.fill(token)
    await field.press('Enter')
    await page.getByText('No calls yet').waitFor()
    await page.goto(`${origin}/servers`)
    await page.getByText(/^trunkline add files/).waitFor()
    const shown = await page.getByText(/^trunkline add files/).innerText()
    expect(shown).toMatch(/^trunkline add files -c \S+ -- npx -y @modelcontextprotocol\/server-filesystem \.$/)
    await page.goto(`${origin}/changes`)
    await page.getByText('No change: the files are in use').waitFor()
    expect(await axeViolations(page)).toEqual([])
  })
})
