/**
 * What one simulation does: servers, hosts, and everything that happens, with its time. A plan is plain JSON: a seed makes one, shrinking takes
 * events away from it, and one that failed is kept as a file.
 */
import type { FakeKind } from '../fake-downstream.ts'
import { Random } from './random.ts'

export interface ServerPlan {
  readonly kind: FakeKind
  readonly tools: number
  readonly sharing: 'session' | 'principal' | 'shared' | 'call'
  readonly spare: 0 | 1
  readonly start: 'eager' | 'lazy'
  /** Calls at the same time, before the others wait. */
  readonly concurrency: number
}

export interface HostPlan {
  readonly transport: 'legacy http' | 'legacy sse' | 'legacy stdio' | 'modern http' | 'modern stdio'
  readonly canBeAsked: boolean
}

/** What a server is to do with a call; it finds this in the arguments. */
export interface Work {
  readonly how: 'plain' | 'error' | 'big' | 'progress' | 'ask' | 'chatty' | 'never'
  /** Before the answer, ms. */
  readonly workMs: number
  /** How long the host takes to answer a question, ms. */
  readonly answerMs: number
}

/** The clock of a replica's machine. */
export interface ClockPlan {
  /** Of its wall clock, ms. */
  readonly offsetMs: number
  /** Gained in a second of a clock that is right, microseconds. */
  readonly driftPpm: number
}

export type Event = { readonly atMs: number } & (
  | ({
      readonly do: 'call'
      readonly host: number
      readonly server: number
      readonly tool: number
      readonly giveUpMs?: number
    } & Work)
  | { readonly do: 'list'; readonly host: number }
  | { readonly do: 'leave'; readonly host: number; readonly politely: boolean }
  /** All connections of a host, or of a server, break. */
  | { readonly do: 'cut'; readonly host?: number; readonly server?: number }
  /** Nothing passes on them for `forMs`; `null`: never again, and neither end is told. */
  | { readonly do: 'stop'; readonly host?: number; readonly server?: number; readonly forMs: number | null }
  | { readonly do: 'crash'; readonly server: number }
  /** New connections are not answered. */
  | { readonly do: 'unreachable'; readonly server: number; readonly forMs: number }
  | { readonly do: 'no processes'; readonly forMs: number }
  | { readonly do: 'full disk'; readonly forMs: number }
  | { readonly do: 'change'; readonly server: number }
  | { readonly do: 'flood'; readonly server: number; readonly count: number }
  /** Another limit of calls at once; `headers`: also something that the server is started with. */
  | { readonly do: 'reload'; readonly server: number; readonly concurrency: number; readonly restarts: boolean }
  | { readonly do: 'remove'; readonly server: number; readonly forMs: number }
  /** In order; of several replicas, one. */
  | { readonly do: 'restart'; readonly replica?: number }
  /** A host ends its session by DELETE. */
  | { readonly do: 'delete'; readonly host: number }
  /** A replica ends without a word, and starts again; `isSilent`: its machine is lost until then, and nothing answers there. */
  | { readonly do: 'kill'; readonly replica: number; readonly forMs: number; readonly isSilent: boolean }
  /** A replica stands still, and goes on as if nothing had been. */
  | { readonly do: 'freeze'; readonly replica: number; readonly forMs: number }
  /** Nothing passes between two of the replicas, or one and the store; `messages`, `connections`: only those from the first to the second do not. */
  | {
      readonly do: 'part'
      readonly replica: number
      readonly from: number | 'store' | 'all'
      readonly forMs: number
      readonly what: 'all' | 'messages' | 'connections'
    }
  | { readonly do: 'pause store'; readonly forMs: number }
  /** All that it holds is lost. */
  | { readonly do: 'lose store' }
  /** A replica's wall clock is set. */
  | { readonly do: 'step'; readonly replica: number; readonly byMs: number }
  /** A server of the other era answers at the URL of an HTTP server from now on. Seeds do not choose it yet. */
  | { readonly do: 'era'; readonly server: number }
)

export interface Plan {
  readonly seed: number
  readonly delayMs: number
  readonly parkMs: number
  readonly httpServer: 'own' | 'node'
  readonly stubborn: boolean
  readonly servers: readonly ServerPlan[]
  readonly hosts: readonly HostPlan[]
  /** Of each replica; absent: there is one gateway. */
  readonly replicas?: readonly ClockPlan[]
  readonly events: readonly Event[]
}

const KINDS: readonly FakeKind[] = ['legacy http', 'legacy sse', 'legacy stdio', 'modern http', 'modern stdio']
const HOWS: readonly Work['how'][] = ['plain', 'plain', 'plain', 'error', 'big', 'progress', 'ask', 'ask', 'chatty', 'never']

export const planOf = (seed: number): Plan => {
  const random = new Random(seed)
  const servers = Array.from({ length: random.int(1, 3) }, (): ServerPlan => ({
    kind: random.pick(KINDS),
    tools: random.int(1, 3),
    sharing: random.pick(['session', 'session', 'principal', 'shared', 'call']),
    spare: random.chance(0.3) ? 1 : 0,
    start: random.chance(0.2) ? 'lazy' : 'eager',
    concurrency: random.pick([256, 256, 2, 1]),
  }))
  const hosts = Array.from({ length: random.int(1, 4) }, (): HostPlan => ({
    transport: random.pick(KINDS),
    canBeAsked: random.chance(0.7),
  }))
  const lengthMs = random.pick([2_000, 20_000, 120_000, 600_000])
  const [server, host] = [() => random.int(0, servers.length - 1), () => random.int(0, hosts.length - 1)]
  const side = () => (random.chance(0.5) ? { host: host() } : { server: server() })
  /** A quarter of all plans has no fault in it: there every call must be answered. */
  const isCalm = random.chance(0.25)
  const faults: readonly (() => object)[] = [
    () => ({ do: 'cut', ...side() }),
    () => ({ do: 'stop', ...side(), forMs: random.chance(0.2) ? null : random.ms(90_000) }),
    () => ({ do: 'crash', server: server() }),
    () => ({ do: 'unreachable', server: server(), forMs: random.ms(120_000) }),
    () => ({ do: 'no processes', forMs: random.ms(30_000) }),
    () => ({ do: 'full disk', forMs: random.ms(60_000) }),
    () => ({ do: 'remove', server: server(), forMs: random.ms(60_000) }),
    () => ({ do: 'restart' }),
    () => ({ do: 'leave', host: host(), politely: random.chance(0.5) }),
  ]
  const others: readonly (() => object)[] = [
    () => ({ do: 'list', host: host() }),
    () => ({ do: 'change', server: server() }),
    () => ({ do: 'flood', server: server(), count: random.int(1, 300) }),
    () => ({ do: 'reload', server: server(), concurrency: random.pick([256, 4, 2, 1]), restarts: !isCalm && random.chance(0.3) }),
  ]
  const call = (): object => {
    const how = random.pick(HOWS)
    return {
      do: 'call',
      host: host(),
      server: server(),
      tool: random.int(0, 2),
      how: isCalm && how === 'never' ? 'plain' : how,
      workMs: random.chance(0.6) ? 0 : random.ms(40_000),
      answerMs: random.ms(isCalm ? 8_000 : 60_000),
      ...(!isCalm && random.chance(0.1) && { giveUpMs: random.ms(10_000) }),
    }
  }
  const event = (): object => {
    const kind = random.next()
    if (kind < 0.7) return call()
    return random.pick(isCalm || kind < 0.85 ? others : faults)()
  }
  const events = Array.from({ length: random.int(3, 40) }, () => ({ atMs: random.int(0, lengthMs), ...event() }) as Event)
  return {
    seed,
    delayMs: random.pick([0.1, 2, 50]),
    parkMs: random.pick([10_000, 30_000]),
    httpServer: random.chance(0.8) ? 'own' : 'node',
    stubborn: random.chance(0.2),
    servers,
    hosts,
    events: events.toSorted((a, b) => a.atMs - b.atMs),
  }
}

const HOSTS: readonly HostPlan['transport'][] = [
  'legacy http',
  'legacy http',
  'legacy http',
  'modern http',
  'modern http',
  'legacy sse',
]
/** Of wall clocks; marks between replicas are good for five minutes. */
const MAX_OFFSET_MS = 10_000
/** Clocks of machines are off by a hundred; a virtual one that is moved may be off by more for a time. */
const MAX_DRIFT_PPM = 2_000

/** Several replicas; servers have no faults of their own, so that every call has to end in time. `most`: replicas; 50 at least 40. */
export const replicaPlanOf = (seed: number, most: number): Plan => {
  // Other numbers than those of the plans with one gateway.
  const random = new Random(seed ^ 0x5bd1e995)
  const isCrowd = most > 5
  const count = isCrowd ? random.int(most - 10, most) : random.int(2, most)
  const servers = Array.from({ length: random.int(1, 3) }, (): ServerPlan => ({
    kind: random.pick(KINDS),
    tools: random.int(1, 2),
    sharing: random.pick(['session', 'session', 'principal', 'shared', 'call']),
    spare: 0,
    start: random.chance(0.2) ? 'lazy' : 'eager',
    concurrency: 256,
  }))
  const hosts = Array.from({ length: isCrowd ? random.int(8, 16) : random.int(1, 5) }, (): HostPlan => ({
    transport: random.pick(HOSTS),
    canBeAsked: random.chance(0.7),
  }))
  const replicas = Array.from({ length: count }, (): ClockPlan => ({
    offsetMs: random.int(-MAX_OFFSET_MS, MAX_OFFSET_MS),
    driftPpm: random.int(-MAX_DRIFT_PPM, MAX_DRIFT_PPM),
  }))
  const lengthMs = random.pick([20_000, 60_000, 60_000, 180_000])
  const [server, host] = [() => random.int(0, servers.length - 1), () => random.int(0, hosts.length - 1)]
  const replica = (): number => random.int(0, count - 1)
  /** A quarter has no fault, another one only restarts in order. */
  const mood = random.pick(['calm', 'rolling', 'rough', 'rough'])
  const forMs = (): number => random.pick([random.ms(5_000), random.int(5_000, 15_000), random.int(15_000, 40_000)])
  const part = (): object => {
    const at = replica()
    const other = random.pick<number | 'store' | 'all'>(['store', 'all', 'all', replica()])
    const from = other === at ? 'store' : other
    const what = random.pick(from === 'store' ? ['all', 'all', 'messages'] : ['all', 'all', 'messages', 'connections'])
    return { do: 'part', replica: at, from, forMs: forMs(), what }
  }
  const restart = (): object => ({ do: 'restart', replica: replica() })
  const faults: readonly (() => object)[] = [
    part,
    part,
    part,
    restart,
    () => ({ do: 'kill', replica: replica(), forMs: random.int(500, 20_000), isSilent: random.chance(0.3) }),
    () => ({ do: 'kill', replica: replica(), forMs: random.int(500, 5_000), isSilent: false }),
    () => ({ do: 'freeze', replica: replica(), forMs: forMs() }),
    () => ({ do: 'pause store', forMs: forMs() }),
    () => ({ do: 'lose store' }),
    () => ({ do: 'step', replica: replica(), byMs: random.int(-5_000, 5_000) }),
    () => ({ do: 'delete', host: host() }),
  ]
  const others: readonly (() => object)[] = [
    () => ({ do: 'list', host: host() }),
    () => ({ do: 'change', server: server() }),
    () => ({ do: 'delete', host: host() }),
    () => ({ do: 'reload', server: server(), concurrency: 256, restarts: false }),
  ]
  const call = (): object => {
    const how = random.pick(HOWS)
    return {
      do: 'call',
      host: host(),
      server: server(),
      tool: random.int(0, 1),
      how: how === 'never' ? 'plain' : how,
      workMs: random.chance(0.6) ? 0 : random.ms(20_000),
      answerMs: random.ms(8_000),
      ...(mood === 'rough' && random.chance(0.05) && { giveUpMs: random.ms(10_000) }),
    }
  }
  const event = (): object => {
    const kind = random.next()
    if (kind < 0.75) return call()
    if (mood === 'calm' || kind < 0.8) return random.pick(others)()
    return mood === 'rolling' ? restart() : random.pick(faults)()
  }
  const events = Array.from(
    { length: isCrowd ? random.int(60, 120) : random.int(10, 60) },
    () => ({ atMs: random.int(0, lengthMs), ...event() }) as Event,
  )
  return {
    seed,
    delayMs: random.pick([0.1, 2, 50]),
    parkMs: 30_000,
    httpServer: random.chance(0.8) ? 'own' : 'node',
    stubborn: false,
    servers,
    hosts,
    replicas,
    events: events.toSorted((a, b) => a.atMs - b.atMs),
  }
}
