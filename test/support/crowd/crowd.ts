/**
 * Hosts of every transport and era that converse with servers of every transport and era, all at once, come, go and vanish in the
 * middle of a sentence. What must be true afterwards: every word reached its own host, and nothing of anybody is left.
 */
import { serverStatuses } from '../../../src/admin/state/status.ts'
import { DEFAULT_PARKING } from '../../../src/era/host/parking-options.ts'
import type { FakeKind } from '../fake-downstream.ts'
import { everyTransport } from '../fake-host.ts'
import { startGateway } from '../gateway.ts'
import type { TestGateway } from '../gateway.ts'
import { Member } from './member.ts'
import { QUESTIONS, teach, Watched } from './servers.ts'

export interface CrowdOptions {
  readonly hosts: number
  readonly servers: number
  readonly forMs: number
  /** How long a host may leave a round unanswered. */
  readonly parkTtlMs: number
  /** Numbers from 0 to 1. */
  readonly random: () => number
}

export interface CrowdReport {
  /** How often each kind of turn was taken to its end. */
  readonly turns: Readonly<Record<string, number>>
  /** Turns per second. */
  readonly rate: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Questions of servers that hosts answered. */
  readonly questions: number
  /** Hosts that came, and went, in all. */
  readonly joined: number
  /** What must be zero once everybody has gone: parked calls, calls at servers, watched resources, links beside the main ones. */
  readonly left: Readonly<Record<'parked' | 'inFlight' | 'watched' | 'links', number>>
  /** The first of what went wrong, in words. */
  readonly findings: readonly string[]
  readonly heapMiB: number
}

/** Every tenth is started anew for each session: few hosts talk to those. */
const KINDS: readonly FakeKind[] = [
  'modern http',
  'legacy http',
  'legacy sse',
  'modern http',
  'legacy http',
  'modern stdio',
  'legacy sse',
  'modern http',
  'legacy http',
  'legacy stdio',
]
const EVERY_TENTH = 10
/** A host rests for half of this on average, once per host there is: a hundred turns per second in all. */
const REST_MS = 20
const STUCK_MS = 15_000
/** Beyond the time of a round that nobody answers. */
const SETTLE_MS = 10_000
const MAX_FINDINGS = 20

export const runCrowd = async ({ hosts, servers, forMs, parkTtlMs, random }: CrowdOptions): Promise<CrowdReport> => {
  const keys = Array.from({ length: servers }, (_, at) => `s${at}`)
  const kindOf = (at: number): FakeKind => KINDS[at % KINDS.length] ?? 'modern http'
  const options = { idleStopMs: 1_000, limits: { maxLinks: 1_000 } }
  await using gateway = await startGateway({
    servers: Object.fromEntries(
      keys.map((key, at) => [key, { kind: kindOf(at), tools: ['ask', 'touch'], templates: ['note://{id}'] }]),
    ),
    options: Object.fromEntries(keys.map((key) => [key, options])),
    gateway: { parking: { ...DEFAULT_PARKING, ttlMs: parkTtlMs } },
  })
  const watched = keys.map((key) => {
    const own = new Watched()
    teach(gateway.fake(key), own)
    return own
  })
  const findings: string[] = []
  const report = (finding: string): void => void (findings.length < MAX_FINDINGS && findings.push(finding))
  const tidying = setInterval(() => tidy(gateway, keys, report), 500)
  const startedMs = performance.now()
  const turns: Record<string, number> = {}
  const durations: number[] = []
  let joined = 0
  let questions = 0

  const runHost = async (at: number): Promise<void> => {
    const row = everyTransport[at % everyTransport.length]
    const mayStart = at % EVERY_TENTH < 2
    const reachable = keys.filter((_, position) => mayStart || kindOf(position) !== 'legacy stdio')
    while (performance.now() - startedMs < forMs) {
      const member = await Member.join(`h${joined++}`, row!, gateway, report)
      for (let isHere = true; isHere && performance.now() - startedMs < forMs;) {
        const turn = chooseTurn(member, reachable, random)
        const beganMs = performance.now()
        const failure = await within(STUCK_MS, turn.take())
        if (failure === undefined) {
          turns[turn.name] = (turns[turn.name] ?? 0) + 1
          durations.push(performance.now() - beganMs)
        } else report(`${member.id} (${row!.name}), ${turn.name}, ${member.doing}: ${failure}`)
        // All share one process: whoever is quick, on a pipe of it, would leave no time to the others.
        await pause(random() * hosts * REST_MS)
        isHere = turn.name !== 'vanish' && random() > 0.02
      }
      questions += member.questions
      await member.leave()
    }
  }
  await Promise.all(Array.from({ length: hosts }, (_, at) => runHost(at)))
  const seconds = (performance.now() - startedMs) / 1000
  const count = () => ({
    parked: gateway.running.gateway.parking.size,
    inFlight: sum(serverStatuses(gateway.running).map(({ inFlight }) => inFlight)),
    links: sum(serverStatuses(gateway.running).map(({ links }) => links)) - servers,
    watched: sum(watched.map(({ size }) => size)),
  })
  for (let waitedMs = 0; waitedMs < parkTtlMs + SETTLE_MS && sum(Object.values(count())) > 0; waitedMs += 50) await pause(50)
  clearInterval(tidying)
  tidy(gateway, keys, report)
  const sorted = durations.toSorted((a, b) => a - b)
  const share = (part: number): number => sorted[Math.floor(sorted.length * part)] ?? 0
  globalThis.gc?.()
  return {
    turns,
    rate: durations.length / seconds,
    p50Ms: share(0.5),
    p99Ms: share(0.99),
    questions,
    joined,
    left: count(),
    findings,
    heapMiB: process.memoryUsage().heapUsed / 2 ** 20,
  }
}

interface Turn {
  readonly name: string
  readonly take: () => Promise<void>
}

const chooseTurn = (member: Member, servers: readonly string[], random: () => number): Turn => {
  const server = servers[Math.floor(random() * servers.length)] ?? ''
  const asks = QUESTIONS.filter(() => random() < 0.5)
  const luck = random()
  if (luck < 0.01)
    return {
      name: 'vanish',
      take: async () => void member.converse(server, QUESTIONS).catch(() => undefined),
    }
  if (luck < 0.03 && member.row.era === 'modern') return { name: 'give up', take: () => member.converse(server, QUESTIONS, true) }
  if (luck < 0.35) return { name: 'watch', take: () => member.watch(server, random() < 0.5) }
  return { name: asks.length === 0 ? 'call' : 'converse', take: () => member.converse(server, asks) }
}

/** Why it did not end well; `undefined`: it did. */
const within = (ms: number, work: Promise<void>): Promise<string | undefined> => {
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  const timer = setTimeout(resolve, ms, `nothing for ${ms} ms`)
  work.then(
    () => resolve(undefined),
    (error: unknown) => resolve(String(error)),
  )
  return promise.finally(() => clearTimeout(timer))
}

/** Lets the fakes forget what they have received, and looks through the log. */
const tidy = (gateway: TestGateway, keys: readonly string[], report: (finding: string) => void): void => {
  for (const key of keys) gateway.fake(key).forget()
  for (const { level, facts, text } of gateway.log.entries.splice(0))
    if (level === 'error') report(`log: ${text} ${JSON.stringify(facts)}`)
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
