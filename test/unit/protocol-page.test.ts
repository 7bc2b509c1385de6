/** docs/protocol.md has every cell of the fidelity matrix, and says of each what the probes expect. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { renderProtocolPage } from '../../scripts/protocol-page.ts'
import type { ResultOf } from '../../scripts/protocol-page.ts'

const asExpected: ResultOf = (feature, host, server) => {
  const expected = feature.expected(host, server)
  if (expected === 'none') return undefined
  return typeof expected === 'string' ? expected : expected.verdict
}

test('the page is what the probes expect; `npm run protocol` writes it anew from what they observe', async () => {
  expect(await readFile(new URL('../../docs/protocol.md', import.meta.url), 'utf8')).toBe(renderProtocolPage(asExpected))
})

test('a cell that came out otherwise is shown, and a cell without a result is no page', () => {
  const one: ResultOf = (feature, host, server) =>
    feature.name === 'roots' && host.key === 'r20250326-sse' ? 'impossible' : asExpected(feature, host, server)
  expect(renderProtocolPage(one)).toContain(
    '| 2025-03-26 over HTTP+SSE | **impossible**, expected full | **impossible**, expected projected |',
  )
  expect(() => renderProtocolPage(() => undefined)).toThrow('no result for "lists and pagination"')
})
