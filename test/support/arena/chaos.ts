/** A run of faults on an arena while a crowd calls through it, and the question at its end: is everybody well again? */
import type { Arena } from './arena.ts'
import { openArena } from './arena.ts'
import { openCaller } from './callers.ts'
import { runCrowd, seeded } from './crowd.ts'
import { choose } from './mischief.ts'

export interface ChaosOptions {
  readonly faults: number
  readonly seed: number
  readonly hosts: number
  readonly perKind: number
  /** Hears of each fault before it is done. */
  readonly onFault?: (name: string, number: number) => void
}

export interface ChaosEnd {
  readonly arena: Arena
  /** How often each was done, by id and name. */
  readonly done: ReadonlyMap<string, number>
  /** Servers that could not be called when all was over. */
  readonly unwell: readonly string[]
}

/** Idle limits of seconds: what is swallowed must end within the run. */
const CONFIG = {
  listen: { limits: { session_idle: '5s', write_stall: '1s' } },
  defaults: { timeouts: { idle: '2s', total: '10s', start: '5s', wait: '5s' } },
  reload: { drain: '7s', watch: false },
}
const SETTLE_MS = 30_000
const WELL_MS = 20_000
/** Between two faults at most; they overlap. */
const GAP_MS = 150

export const runChaos = async (options: ChaosOptions): Promise<ChaosEnd & AsyncDisposable> => {
  const arena = await openArena({ perKind: options.perKind, isFaulty: true, config: CONFIG })
  const random = seeded(options.seed)
  const done = new Map<string, number>()
  let isOver = false
  const crowd = runCrowd(arena, {
    hosts: options.hosts,
    lanes: 3,
    random: seeded(options.seed + 1),
    callsPerSession: 400,
    isOver: () => isOver,
  })
  const running = new Set<Promise<void>>()
  for (let number = 1; number <= options.faults; number++) {
    const { id, name, does } = choose(random)
    options.onFault?.(`${id} ${name}`, number)
    done.set(`${id} ${name}`, (done.get(`${id} ${name}`) ?? 0) + 1)
    const fault = Promise.resolve(does(arena, random)).finally(() => running.delete(fault))
    running.add(fault)
    // A gateway that is being replaced can be done nothing else.
    if (id === 'F-22' || id === 'F-23') await Promise.all(running)
    else await new Promise((resolve) => setTimeout(resolve, random() * GAP_MS))
    if (number % 100 === 0) arena.tidy()
  }
  await Promise.all(running)
  const unwell = await findUnwell(arena)
  isOver = true
  await crowd
  await arena.referee.settled(SETTLE_MS)
  return { arena, done, unwell, [Symbol.asyncDispose]: () => arena[Symbol.asyncDispose]() }
}

/** Calls each server until it answers, for so long as a back-off of this gateway and its time-outs may take. */
const findUnwell = async (arena: Arena): Promise<string[]> => {
  const caller = await openCaller('modern', arena.url, 1)
  const unwell: string[] = []
  for (const { key } of arena.seats) {
    const untilMs = performance.now() + WELL_MS
    for (let isWell = false; !isWell;) {
      const nonce = arena.referee.begin()
      const ends = await caller.call(0, `${key}__echo`, { nonce })
      for (const end of ends) arena.referee.ended(nonce, end)
      isWell = ends[0]?.type === 'answered'
      if (isWell || performance.now() < untilMs) continue
      unwell.push(`${key}: ${JSON.stringify(ends)}`)
      break
    }
  }
  await caller.leave(true)
  return unwell
}
