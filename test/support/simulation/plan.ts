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
  | { readonly do: 'restart' }
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
