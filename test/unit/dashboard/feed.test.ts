/** What the page makes of a feed that breaks. The module is for browsers, whose types are not known here. */
import { expect, test, vi } from 'vitest'

interface Feed {
  readonly calls: { find(id: number): { readonly state: string } | undefined }
  readonly followCalls: (until: AbortSignal) => Promise<void>
}

const FEED = new URL('../../../src/dashboard/page/feed.ts', import.meta.url).href

test('a call that ended while the feed was away is not shown as open', async () => {
  const over = new AbortController()
  const asked: string[] = []
  const row = (state: string): object => ({ id: 1, state })
  let streams = 0
  vi.stubGlobal('document', { hidden: false, addEventListener: () => undefined, removeEventListener: () => undefined })
  vi.stubGlobal('fetch', async (path: string, { signal }: { signal?: AbortSignal }) => {
    asked.push(path)
    if (path.startsWith('/api/calls')) {
      const isDone = decodeURIComponent(path).includes('filter=id:1&')
      if (isDone) setTimeout(() => over.abort(), 10)
      return new Response(JSON.stringify({ calls: isDone ? [row('done')] : [], next: null }))
    }
    streams++
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
    const writer = writable.getWriter()
    const send = (message: object): void =>
      void writer.write(new TextEncoder().encode(`data: ${JSON.stringify(message)}\n\n`)).catch(() => undefined)
    send({ type: 'hello', latest: 1, bodies: 'all' })
    if (streams === 1) {
      send({ type: 'calls', calls: [row('open')] })
      void writer.close().catch(() => undefined)
    } else {
      signal?.addEventListener('abort', () => void writer.abort().catch(() => undefined))
      setTimeout(() => over.abort(), 300)
    }
    return new Response(readable)
  })
  // Cast: see the interface.
  const { calls, followCalls } = (await import(FEED)) as Feed
  await followCalls(over.signal)
  expect(asked).toContain('/api/feed?after=1')
  expect(calls.find(1)).toEqual({ id: 1, state: 'done' })
  vi.unstubAllGlobals()
})
