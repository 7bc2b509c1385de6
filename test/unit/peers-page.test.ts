/** The page of peers: the reasons that it gives are those by which differences are judged. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EXPLANATIONS } from '../peers/explained.ts'

const PAGE = join(import.meta.dirname, '../../docs/peers.md')

test('each reason on the page is an explanation that is in use', async () => {
  const [, part = ''] = (await readFile(PAGE, 'utf8')).split('## What differs for a reason')
  const rows = part
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(2)
  const reasons = rows.map((row) => row.split(' | ')[0]?.replace(/^\| /, ''))
  expect(reasons.length).toBeGreaterThan(30)
  const known = new Set(EXPLANATIONS.map(({ reason }) => reason))
  expect(reasons.filter((reason) => reason === undefined || !known.has(reason))).toEqual([])
})
