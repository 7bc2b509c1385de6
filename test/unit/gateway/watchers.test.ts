/** Who is told of changed lists, and how often. */
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { Watchers } from '../../../src/gateway/lists/watchers.ts'
import type { View } from '../../../src/catalog/view/view.ts'
import type { Caller, ChangeListener, HostSession } from '../../../src/rpc/call.ts'

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
  const watchers = new Watchers(viewOf, { asksForLists: false, shown: () => undefined })
  const told: string[] = []
  watchers.watch(caller, { changed: (list) => void told.push(list) })
  catalog.next = 'new'
  watchers.look()
  expect(told).toEqual(['tools', 'prompts', 'resources'])
  watchers.look()
  expect(told).toHaveLength(3)
})

describe('watchers', () => {
  beforeEach(() => void vi.useFakeTimers())

  /** Watchers of one view, whose lists have the digests that the test sets. */
  const scene = () => {
    const digests = { tools: '1', prompts: '1', resources: '1', templates: '1' }
    const viewOf = () => ({ listed: (kind: keyof typeof digests) => ({ digest: digests[kind] }) }) as unknown as View
    const watchers = new Watchers(viewOf, { asksForLists: false, shown: () => undefined })
    const watch = (facts: Partial<Caller>) => {
      const told: string[] = []
      const listener: ChangeListener = { changed: (list) => told.push(list), ended: () => told.push('ended') }
      watchers.watch({ ...caller, ...facts }, listener)
      const become = (other: Partial<Caller>): void => watchers.watch({ ...caller, ...other }, listener)
      return { told, become, stop: () => watchers.unwatch(listener) }
    }
    return { digests, watchers, watch }
  }

  test.each([
    [{ tools: '2' }, ['tools']],
    [{ prompts: '2' }, ['prompts']],
    [{ resources: '2' }, ['resources']],
    [{ templates: '2' }, ['resources']],
    [{ resources: '2', templates: '2' }, ['resources']],
    [{}, []],
  ])('are told of the lists that differ: %j', (change, expected) => {
    const { digests, watchers, watch } = scene()
    const { told } = watch({})
    Object.assign(digests, change)
    for (let times = 0; times < 2; times++) watchers.look()
    expect(told).toEqual(expected)
  })

  test('are asked by session or principal, until they stop', () => {
    const { digests, watchers, watch } = scene()
    const sessions = [{}, {}] as [HostSession, HostSession]
    const [one, two, three] = [watch({ session: sessions[0] }), watch({ session: sessions[1] }), watch({ principal: 'q' })]
    const toldOf = (tools: string, of: Parameters<Watchers['look']>[0]): number[] => {
      Object.assign(digests, { tools })
      watchers.look(of)
      return [one, two, three].map(({ told }) => told.splice(0).length)
    }
    expect(toldOf('2', { session: sessions[0] })).toEqual([1, 0, 0])
    expect(toldOf('3', { principal: 'q' })).toEqual([0, 0, 1])
    expect(toldOf('4', { principal: 'p', session: sessions[1] })).toEqual([0, 1, 0])
    one.stop()
    expect(toldOf('5', {})).toEqual([0, 1, 1])
    expect([watchers.some(({ principal }) => principal === 'q'), watchers.some(({ principal }) => principal === 'x')]).toEqual([
      true,
      false,
    ])
    watchers.close()
    expect([one, two, three].map(({ told }) => told.splice(0))).toEqual([[], ['ended'], ['ended']])
    expect(toldOf('6', {})).toEqual([0, 0, 0])
  })

  test('are one per listener: another caller takes the place of the earlier', () => {
    const { digests, watchers, watch } = scene()
    const one = watch({ principal: 'a' })
    digests.tools = '2'
    one.become({ principal: 'b' })
    watchers.look({ principal: 'a' })
    watchers.look({ principal: 'b' })
    expect(one.told).toEqual([])
    watchers.announce('tools', ({ principal }) => principal === 'a')
    expect(one.told).toEqual([])
    watchers.announce('tools', ({ principal }) => principal === 'b')
    expect(one.told).toEqual(['tools'])
    one.stop()
    watchers.announce('tools', () => true)
    expect(one.told).toEqual(['tools'])
  })

  test.each([
    [10_000, 1],
    [10_001, 2],
  ])('are told once of a list that was announced, if it is read within 10 s: after %i ms', (ms, count) => {
    const { digests, watchers, watch } = scene()
    const [meant, other] = [watch({}), watch({ principal: 'q' })]
    watchers.announce('tools', ({ principal }) => principal === 'p')
    expect([meant.told, other.told]).toEqual([['tools'], []])
    vi.advanceTimersByTime(ms)
    digests.tools = '2'
    watchers.look()
    expect([meant.told.length, other.told]).toEqual([count, ['tools']])
    // The announcement stands for one change only.
    digests.tools = '3'
    watchers.look()
    expect(meant.told).toHaveLength(count + 1)
  })
})
