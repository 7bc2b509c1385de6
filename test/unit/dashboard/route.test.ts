/** The address of the page: what is chosen stands in it. The module is for browsers, whose types are not known here. */
import { afterEach, expect, test, vi } from 'vitest'

const ROUTE = new URL('../../../src/dashboard/page/route.ts', import.meta.url).href

const show = (path: string): void => {
  const { pathname, search } = new URL(path, 'http://dashboard')
  vi.stubGlobal('location', { pathname, search })
}

/** The module as a page of this name loads it: each name is a module of its own. */
const load = async (page: string): Promise<{ selectedNow(): string }> =>
  (await import(`${ROUTE}?${page}`)) as { selectedNow(): string }

afterEach(() => void vi.unstubAllGlobals())

test('the selected row is what the address names, and empty where it names none', async () => {
  show('/traffic?sel=17&q=x')
  expect((await load('first')).selectedNow()).toBe('17')
  show('/traffic?q=x')
  expect((await load('second')).selectedNow()).toBe('')
})
