/** Who sees what in the dashboard, in a real browser: a caller its own calls, an operator those of all, messages among them. */
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { hashLine, makeToken } from '../../src/auth/inbound/static-tokens.ts'
import { callTool, openAdmin } from '../support/admin.ts'
import { commandLine } from '../support/cli.ts'
import { axeViolations, describeWithBrowser, openWindow } from '../support/real-browser.ts'

const signIn = async (page: Page, origin: string, token: string): Promise<void> => {
  await page.goto(`${origin}/`)
  await page.getByLabel(/Or sign in with/).fill(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Traffic', level: 1 }).waitFor()
}

await describeWithBrowser('messages of another caller', (browser) => {
  test('are opened by an operator, and by no other caller', async () => {
    const [a, b, op] = [makeToken(), makeToken(), makeToken()]
    await using cli = await commandLine()
    await cli.write(
      'trunkline.yaml',
      `admin: { bind: "127.0.0.1:0" }
ui: { write: true, capture: { bodies: all } }
auth:
  tokens:
    - { id: a, hash: "${hashLine(a)}" }
    - { id: b, hash: "${hashLine(b)}" }
    - { id: op, hash: "${hashLine(op)}", operator: true }
servers:
  one: ${cli.fake()}
`,
    )
    const { url } = await cli.up()
    const { origin, ask } = await openAdmin(cli)
    await callTool(url, 'one__echo', { text: 'said by a' }, a)
    const { calls } = (await ask('GET', '/api/calls')).json as { calls: { id: number; principal: string }[] }
    const id = calls.find(({ principal }) => principal === 'token:a')?.id ?? 0
    await callTool(url, 'one__echo', { text: 'said by b' }, b)

    const user = await openWindow(browser)
    await signIn(user.page, origin, b)
    const rows = user.page.locator('.vl-row')
    await rows.first().waitFor()
    expect(await rows.count()).toBe(1)
    await user.page.getByText('1 of 1').waitFor()
    await rows.first().click()
    await user.page.getByText('said by b').first().waitFor()
    await user.page.goto(`${origin}/calls/${id}`)
    await user.page.getByText('This call is no longer stored').waitFor()
    expect(await user.page.getByRole('navigation', { name: 'Screens' }).getByRole('link').allInnerTexts()).toEqual(['Traffic'])
    for (const path of ['/catalog', '/servers', '/toolsets', '/changes', '/health', '/tools/one__echo']) {
      await user.page.goto(`${origin}${path}`)
      await user.page.getByText('This screen is for operators').waitFor()
    }
    expect(await axeViolations(user.page)).toEqual([])
    await user.context.close()

    const operator = await openWindow(browser)
    await signIn(operator.page, origin, op)
    await operator.page.goto(`${origin}/calls/${id}`)
    await operator.page.getByText('said by a').first().waitFor()
    await operator.page.getByText('token:a').waitFor()
    expect(await operator.page.getByRole('button', { name: 'Replay', exact: true }).isEnabled()).toBe(true)
    // Who signs in to the same window afterwards sees what is theirs, and nothing of before.
    await operator.page.goto(`${origin}/traffic`)
    await operator.page.locator('.vl-row').nth(1).waitFor()
    await operator.page.getByRole('button', { name: 'Sign out' }).click()
    await operator.page.getByLabel(/Or sign in with/).fill(b)
    await operator.page.getByRole('button', { name: 'Sign in' }).click()
    await operator.page.getByText('Live').waitFor()
    await operator.page.getByText('1 of 1').waitFor()
    expect(await operator.page.locator('.vl-row').count()).toBe(1)
    await operator.context.close()
  }, 60_000)
})
