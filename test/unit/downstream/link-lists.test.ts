/** Lists of single links: whose lists the callers of one principal see, if it has several links (BRIDGING 3.20). */
import { expect, test, vi } from 'vitest'
import type { Inventory } from '../../../src/catalog/inventory.ts'
import { LinkLists } from '../../../src/downstream/lists/link-lists.ts'
import type { LinkOwner } from '../../../src/downstream/link-owner.ts'
import type { Link } from '../../../src/era/server/link.ts'

const setUp = () => {
  const listed: (string | undefined)[] = []
  /** What each link lists; `undefined`: what is common. */
  const lists = new Map<Link, string | undefined>()
  const links = new Map<LinkOwner, Link>()
  const common = vi.fn((): Inventory | undefined => undefined)
  const own = new LinkLists({
    isInUse: (owner) => links.has(owner),
    linkOf: (owner) => links.get(owner),
    commonRead: () => undefined,
    common,
    read: async (link) => {
      const digest = lists.get(link)
      return { differing: digest === undefined ? undefined : ({ digest } as Inventory), readBytes: 0 }
    },
    listed: (_, inventory) => listed.push(inventory?.digest),
    freshMs: () => 0,
  })
  const open = (digest?: string) => {
    const owner = { isolation: 'principal', principal: 'P', sessions: new Set() } as unknown as LinkOwner
    const link = { transport: 'pipe' } as Link
    links.set(owner, link)
    lists.set(link, digest)
    return {
      read: async () => own.freshen(owner, link),
      change: (to: string | undefined) => lists.set(link, to),
      announce: () => own.announced(owner, 'tools'),
      close: () => {
        links.delete(owner)
        own.forget(owner)
      },
    }
  }
  return { own, listed, open, common }
}

test('of two links of one principal the one that changed last counts; reading the other one again changes nothing', async () => {
  const { listed, open } = setUp()
  const [first, second] = [open('A'), open('B')]
  for (let times = 0; times < 3; times++) for (const link of [first, second]) await link.read()
  expect(new Set(listed.slice(1))).toEqual(new Set(['B']))
  first.change('A2')
  for (let times = 0; times < 3; times++) for (const link of [first, second]) await link.read()
  expect(listed.at(-1)).toBe('A2')
})

test('when a link of a principal is closed, or lists what is common, the lists of its other link are shown, else the common ones', async () => {
  const { listed, open } = setUp()
  const [first, second, third] = [open('A'), open('B'), open('C')]
  for (const link of [first, second, third]) await link.read()
  first.close()
  expect(listed).toEqual(['A', 'B', 'C'])
  third.change(undefined)
  await third.read()
  expect(listed.at(-1)).toBe('B')
  second.close()
  expect(listed.at(-1)).toBeUndefined()
  third.close()
  expect(listed).toHaveLength(5)
})

test('a change that is announced on a link while it closes is not kept: nothing would remove it', async () => {
  const { open, common } = setUp()
  const link = open('A')
  link.announce()
  expect(common).toHaveBeenCalled()
  link.close()
  common.mockClear()
  link.announce()
  expect(common).not.toHaveBeenCalled()
})
