/** Cold start: from the spawn of a process to its first answer, which is that of a handshake. */
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

const measure = async (stage: Stage, { subject, host, server }: Starter): Promise<number> => {
  const command = await stage.command(subject, [server], false)
  const started = performance.now()
  await using process = await start(command)
  const at = new URL(host === 'http-sse' ? (subject.ssePath ?? '/sse') : '/mcp', process.reach as URL)
  await firstAnswer(at, host, started + 30_000)
  return performance.now() - started
}

export const coldStarts = async (stage: Stage, subjects: readonly Subject[], effort: Effort): Promise<readonly Figure[]> => {
  const [http, pipe] = [await stage.server('legacy'), await stage.server('stdio')]
  const hanging: Place = { ...pipe, command: [...pipe.command, 'hang'] }
  const starters = subjects.flatMap((subject): readonly Starter[] => {
    const { name, between } = subject
    const pair = between.find(([host, server]) => host !== 'modern' && host !== 'stdio' && /^(legacy|stdio)$/.test(server))
    if (pair === undefined || /^(direct|raw-json|trunkline-(jwt|errors|all))$/.test(name)) return []
    const starter = { name, subject, host: pair[0], server: pair[1] === 'stdio' ? pipe : http }
    return name === 'trunkline' ? [starter, { ...starter, name: 'trunkline, its server hangs', server: hanging }] : [starter]
  })
  const found = await rotate(
    { rounds: effort.rounds, warmUp: Math.min(1, effort.warmUp) },
    starters,
    (one) => measure(stage, one),
    (one, error) => stage.lose(`${one.name}, cold start`, error),
  )
  const raw = starters.find(({ name }) => name === 'raw')
  return [...found].map(([one, times]) => figure(SECTION, one.name, 'to the first answer', 'ms', times, raw && found.get(raw)))
}
