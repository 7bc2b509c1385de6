/** Who is told of changed lists, and how often. */
import { expect, test } from 'vitest'
import { Watchers } from '../../../src/gateway/lists/watchers.ts'
import type { View } from '../../../src/catalog/view/view.ts'
import type { Caller } from '../../../src/rpc/call.ts'

const caller = { principal: 'p' } as Caller

test('B129 a change that is found while another is told of is announced once', () => {
  const catalog = { digest: 'old', next: undefined as string | undefined }
  /** As the views are: the first that asks for one puts a new catalog in force, and everybody is told. */
  const viewOf = (): View => {
    const { next } = catalog
    if (next !== undefined) {
      Object.assign(catalog, { digest: next, next: undefined })
      watchers.look()
    }
    return { listed: () => ({ digest: catalog.digest }) } as unknown as View
  }
  const watchers = new Watchers(viewOf)
  const told: string[] = []
  watchers.watch(caller, { changed: (list) => void told.push(list) })
  catalog.next = 'new'
  watchers.look()
  expect(told).toEqual(['tools', 'prompts', 'resources'])
  watchers.look()
  expect(told).toHaveLength(3)
})
