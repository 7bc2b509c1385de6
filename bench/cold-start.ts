/** Cold start: the time from the spawn of a process to its first answer (that of a handshake), and its memory then. */
import type { Deadline } from './budget.ts'
import { processTree, residentMiB } from './cpu.ts'
import { type Effort, figure, type Figure, rotate } from './figures.ts'
import { openHost } from './load.ts'
import type { HostKind } from './payload.ts'
import { start } from './process.ts'
import type { Stage } from './field.ts'
import type { Place, Subject } from './subjects.ts'

const SECTION = 'cold start'
const WAIT_MS = 2

interface Starter {
  readonly name: string
  readonly subject: Subject
  readonly host: HostKind
  readonly server: Place
}

/** Asks until somebody answers: an open port is not yet a server. */
const firstAnswer = async (reach: URL, host: HostKind, until: number): Promise<void> => {
  for (;;) {
    try {
      const opened = await openHost(reach, host)
      return await opened[Symbol.asyncDispose]()
    } catch (error) {
      if (performance.now() > until) throw error
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS))
    }
  }
}

interface Sample {
  readonly ms: number
  readonly resident: number
}

const measure = async (stage: Stage, { subject, host, server }: Starter): Promise<Sample> => {
  const command = await stage.command(subject, [server], false)
  const started = performance.now()
  await using process = await start(command)
  const at = new URL(host === 'http-sse' ? (subject.ssePath ?? '/sse') : '/mcp', process.reach as URL)
  await firstAnswer(at, host, started + 30_000)
  const ms = performance.now() - started
  return { ms, resident: residentMiB(processTree(process.pid)) }
}

export const coldStarts = async (
  stage: Stage,
  subjects: readonly Subject[],
  effort: Effort,
  deadline: Deadline,
): Promise<readonly Figure[]> => {
  const [http, pipe] = [await stage.server('legacy'), await stage.server('stdio')]
  const hanging: Place = { ...pipe, command: [...pipe.command, 'hang'] }
  const starters = subjects.flatMap((subject): readonly Starter[] => {
    const { name, between } = subject
    const pair = between.find(([host, server]) => host !== 'modern' && host !== 'stdio' && /^(legacy|stdio)$/.test(server))
    if (pair === undefined || /^(direct|raw-json|trunkline-(jwt|rules|errors|all))$/.test(name)) return []
    const starter = { name, subject, host: pair[0], server: pair[1] === 'stdio' ? pipe : http }
    return name === 'trunkline' ? [starter, { ...starter, name: 'trunkline, its server hangs', server: hanging }] : [starter]
  })
  const found = await rotate(
    { rounds: effort.rounds, warmUp: Math.min(1, effort.warmUp) },
    starters,
    (one) => measure(stage, one),
    (one, error) => stage.lose(`${one.name}, cold start`, error),
    deadline,
  )
  const raw = starters.find(({ name }) => name === 'raw')
  const base = raw && found.get(raw)
  return [...found].flatMap(([one, samples]) => {
    const of = (what: string, unit: 'ms' | 'MiB', field: keyof Sample) => {
      const pick = (all: readonly Sample[]) => all.map((sample) => sample[field])
      return figure(SECTION, one.name, what, unit, pick(samples), base && pick(base))
    }
    return [of('to the first answer', 'ms', 'ms'), of('resident after the first answer', 'MiB', 'resident')]
  })
}
