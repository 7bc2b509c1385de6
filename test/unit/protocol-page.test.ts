/** docs/protocol.md has the cells of the interop matrix, all of them, and says of each that it works. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { renderProtocolPage } from '../../scripts/protocol-page.ts'

const page = () => readFile(new URL('../../docs/protocol.md', import.meta.url), 'utf8')

test('the page has the cells of the suite and none of them fails; `node scripts/protocol-matrix.ts` writes it anew', async () => {
  expect(await page()).toBe(renderProtocolPage(() => 'passed'))
})

test('a cell that failed is shown, and a cell without a result is no page', () => {
  expect(renderProtocolPage((host) => (host === 'sdk1 sse' ? 'failed' : 'passed'))).toContain('| sdk1 sse | **fails** |')
  expect(() => renderProtocolPage((_, key) => (key === 'sse' ? undefined : 'passed'))).toThrow('no result for "connects"')
})
