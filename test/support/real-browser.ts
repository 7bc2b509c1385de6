/**
 * A real browser: the Chromium that npm brings on linux-x64, elsewhere an installed Chrome. It reaches this machine alone. `axe-core`
 * is run in its pages, whose own policies hold.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { chromium } from 'playwright-core'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { describeUnless } from './programs.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Rejects with the reason where none starts. */
export const launchBrowser = async (): Promise<Browser> => {
  if (process.platform !== 'linux' || process.arch !== 'x64') return chromium.launch({ channel: 'chrome' })
  const { default: bundled } = await import('@sparticuz/chromium')
  // Its own arguments are for one page in one process.
  const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage']
  // The browser of a person ignores changes of the history that come too often.
  const ignoreDefaultArgs = ['--disable-ipc-flooding-protection']
  return chromium.launch({ executablePath: await bundled.executablePath(), args, ignoreDefaultArgs, headless: true })
}

/** `describe` for a suite that drives a browser; where none starts it is named and left out. */
export const describeWithBrowser = async (name: string, suite: (browser: Browser) => void): Promise<void> => {
  const started = await launchBrowser().catch((error: unknown) => String(error).split('\n', 1)[0] ?? 'unknown')
  const reason = typeof started === 'string' ? `no browser starts: ${started}` : undefined
  describeUnless(reason, name, () => suite(started as Browser))
}

export interface Look {
  readonly width?: number
  readonly height?: number
  readonly colorScheme?: 'light' | 'dark'
  readonly javaScriptEnabled?: boolean
}

/** A window of its own, with cookies of its own. */
export const openWindow = async (browser: Browser, look: Look = {}): Promise<{ context: BrowserContext; page: Page }> => {
  const { width = 1280, height = 800, colorScheme = 'light', javaScriptEnabled = true } = look
  // Without a graphics card each frame of an animation costs as much as the rest of the page.
  const reducedMotion = 'reduce'
  const context = await browser.newContext({ viewport: { width, height }, colorScheme, javaScriptEnabled, reducedMotion })
  const page = await context.newPage()
  page.setDefaultTimeout(10_000)
  return { context, page }
}

/** What axe-core finds wrong with the page as it is: the rule, and where. `rules`: these alone. */
export const axeViolations = async (page: Page, rules?: readonly string[]): Promise<readonly string[]> => {
  // In a page that was looked at before it is there already.
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(AXE)
  return page.evaluate(async (only) => {
    const { axe } = globalThis as unknown as {
      axe: { run(options: object): Promise<{ violations: readonly { id: string; nodes: readonly { html: string }[] }[] }> }
    }
    const { violations } = await axe.run(only === undefined ? {} : { runOnly: only })
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
  }, rules)
}
