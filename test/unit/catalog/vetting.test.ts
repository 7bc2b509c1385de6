/** What becomes of a server whose texts hold what a person does not see (T-16). */
import { expect, test } from 'vitest'
import { vetHidden } from '../../../src/catalog/curate/vetting.ts'
import type { HiddenPolicy } from '../../../src/catalog/curate/vetting.ts'
import type { Inventory } from '../../../src/catalog/inventory.ts'
import { inventoryOf, promptOf, toolOf } from './fixtures.ts'

const BEFORE = {
  leftOut: [{ kind: 'tools', name: 'x', reason: 'too large' }],
  findings: [{ kind: 'tools', name: 'y', note: 'odd' }],
} as const
const OFFERED: Inventory = {
  ...inventoryOf(
    { tools: [toolOf('clean'), toolOf('text', { title: 'a\u202eb' }), toolOf('na\u200bme')], prompts: [promptOf('p\u200b')] },
    '2026-07-28',
    'Use\u202e it.',
  ),
  ...BEFORE,
}

const HOLDS = {
  text: 'title hides 1 bidi character (U+202E)',
  name: 'name hides 1 invisible character (U+200B)',
  instructions: 'its text hides 1 bidi character (U+202E)',
}

test.each<[HiddenPolicy, tools: string[], instructions: string | undefined, leftOut: string[], findings: string[]]>([
  [
    'warn',
    ['clean', 'a\u202eb', 'na\u200bme', 'p\u200b'],
    'Use\u202e it.',
    [],
    [`text: ${HOLDS.text}`, `na\u200bme: ${HOLDS.name}`, `p\u200b: ${HOLDS.name}`, `: ${HOLDS.instructions}`],
  ],
  [
    'strip',
    ['clean', 'ab'],
    'Use it.',
    [`na\u200bme: ${HOLDS.name} (hidden_characters: strip)`, `p\u200b: ${HOLDS.name} (hidden_characters: strip)`],
    [`text: ${HOLDS.text}; served without`, `: ${HOLDS.instructions}; served without`],
  ],
  [
    'drop',
    ['clean'],
    undefined,
    [
      `text: ${HOLDS.text} (hidden_characters: drop)`,
      `na\u200bme: ${HOLDS.name} (hidden_characters: drop)`,
      `p\u200b: ${HOLDS.name} (hidden_characters: drop)`,
    ],
    [`: ${HOLDS.instructions}; served without`],
  ],
])('T-16 with hidden_characters: %s', (policy, shown, instructions, leftOut, findings) => {
  const vetted = vetHidden(OFFERED, policy)
  const { tools, prompts } = vetted.lists
  const texts = [...tools, ...prompts].map(({ raw }) => JSON.parse(raw.toString()) as { name: string; title?: string })
  expect(texts.map(({ name, title }) => title ?? name)).toEqual(shown)
  expect(vetted.instructions).toBe(instructions)
  expect(vetted.leftOut.map(({ name, reason }) => `${name}: ${reason}`)).toEqual(['x: too large', ...leftOut])
  expect(vetted.findings.map(({ name, note }) => `${name}: ${note}`)).toEqual(['y: odd', ...findings])
  expect(vetted.lists.tools[0]).toBe(OFFERED.lists.tools[0])
  expect(vetted.digest).not.toBe(OFFERED.digest)
})

test('T-16 what hides nothing stays the same object, and one thing that does is enough to tell of it', () => {
  const honest = inventoryOf({ tools: [toolOf('clean', { title: 'Größe\n\\' })] }, '2026-07-28', 'Use it.')
  expect(vetHidden(honest, 'drop')).toBe(honest)
  expect(vetHidden({ ...honest, instructions: undefined }, 'drop').instructions).toBeUndefined()
  const one = inventoryOf({ tools: [toolOf('a\u200b')] })
  expect([vetHidden(one, 'drop').leftOut.length, vetHidden(one, 'warn').findings.length]).toEqual([1, 1])
})
