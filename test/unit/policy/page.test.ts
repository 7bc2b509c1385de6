/** The rules, tests and error texts of docs/policy.md are what the page says of them. (That its files load is tested with all pages.) */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { yaml } from '../config/workspace.ts'

const PAGE = readFileSync(new URL('../../../docs/policy.md', import.meta.url), 'utf8')
const blocksOf = (language: string): readonly string[] =>
  [...PAGE.matchAll(new RegExp(`\`\`\`${language}\\n([^]*?)\\n\`\`\``, 'g'))].map(([, text = '']) => text)
const blockWith = (language: string, part: string): string => blocksOf(language).find((text) => text.includes(part)) ?? ''

test('the rules of the first block decide as its names and reasons say', async () => {
  const finance = '{ claims: { groups: [finance] } }'
  const operator = '{ claims: { groups: [finance, operators] } }'
  const noon = 'request: { time: 2026-06-01T12:00:00Z }'
  await using files = await yaml(`${blockWith('yaml', 'payments above 100')}
policy_tests:
  - { name: large, caller: ${finance}, call: { server: bank, original: pay, arguments: { amount: 101 } }, ${noon}, expect: confirm }
  - { name: by night, caller: ${operator}, call: { server: bank, original: drop }, request: { time: 2026-06-01T22:00:00Z }, expect: deny }
  - { name: strangers, caller: { claims: { groups: [dev] } }, call: { server: bank, original: list }, ${noon}, expect: deny }
  - { name: operators, caller: ${operator}, call: { server: bank, original: drop }, ${noon}, expect: allow }
  - { name: others, caller: ${finance}, call: { server: bank, original: drop }, ${noon}, expect: deny }
`)
  await expect(files.load()).resolves.toBeDefined()
})

test('a mistake in an expression is told in the words of the page', async () => {
  const [shown = ''] = blockWith('text', 'No such key').split('…')
  const rule = '    - name: x\n      decision: allow\n      when: call.nam == "x"\n'
  await using files = await yaml(`version: 1\npolicy:\n  rules:\n${rule}servers: {}\n`)
  expect(await files.errors()).toEqual([expect.stringContaining(shown)])
})

test('tests that fail are told in the words of the page', async () => {
  await using files = await yaml(blockWith('yaml', 'policy_tests').replace('> 100', '> 1000'))
  expect(await files.errors()).toEqual([blockWith('text', 'policy_tests')])
})
