/**
 * Big and slow answers: how soon the first byte of a result that is still being written reaches the host, and how much memory 32 answers
 * of 1 MB at once take.
 */
import { connect } from 'node:net'
import { peakMiB, processTree } from './cpu.ts'
import { openHostOf, type Stage } from './field.ts'
import { type Effort, figure, type Figure, rotate } from './figures.ts'
import type { Host } from './load.ts'
import { NONCE_LENGTH, SLOW_MS, SLOW_TOOL, TOOLS } from './payload.ts'
import type { Subject } from './subjects.ts'

const SECTION = 'big and slow results'
const CALLS = 5

interface Contestant {
  readonly name: string
  readonly what: string
  readonly url: URL
  readonly host: Host
  readonly tool: string
  readonly marker: string
}

/** ms until the answer holds `marker`, or its end where it never does. */
const untilSeen = async ({ host, url, tool, marker }: Contestant): Promise<number> => {
  const params = { name: tool, arguments: { nonce: '0'.repeat(NONCE_LENGTH) }, _meta: { progressToken: 1 } }
  const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true })
  const seen = Promise.withResolvers<void>()
  let said = ''
  socket.on('error', seen.reject).on('close', () => seen.reject(new Error('the connection was closed')))
  socket.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString('latin1', 0, 4_096)).slice(-8_192)
    if (said.includes(marker) || said.includes('"text":"')) seen.resolve()
  })
  const started = performance.now()
  socket.write(host.frame('tools/call', params))
  await seen.promise
  const waited = performance.now() - started
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, 2 * SLOW_MS - waited))) // the rest
  socket.destroy()
  return waited
}

export const firstBytes = async (stage: Stage, subjects: readonly Subject[], effort: Effort): Promise<readonly Figure[]> => {
  const contestants: Contestant[] = []
  const [whole, inEvents] = [await stage.server('legacy'), await stage.server('sse-reply')]
  const enter = async (subject: Subject, server: typeof whole, what: string, marker: string) => {
    const isServer = subject.name === 'direct'
    const reach = isServer ? new URL(server.url) : ((await stage.start(subject, [server])).reach as URL)
    const host = stage.stack.use(await openHostOf(subject, reach, 'legacy'))
    contestants.push({ name: subject.name, what, url: new URL('/mcp', reach), host, tool: subject.prefix + SLOW_TOOL, marker })
  }
  for (const subject of subjects.filter(({ name }) => /^(direct|raw|nginx|sdk-proxy|trunkline)$/.test(name)))
    await stage.attempt(`${subject.name}, first byte`, async () => {
      await enter(subject, whole, 'first byte of 1 MB', '"text":"')
      await enter(subject, inEvents, 'first word of progress', 'notifications/progress')
    })
  const found = await rotate(
    effort,
    contestants,
    async (one) => {
      const waits: number[] = []
      for (let call = 0; call < CALLS; call++) waits.push(await untilSeen(one))
      return Math.min(...waits)
    },
    (one, error) => stage.lose(`${one.name}, ${one.what}`, error),
  )
  return [...found].map(([one, waits]) => {
    const raw = contestants.find(({ name, what }) => name === 'raw' && what === one.what)
    return figure(SECTION, one.name, one.what, 'ms', waits, raw && found.get(raw))
  })
}

/** Peaks of fresh processes, so that none stands on what came before. */
export const peaks = async (stage: Stage, subjects: readonly Subject[], effort: Effort): Promise<readonly Figure[]> => {
  const server = await stage.server('legacy')
  const chosen = subjects.filter(({ name }) => /^(raw|raw-json|sdk-proxy|trunkline|mcp-hub)$/.test(name))
  const found = await rotate(
    { rounds: Math.min(5, effort.rounds), warmUp: 0 },
    chosen,
    async (subject) => {
      await using started = await stage.start(subject, [server])
      const kind = subject.ssePath === undefined ? 'legacy' : 'http-sse'
      await using host = await openHostOf(subject, started.reach, kind)
      const ask = { tool: `${subject.prefix}t1m`, size: TOOLS.t1m }
      const { bad } = await host.burst({ ask, inFlight: 32, forMs: 5 * effort.forMs, meter: () => 0 })
      if (bad > 0) throw new Error(`${bad} bad replies: ${subject.name}, 1 MB × 32`)
      return peakMiB(processTree(started.pid))
    },
    (one, error) => stage.lose(`${one.name}, 32 × 1 MB`, error),
  )
  const raw = chosen.find(({ name }) => name === 'raw')
  return [...found].map(([{ name }, peaks]) =>
    figure(SECTION, name, 'peak memory, 32 × 1 MB', 'MiB', peaks, raw && found.get(raw)),
  )
}
