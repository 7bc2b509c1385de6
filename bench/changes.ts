/**
 * What a list that changes costs: a gateway before 1 and before many servers of 50 tools, one of them changing its list ten times a second,
 * beside the same with nothing changing. All are watched in the same stretch of time; each has a host that is told of changes.
 */
import { cpuMicros, processTree } from './cpu.ts'
import { openHostOf, type Stage } from './field.ts'
import { type Effort, figure, type Figure } from './figures.ts'
import { awaitTools, TOOLS_EACH } from './lists.ts'
import type { Host } from './load.ts'
import type { Place, Subject } from './subjects.ts'

const SECTION = 'lists that change'
/** Changes that come close to each other are taken in together, each within a second or so. */
const WINDOW_MS = 2_000

interface Watched {
  readonly count: number
  readonly isChanging: boolean
  readonly host: Host
  readonly pid: number
}

/** In one stretch of time. */
interface Sample {
  /** CPU per second, µs. */
  readonly cpu: number
  /** How often per second the list that changes was read. */
  readonly reads: number
}

const enter = async (stage: Stage, trunkline: Subject, small: Place, count: number, isChanging: boolean): Promise<Watched> => {
  const pipe = await stage.server('stdio')
  const first: Place = { ...pipe, command: [...pipe.command, isChanging ? 'change' : 'healthy', `${TOOLS_EACH}`] }
  const others = Array.from({ length: count - 1 }, () => small)
  const { pid, reach } = await stage.start(trunkline, [first, ...others])
  const host = stage.stack.use(await openHostOf(trunkline, reach, 'legacy'))
  await awaitTools(host, count * TOOLS_EACH)
  return { count, isChanging, host, pid }
}

/** How often the list that changes was read so far, as it says itself. */
const readsOf = async ({ host }: Watched): Promise<number> => {
  const { tools } = (await host.request('tools/list')) as { tools: readonly { readonly description: string }[] }
  return Math.max(...tools.map(({ description }) => Number(/read (\d+) times/.exec(description)?.[1] ?? 0)))
}

const watch = async (all: readonly Watched[]): Promise<readonly Sample[]> => {
  const cpu = () => all.map(({ pid }) => cpuMicros(processTree(pid)))
  const readsBefore = await Promise.all(all.map(readsOf))
  const [before, started] = [cpu(), performance.now()]
  await new Promise((resolve) => setTimeout(resolve, WINDOW_MS))
  const [after, seconds] = [cpu(), (performance.now() - started) / 1e3]
  const readsAfter = await Promise.all(all.map(readsOf))
  return all.map((_, at) => ({
    cpu: (after[at] - before[at]) / seconds,
    reads: (readsAfter[at] - readsBefore[at]) / seconds,
  }))
}

export const changes = async (stage: Stage, subjects: readonly Subject[], effort: Effort): Promise<readonly Figure[]> => {
  const trunkline = subjects.find(({ name }) => name === 'trunkline')
  if (trunkline === undefined) return []
  const small = await stage.server('legacy', TOOLS_EACH)
  const counts = [1, Math.max(...effort.servers)]
  const all: Watched[] = []
  for (const count of counts)
    for (const isChanging of [false, true]) all.push(await enter(stage, trunkline, small, count, isChanging))

  const samples: (readonly Sample[])[] = []
  for (let round = -effort.warmUp; round < effort.rounds; round++) {
    const found = await watch(all)
    if (round >= 0) samples.push(found)
  }
  const of = (count: number, isChanging: boolean): readonly Sample[] => {
    const at = all.findIndex((one) => one.count === count && one.isChanging === isChanging)
    return samples.map((found) => found[at])
  }
  /** What changes cost beyond the same gateway without them, by change that was taken in. */
  const extra = (count: number): readonly number[] =>
    of(count, true).map(({ cpu, reads }, round) => (cpu - of(count, false)[round].cpu) / reads)
  return counts.flatMap((count) => {
    const own = (what: string, values: readonly number[], base?: readonly number[]) =>
      figure(SECTION, trunkline.name, `${what}, ${count} × ${TOOLS_EACH}`, 'µs', values, base)
    const perSecond = (isChanging: boolean) => of(count, isChanging).map(({ cpu }) => cpu)
    return [
      own('CPU per second, nothing changes', perSecond(false)),
      own('CPU per second, one changes', perSecond(true)),
      own('CPU of a change', extra(count), extra(1)),
    ]
  })
}
