/** docs/direct-and-through.md is what the scenarios say; that they say what happens, `test/e2e/bridge-sdk-*.test.ts` prove. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { renderBridgePage } from '../../scripts/bridge-page.ts'

test('B277 the page "direct against through" is the one that npm run protocol writes where nothing else differs', async () => {
  const page = await readFile(new URL('../../docs/direct-and-through.md', import.meta.url), 'utf8')
  expect(page).toBe(renderBridgePage(() => 'equal'))
})
