/** What is served of a server whose definitions differ from the approved ones (T-17). */
import { describe, expect, test } from 'vitest'
import type { Inventory } from '../../../src/catalog/inventory.ts'
import { heldEntry, vetPinned } from '../../../src/catalog/lock/pinned.ts'
import type { PinReference } from '../../../src/catalog/lock/pinned.ts'
import { indexLocked, lockedOf, lockId } from '../../../src/catalog/lock/lock.ts'
import type { LockKind, OnChange } from '../../../src/catalog/lock/lock.ts'
import { inventoryOf, promptOf, toolOf } from './fixtures.ts'

const APPROVED = inventoryOf({ tools: [toolOf('same'), toolOf('changed', { title: 'old' })] }, '2026-07-28', 'Old text.')
const OFFERED = inventoryOf(
  { tools: [toolOf('same'), toolOf('changed', { title: 'new' }), toolOf('added')], prompts: [promptOf('p')] },
  '2026-07-28',
  'New text.',
)
const SAME: Inventory = inventoryOf({ tools: [toolOf('same')] })

/** A lock file that covers tools and instructions, or the same definitions as first seen. */
const pins = ({ isFile = true, hasTexts = true } = {}): PinReference => {
  const known = indexLocked(lockedOf(APPROVED))
  return {
    isClosed: isFile,
    file: isFile ? 'a.lock' : undefined,
    covers: (kind) => kind === 'tools' || kind === 'instructions',
    pin: (kind: LockKind, name) => {
      const found = known.get(lockId(kind, name))
      return found && (hasTexts ? found : { digest: found.digest })
    },
  }
}

/** What hosts see, and what operators are told. */
const told = ({ lists, instructions, findings, leftOut }: Inventory) => ({
  tools: lists.tools.map(
    ({ original, raw }) => `${original} ${String((JSON.parse(raw.toString()) as { title?: string }).title)}`,
  ),
  prompts: lists.prompts.length,
  instructions,
  findings: findings.map(({ kind, name, note }) => [kind, name, note]),
  leftOut: leftOut.map(({ kind, name, reason, isRefused }) => [kind, name, reason, isRefused]),
})

describe('definitions that are not the approved ones', () => {
  const ALL = ['same undefined', 'changed new', 'added undefined']
  test.each<[OnChange, PinReference, ReturnType<typeof told>]>([
    ['allow', pins(), { tools: ALL, prompts: 1, instructions: 'New text.', findings: [], leftOut: [] }],
    [
      'warn',
      pins(),
      {
        tools: ALL,
        prompts: 1,
        instructions: 'New text.',
        findings: [
          ['instructions', '', 'the text is not the one in a.lock; the new one is served'],
          ['tools', 'changed', 'its definition is not the one in a.lock; the new one is served'],
          ['tools', 'added', 'is not in a.lock; the new one is served'],
        ],
        leftOut: [],
      },
    ],
    [
      'hold',
      pins(),
      {
        tools: ['same undefined', 'changed old'],
        prompts: 1,
        instructions: 'Old text.',
        findings: [
          ['instructions', '', 'the text is not the one in a.lock; the old one is served until the new one is approved'],
          ['tools', 'changed', 'its definition is not the one in a.lock; the old one is served until the new one is approved'],
        ],
        leftOut: [['tools', 'added', 'is not in a.lock (lock.on_change: hold); approve it to serve it', true]],
      },
    ],
    [
      'hold',
      pins({ isFile: false, hasTexts: false }),
      {
        tools: ['same undefined', 'added undefined'],
        prompts: 1,
        instructions: undefined,
        findings: [['instructions', '', 'not served: the text changed (lock.on_change: hold); approve it to serve it']],
        leftOut: [['tools', 'changed', 'its definition changed (lock.on_change: hold); approve it to serve it', true]],
      },
    ],
    [
      'quarantine',
      pins(),
      {
        tools: ['same undefined'],
        prompts: 1,
        instructions: undefined,
        findings: [
          [
            'instructions',
            '',
            'not served: the text is not the one in a.lock (lock.on_change: quarantine); approve it to serve it',
          ],
        ],
        leftOut: [
          [
            'tools',
            'changed',
            'its definition is not the one in a.lock (lock.on_change: quarantine); approve it to serve it',
            true,
          ],
          ['tools', 'added', 'is not in a.lock (lock.on_change: quarantine); approve it to serve it', true],
        ],
      },
    ],
  ])('T-17 with lock.on_change: %s', (onChange, reference, expected) => {
    const { inventory, deviations, measured } = vetPinned(OFFERED, reference, onChange)
    expect(told(inventory)).toEqual(expected)
    expect(inventory === OFFERED).toBe(onChange === 'allow')
    expect(inventory.digest !== OFFERED.digest).toBe(onChange !== 'allow')
    expect(measured).toEqual(lockedOf(OFFERED))
    expect(deviations.map(({ name, from }) => [name, from !== undefined])).toEqual(
      reference.isClosed
        ? [
            ['', true],
            ['changed', true],
            ['added', false],
          ]
        : [
            ['', true],
            ['changed', true],
          ],
    )
  })

  test('T-17 are none where every definition is approved: the inventory stays the same object', () => {
    expect(vetPinned(SAME, pins(), 'quarantine')).toMatchObject({ inventory: SAME, deviations: [] })
    expect(vetPinned(SAME, pins(), 'quarantine').inventory).toBe(SAME)
  })

  test('T-17 what was told of the server before stays told, and instructions that are approved stay', () => {
    const before = {
      ...OFFERED,
      instructions: 'Old text.',
      leftOut: [{ kind: 'tools' as const, name: 'x', reason: 'too large' }],
      findings: [{ kind: 'tools' as const, name: 'y', note: 'odd' }],
    }
    const { inventory } = vetPinned(before, pins(), 'hold')
    expect([inventory.instructions, ...inventory.leftOut.map(({ name }) => name)]).toEqual(['Old text.', 'x', 'added'])
    expect(inventory.findings.map(({ name }) => name)).toEqual(['y', 'changed'])
  })
})

test('a held tool asks for the headers of its approved definition, and nothing else does', () => {
  const schema = { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } }
  const held = (kind: 'tools' | 'prompts', definition: object) => heldEntry(kind, 'x', JSON.stringify(definition)).paramHeaders
  expect(held('tools', { name: 'x', inputSchema: schema })).toHaveLength(1)
  expect(held('prompts', { name: 'x', inputSchema: schema })).toEqual([])
  expect(held('tools', { name: 'x' })).toEqual([])
})
