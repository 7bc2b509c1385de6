/** The address of the page: what is chosen stands in it. */
import { beforeEach, expect, test, vi } from 'vitest'

const show = (path: string): void => {
  const { pathname, search } = new URL(path, 'http://dashboard')
  vi.stubGlobal('location', { pathname, search })
}

beforeEach(() => {
  vi.resetModules()
  return () => vi.unstubAllGlobals()
})

test('the selected row is what the address names, and empty where it names none', async () => {
  show('/traffic?sel=17&q=x')
  expect((await import('../../../src/dashboard/page/route.ts')).selectedNow()).toBe('17')
  vi.resetModules()
  show('/traffic?q=x')
  expect((await import('../../../src/dashboard/page/route.ts')).selectedNow()).toBe('')
})
