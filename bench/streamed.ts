/**
 * Big and slow answers: the time until the first and the last byte of a result that is still being written reach the host, and the memory
 * of 32 answers of 1 MB at once.
 */
import { connect } from 'node:net'
import { peakMiB, processTree } from './cpu.ts'
import { openHostOf, type Stage } from './field.ts'
import type { Deadline } from './budget.ts'
import { type Effort, figure, type Figure, rotate } from './figures.ts'
import type { Host } from './load.ts'
import { NONCE_LENGTH, SLOW_MS, SLOW_TOOL, STEADY_BYTES, STEADY_TOOL, textSize, toolOf } from './payload.ts'
import type { Subject } from './subjects.ts'

const SECTION = 'big and slow results'
const CALLS = 5

interface Contestant {
  readonly name: string
  readonly what: string
  readonly url: URL
  readonly host: Host
  readonly tool: string
  /** Seen in the bytes so far, of which there are so many. */
  readonly isSeen: (bytes: number, lately: string) => boolean
}

/** ms until enough of the answer has come. */
const untilSeen = async ({ host, url, tool, isSeen }: Contestant): Promise<number> => {
  const params = { name: tool, arguments: { nonce: '0'.repeat(NONCE_LENGTH) }, _meta: { progressToken: 1 } }
  const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true })
  const seen = Promise.withResolvers<void>()
  let said = ''
  let bytes = 0
  socket.on('error', seen.reject).on('close', () => seen.reject(new Error('the connection was closed')))
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    said = (said + chunk.toString('latin1', 0, 4_096)).slice(-8_192)
    if (isSeen(bytes, said)) seen.resolve()
  })
  const started = performance.now()
  socket.write(host.frame('tools/call', params))
  await seen.promise
  const waited = performance.now() - started
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, 2 * SLOW_MS - waited))) // the rest
  socket.destroy()
  return waited
}

const TEXT = '"text":"'
/** What is waited for. */
const WAITS = {
  'first byte of a steady answer': {
    server: 'legacy',
    tool: STEADY_TOOL,
    isSeen: (_: number, lately: string) => lately.includes(TEXT),
  },
  'last byte of a steady answer': { server: 'legacy', tool: STEADY_TOOL, isSeen: (bytes: number) => bytes > STEADY_BYTES },
  'first word of progress': {
    server: 'sse-reply',
    tool: SLOW_TOOL,
    isSeen: (_: number, lately: string) => lately.includes('notifications/progress') || lately.includes(TEXT),
  },
} as const

export const firstBytes = async (
  stage: Stage,
  subjects: readonly Subject[],
  effort: Effort,
  deadline: Deadline,
): Promise<readonly Figure[]> => {
  const contestants: Contestant[] = []
  const servers = { legacy: await stage.server('legacy'), 'sse-reply': await stage.server('sse-reply') }
  for (const subject of subjects.filter(({ name }) => /^(direct|raw|nginx|sdk-proxy|trunkline)$/.test(name)))
    await stage.attempt(`${subject.name}, first byte`, async () => {
      for (const [kind, server] of Object.entries(servers)) {
        const reach = subject.name === 'direct' ? new URL(server.url) : ((await stage.start(subject, [server])).reach as URL)
        const host = stage.stack.use(await openHostOf(subject, reach, 'legacy'))
        for (const [what, { server: behind, tool, isSeen }] of Object.entries(WAITS))
          if (behind === kind)
            contestants.push({ name: subject.name, what, url: new URL('/mcp', reach), host, tool: subject.prefix + tool, isSeen })
      }
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
    deadline,
  )
  return [...found].map(([one, waits]) => {
    const raw = contestants.find(({ name, what }) => name === 'raw' && what === one.what)
    return figure(SECTION, one.name, one.what, 'ms', waits, raw && found.get(raw))
  })
}

/** Kinds that take different ways through a gateway: one long text, one full of quotes, many values. */
const PEAK_KINDS = ['prose', 'dense', 'objects'] as const
const PEAK_ROUNDS = 5

/** Peaks of fresh processes, so that none stands on what came before. */
export const peaks = async (
  stage: Stage,
  subjects: readonly Subject[],
  effort: Effort,
  deadline: Deadline,
): Promise<readonly Figure[]> => {
  const server = await stage.server('legacy')
  const chosen = subjects.flatMap((subject) => {
    if (/^(raw|trunkline)$/.test(subject.name)) return PEAK_KINDS.map((kind) => ({ subject, kind }))
    return /^(raw-json|sdk-proxy|mcp-hub)$/.test(subject.name) ? [{ subject, kind: 'prose' as const }] : []
  })
  const what = (kind: (typeof PEAK_KINDS)[number]) => `peak memory, 32 × 1 MB${kind === 'prose' ? '' : ` ${kind}`}`
  const found = await rotate(
    { rounds: Math.min(PEAK_ROUNDS, effort.rounds), warmUp: 0 },
    chosen,
    async ({ subject, kind }) => {
      await using started = await stage.start(subject, [server])
      await using host = await openHostOf(subject, started.reach, subject.ssePath === undefined ? 'legacy' : 'http-sse')
      const ask = { tool: subject.prefix + toolOf('t1m', kind), size: textSize('t1m', kind) }
      const { bad } = await host.burst({ ask, inFlight: 32, forMs: 5 * effort.forMs, meter: () => 0 })
      if (bad > 0) throw new Error(`${bad} bad replies: ${subject.name}, 1 MB ${kind} × 32`)
      return peakMiB(processTree(started.pid))
    },
    ({ subject, kind }, error) => stage.lose(`${subject.name}, ${what(kind)}`, error),
    deadline,
  )
  return [...found].map(([one, peaks]) => {
    const raw = chosen.find(({ subject, kind }) => subject.name === 'raw' && kind === one.kind)
    return figure(SECTION, one.subject.name, what(one.kind), 'MiB', peaks, raw && found.get(raw))
  })
}
