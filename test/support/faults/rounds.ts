/** Faults of servers and of the gateway, so many times over: a few rounds in the tests, the length of the table in `scripts/faults.ts`. */
import type { Arena } from '../arena/arena.ts'
import { openArena } from '../arena/arena.ts'
import { openCaller } from '../arena/callers.ts'
import { runCrowd, seeded } from '../arena/crowd.ts'
import { fake } from '../fake-downstream.ts'
import type { FakeKind } from '../fake-downstream.ts'
import { modernHttp } from '../fake-host.ts'
import type { Turn } from '../fakes/turn.ts'
import { startGateway } from '../gateway.ts'
import { isAlive } from '../pids.ts'
import { play, refereed } from '../refereed.ts'
import { Referee } from '../referee.ts'
import type { End } from '../referee.ts'

/** What came of it; `odd`: whatever should not have happened, in words. */
export interface Rounds {
  readonly rounds: number
  readonly calls: number
  readonly odd: readonly string[]
}

const PENDING = 100
const EXITED = JSON.stringify({ type: 'failed', kind: 'exited', executed: 'unknown' })

/** F-01: a server is killed with a hundred calls pending, again and again, while a call of another one goes on. */
export const crashRounds = async (kind: FakeKind, rounds: number): Promise<Rounds> => {
  const referee = new Referee()
  const odd: string[] = []
  const release = Promise.withResolvers<undefined>()
  await using gateway = await startGateway({
    servers: {
      a: fake.of({ kind, tools: ['t'], on: { 'tools/call': refereed(referee, fake.never) } }),
      b: fake.of({ kind: 'modern http', tools: ['t'], on: { 'tools/call': refereed(referee, () => release.promise) } }),
    },
  })
  await using host = await modernHttp.connect(gateway)
  const a = gateway.fake('a')
  const beside = play(host, referee, 'b__t')
  for (let round = 0; round < rounds; round++) {
    a.on('tools/call', refereed(referee, fake.never))
    a.forget()
    const ends = Array.from({ length: PENDING }, () => play(host, referee, 'a__t'))
    const { connection } = await a.journal.when(() =>
      a.all('tools/call').length === PENDING ? a.all('tools/call')[PENDING - 1] : undefined,
    )
    process.kill(connection.pid ?? 0, 'SIGKILL')
    for (const end of await Promise.all(ends))
      if (JSON.stringify(end) !== EXITED) odd.push(`round ${round}: ${JSON.stringify(end)}`)
    a.on('tools/call', refereed(referee))
    const next = await play(host, referee, 'a__t')
    if (next.type !== 'answered') odd.push(`round ${round}, the next call: ${JSON.stringify(next)}`)
  }
  release.resolve(undefined)
  const other = await beside
  if (other.type !== 'answered') odd.push(`beside: ${JSON.stringify(other)}`)
  return { rounds, calls: referee.calls, odd: [...odd, ...referee.findings] }
}

/** F-09: a server exits after each third answer; none that it gave may be lost, and the next call waits for the next process. */
export const exitRounds = async (kind: FakeKind, calls: number): Promise<Rounds> => {
  const referee = new Referee()
  const odd: string[] = []
  await using gateway = await startGateway({ servers: { a: fake.of({ kind, tools: ['t'] }) }, options: { a: { spare: 1 } } })
  await using host = await modernHttp.connect(gateway)
  const gone = new Set<unknown>()
  let answers = 0
  const third = (turn: Turn): Promise<undefined> => {
    // What still reaches a process on its way out is not answered.
    if (gone.has(turn.connection)) return fake.never()
    turn.answer({ content: [{ type: 'text', text: String((turn.params['arguments'] as { nonce: number }).nonce) }] })
    if (++answers % 3 === 0) {
      gone.add(turn.connection)
      turn.connection.drop()
    }
    return fake.never()
  }
  gateway.fake('a').on('tools/call', refereed(referee, third))
  const isExit = (end: End): boolean => end.type === 'failed' && /exited|lost/.test(end.kind)
  for (let at = 0; at < calls; at++) {
    const end = await play(host, referee, 'a__t')
    // Whoever comes between the answer and the exit may be told that it exited; nobody waits in vain.
    if (end.type !== 'answered' && !isExit(end)) odd.push(JSON.stringify(end))
    if (at % 300 === 0) gateway.fake('a').forget()
  }
  if (referee.verdict.answered !== answers) odd.push(`${answers} answers were given, ${referee.verdict.answered} arrived`)
  return { rounds: gone.size, calls, odd: [...odd, ...referee.findings] }
}

/** F-23: the gateway is killed at random moments under load: none of its processes is left, and the next one serves everything. */
export const killRounds = async (moments: number, seed: number, onMoment?: (moment: number) => void): Promise<Rounds> => {
  await using arena = await openArena({ perKind: 1, isFaulty: true })
  const random = seeded(seed)
  const odd: string[] = []
  let isOver = false
  const crowd = runCrowd(arena, { hosts: 6, lanes: 2, random: seeded(seed + 1), callsPerSession: 200, isOver: () => isOver })
  for (let moment = 1; moment <= moments; moment++) {
    onMoment?.(moment)
    await new Promise((resolve) => setTimeout(resolve, random() * 300))
    const children = arena.children()
    await arena.replace('SIGKILL')
    for (const key of await unanswered(arena)) odd.push(`moment ${moment}: ${key} does not answer`)
    const left = children.filter(isAlive)
    if (left.length > 0) odd.push(`moment ${moment}: ${left.length} processes left`)
    arena.tidy()
  }
  isOver = true
  await crowd
  await arena.referee.settled(30_000)
  return { rounds: moments, calls: arena.referee.calls, odd: [...odd, ...arena.referee.findings] }
}

const TRIES = 20

/** Keys of servers that answer none of so many calls. */
const unanswered = async ({ direct, referee, seats }: Arena): Promise<string[]> => {
  const caller = await openCaller('modern', direct, 1)
  const silent: string[] = []
  for (const { key } of seats) {
    let isAnswered = false
    for (let attempt = 0; attempt < TRIES && !isAnswered; attempt++) {
      const nonce = referee.begin()
      const ends = await caller.call(0, `${key}__echo`, { nonce })
      for (const end of ends) referee.ended(nonce, end)
      isAnswered = ends[0]?.type === 'answered'
    }
    if (!isAnswered) silent.push(key)
  }
  await caller.leave(true)
  return silent
}
