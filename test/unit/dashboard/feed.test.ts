/** What the page makes of a feed that breaks. The module is for browsers, whose types are not known here. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

interface Feed {
  readonly calls: { readonly size: number; find(id: number): { readonly state: string } | undefined }
  readonly followCalls: (until: AbortSignal) => Promise<void>
  readonly loadPage: (filter: string) => Promise<void>
  readonly loadOlder: (filter: string) => Promise<void>
}

const FEED = new URL('../../../src/dashboard/page/feed.ts', import.meta.url).href

/** The module as a page of this name loads it: each name is a module of its own. */
const load = async (page: string): Promise<Feed> =>
  // Cast: see the interface.
  (await import(`${FEED}?${page}`)) as Feed

/** The paths that were asked for. */
let asked: string[] = []

/** Answers a page of calls with those of `pageOf`, and each stream with the messages of its turn; all but the last end. */
const serve = (streams: readonly (readonly object[])[], pageOf: (path: string) => readonly object[]): void => {
  let turn = 0
  vi.stubGlobal('fetch', async (path: string, { signal }: { signal?: AbortSignal }) => {
    asked.push(path)
    if (path.startsWith('/api/calls'))
      return new Response(JSON.stringify({ calls: pageOf(decodeURIComponent(path)), next: null }))
    const messages = streams[turn++] ?? []
    const isLast = turn === streams.length
    const text = messages.map((message) => `data: ${JSON.stringify(message)}\n\n`).join('')
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        controller.enqueue(new TextEncoder().encode(text))
        if (!isLast) controller.close()
        else signal?.addEventListener('abort', () => controller.close())
      },
    })
    return new Response(body)
  })
}

const row = (id: number, state = 'done'): object => ({ id, state })
const hello = (run: string, latest: number): object => ({ type: 'hello', run, latest, bodies: 'all' })

beforeEach(() => {
  asked = []
  vi.stubGlobal('document', { hidden: false, addEventListener: () => undefined, removeEventListener: () => undefined })
})
afterEach(() => void vi.unstubAllGlobals())

test('a call that ended while the feed was away is not shown as open', async () => {
  serve([[hello('a', 1), { type: 'calls', calls: [row(1, 'open')] }], [hello('a', 1)]], (path) =>
    path.includes('filter=id:1&') ? [row(1)] : [],
  )
  const { calls, followCalls } = await load('open')
  const over = new AbortController()
  const following = followCalls(over.signal)
  await vi.waitFor(() => expect(calls.find(1)).toEqual(row(1)))
  expect(asked).toContain('/api/feed?after=1')
  over.abort()
  await following
})

test('the calls of a process that was started again replace those before', async () => {
  // The other process has as many calls as the first one had.
  serve([[hello('a', 2), { type: 'calls', calls: [row(1), row(2)] }], [hello('b', 3)]], () =>
    asked.filter((path) => path.startsWith('/api/feed')).length < 2 ? [] : [row(3)],
  )
  const { calls, followCalls } = await load('restart')
  const over = new AbortController()
  const following = followCalls(over.signal)
  await vi.waitFor(() => expect(calls.find(3)).toBeDefined())
  expect(calls.size).toBe(1)
  over.abort()
  await following
})

test('a feed that names a lower number than known, as the one of several workers, keeps the calls', async () => {
  serve(
    [
      [hello('a', 0), { type: 'calls', calls: [row(610)] }],
      [hello('a', 0), { type: 'calls', calls: [row(671)] }],
    ],
    () => [],
  )
  const { calls, followCalls } = await load('workers')
  const over = new AbortController()
  const following = followCalls(over.signal)
  await vi.waitFor(() => expect(calls.find(671)).toBeDefined())
  expect(calls.find(610)).toBeDefined()
  over.abort()
  await following
})

test('who signs in next sees no call of before', async () => {
  serve([[hello('a', 1), { type: 'calls', calls: [row(1)] }], [], []], () => [])
  const { calls, followCalls } = await load('viewers')
  const [first, second] = [new AbortController(), new AbortController()]
  const before = followCalls(first.signal)
  await vi.waitFor(() => expect(calls.size).toBe(1))
  first.abort()
  await before
  const following = followCalls(second.signal)
  expect(calls.size).toBe(0)
  second.abort()
  await following
})

test.each(['', 'tool:x'])(
  'older calls (filter %j) are requested once at a time, page by page, until there are no more',
  async (filter) => {
    const paths: string[] = []
    const pages = [
      { calls: [row(9), row(8)], next: 8 },
      { calls: [row(7)], next: 7 },
      { calls: [row(6)], next: null },
    ]
    vi.stubGlobal('fetch', async (path: string) => {
      paths.push(new URL(path, 'http://x').searchParams.get('before') ?? '')
      return new Response(JSON.stringify(pages.shift()))
    })
    const { calls, loadOlder, loadPage } = await load(`older-${filter}`)
    await loadOlder(filter)
    expect(paths).toEqual([])
    await loadPage(filter)
    await Promise.all([loadOlder(filter), loadOlder(filter)])
    await loadOlder(filter)
    await loadOlder(filter)
    expect(paths).toEqual(['', '8', '7'])
    expect([9, 8, 7, 6].map((id) => calls.find(id))).toEqual([row(9), row(8), row(7), row(6)])
  },
)
