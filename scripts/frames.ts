/**
 * `node scripts/frames.ts`: the frames of the dashboard while 500 events per second are added to a list of 10,000 calls that is
 * scrolled, and its first paint. The page is real, the rows are generated. No test checks the figures, because they depend on the
 * machine and on a browser without a graphics card.
 */
import { startScene } from '../test/support/dashboard-scene.ts'
import { launchBrowser } from '../test/support/real-browser.ts'
import { cachedProgram } from './cached-build.ts'

const SECONDS = 6

const rowOf = (id: number): object => ({
  id,
  at: new Date().toISOString(),
  state: id % 2 === 0 ? 'done' : 'open',
  host: 'claude-code 2.1.0',
  transport: 'http',
  era: 'modern',
  revision: '2026-07-28',
  principal: 'local',
  session: null,
  toolset: null,
  endpoint: null,
  method: 'tools/call',
  name: `gh__search_code_${id % 40}`,
  server: 'github',
  original: `search_code_${id % 40}`,
  outcome: id % 17 === 0 ? 'failed' : 'ok',
  error: id % 17 === 0 ? { kind: 'timeout', code: null, message: 'no answer within 30000 ms' } : null,
  ms: { total: (id * 37) % 4_000, host: 1, gateway: 2, downstream: ((id * 37) % 4_000) - 3 },
  bytesIn: 214,
  bytesOut: 8_120,
  tokensOut: 2_030,
  rules: [],
  lanes: 1,
  replayOf: null,
  traceId: null,
})

const scene = await startScene(await cachedProgram())
const browser = await launchBrowser()
try {
  const page = await (await browser.newContext({ viewport: { width: 1440, height: 900 } })).newPage()
  await page.route('**/api/calls?*', (route) => {
    const calls = Array.from({ length: 10_000 }, (_, at) => rowOf(10_000 - at))
    return route.fulfill({ contentType: 'application/json', body: JSON.stringify({ calls, next: null }) })
  })
  // What the page reads as its feed is a stream that it is given inside: 10 batches of 50 rows a second.
  await page.addInitScript(
    `{
      const rowOf = ${rowOf.toString()}
      const real = globalThis.fetch
      const encoder = new TextEncoder()
      globalThis.fetch = (input, options) => {
        if (!String(input).startsWith('/api/feed')) return real(input, options)
        let id = 10_000
        const said = (message) => encoder.encode('event: message\\ndata: ' + JSON.stringify(message) + '\\n\\n')
        const body = new ReadableStream({
          start(controller) {
            controller.enqueue(said({ type: 'hello', latest: id, bodies: 'all' }))
            setInterval(() => controller.enqueue(said({ type: 'calls', calls: Array.from({ length: 50 }, () => rowOf(++id)) })), 100)
          },
        })
        return Promise.resolve(new Response(body, { status: 200 }))
      }
    }`,
  )
  await page.goto(await scene.open())
  await page.locator('.vl-row').first().waitFor()
  const paint = await page.evaluate<number>("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1")
  const measure = async (isScrolled: boolean): Promise<{ p50: number; p95: number; worst: number; frames: number }> => {
    const deltas = await page.evaluate<number[]>(`new Promise((resolve) => {
      const list = document.querySelector('.vl')
      const deltas = []
      let before = performance.now()
      const until = before + ${SECONDS * 1_000}
      const frame = (now) => {
        deltas.push(now - before)
        before = now
        if (${isScrolled}) list.scrollTop += 90
        if (now > until) resolve(deltas.slice(2))
        else requestAnimationFrame(frame)
      }
      requestAnimationFrame(frame)
    })`)
    const sorted = deltas.toSorted((a, b) => a - b)
    const at = (share: number): number => Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 10) / 10
    return { p50: at(0.5), p95: at(0.95), worst: at(0.9999), frames: deltas.length }
  }
  console.log(`first contentful paint after navigation: ${Math.round(paint)} ms`)
  console.log('rows in the list:', await page.locator('.vl').getAttribute('aria-rowcount'))
  console.log('500 rows/s, still:   ', await measure(false))
  console.log('500 rows/s, scrolled:', await measure(true))
} finally {
  await browser.close()
  await scene[Symbol.asyncDispose]()
}
