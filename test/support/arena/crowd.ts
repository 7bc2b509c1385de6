/** Hosts that call, leave and come back, for as long as they are let; what they do follows from a seed. */
import type { Arena, Wish } from './arena.ts'
import { callerKinds, openCaller } from './callers.ts'
import type { Caller } from './callers.ts'

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
export const seeded = (seed: number): (() => number) => {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const AWAY_MS = 50

export interface CrowdOptions {
  readonly hosts: number
  /** Calls that one session of several lanes has under way. */
  readonly lanes: number
  readonly random: () => number
  /** Calls of a session before its host leaves. */
  readonly callsPerSession: number
  /** The crowd goes home when this says so. */
  readonly isOver: () => boolean
}

/** Resolves when every host has gone, which takes no longer than its last call. Resolves with the number of sessions. */
export const runCrowd = async (arena: Arena, options: CrowdOptions): Promise<number> => {
  const hosts = Array.from({ length: options.hosts }, (_, at) => runHost(arena, at, options))
  return (await Promise.all(hosts)).reduce((sum, sessions) => sum + sessions, 0)
}

const runHost = async (arena: Arena, at: number, { lanes, random, callsPerSession, isOver }: CrowdOptions): Promise<number> => {
  const kind = callerKinds[at % callerKinds.length]
  let sessions = 0
  while (!isOver()) {
    // Every other three hosts see nothing of the faults before the gateway.
    const url = Math.floor(at / callerKinds.length) % 2 === 0 ? arena.direct : arena.url
    const caller = await openCaller(kind!, url, lanes).catch(() => undefined)
    if (caller === undefined) {
      await pause(AWAY_MS)
      continue
    }
    sessions++
    const calls = Math.ceil(random() * callsPerSession)
    const isDone = (made: number): boolean => made >= calls || isOver()
    await Promise.all(Array.from({ length: caller.lanes }, (_, lane) => runLane(arena, caller, lane, random, isDone)))
    await caller.leave(random() < 0.5)
  }
  return sessions
}

const runLane = async (
  { referee, seats }: Arena,
  caller: Caller,
  lane: number,
  random: () => number,
  isDone: (made: number) => boolean,
): Promise<void> => {
  for (let made = 0; !isDone(made); made++) {
    const seat = seats[Math.floor(random() * seats.length)]
    const nonce = referee.begin()
    const ends = await caller.call(lane, `${seat!.key}__echo`, wishOf(nonce, random))
    for (const end of ends) referee.ended(nonce, end)
    if (ends.every(({ type }) => type === 'answered')) continue
    // Whoever is refused comes back a little later, and whose session or gateway has gone, with another.
    await pause(AWAY_MS)
    if (ends.some((end) => end.type === 'broken' || (end.type === 'failed' && end.kind === 'http 404'))) return
  }
}

/** Mostly small and quick, now and then big, slow or with progress. */
const wishOf = (nonce: number, random: () => number): Wish => {
  const luck = random()
  if (luck < 0.9) return { nonce }
  if (luck < 0.93) return { nonce, size: Math.floor(random() * 20_000) }
  if (luck < 0.932) return { nonce, size: 200_000 }
  return luck < 0.97 ? { nonce, progress: 2 } : { nonce, delayMs: Math.floor(random() * 30) }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
