/**
 * What a list that changes costs: a gateway before 1 and before many servers of 50 tools, and before one of 5,000; one server changes its
 * list ten times a second, beside the same with nothing changing. All are watched in the same stretch of time; each has a host that is told
 * of changes.
 */
import { type Deadline, isOver } from './budget.ts'
import { cpuMicros, processTree } from './cpu.ts'
import { openHostOf, type Stage } from './field.ts'
import { type Effort, figure, type Figure } from './figures.ts'
import { awaitTools, TOOLS_EACH } from './lists.ts'
import type { Host } from './load.ts'
import type { Place, Subject } from './subjects.ts'

const SECTION = 'lists that change'
/** Changes that come close to each other are taken in together, each within a second or so. */
const WINDOW_MS = 2_000

/** Tools of a server whose list is long. */
const LONG_LIST = 5_000

interface Watched {
  readonly count: number
  /** Of the server that changes. */
  readonly tools: number
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

const enter = async (
  stage: Stage,
  trunkline: Subject,
  small: Place,
  { count, tools, isChanging }: Pick<Watched, 'count' | 'tools' | 'isChanging'>,
): Promise<Watched> => {
  const pipe = await stage.server('stdio')
  const first: Place = { ...pipe, command: [...pipe.command, isChanging ? 'change' : 'healthy', `${tools}`] }
  const others = Array.from({ length: count - 1 }, () => small)
  const { pid, reach } = await stage.start(trunkline, [first, ...others])
  const host = stage.stack.use(await openHostOf(trunkline, reach, 'legacy'))
  await awaitTools(host, tools + (count - 1) * TOOLS_EACH)
  return { count, tools, isChanging, host, pid }
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
    cpu: (after[at]! - before[at]!) / seconds,
    reads: (readsAfter[at]! - readsBefore[at]!) / seconds,
  }))
}

export const changes = async (
  stage: Stage,
  subjects: readonly Subject[],
  effort: Effort,
  deadline: Deadline,
): Promise<readonly Figure[]> => {
  const trunkline = subjects.find(({ name }) => name === 'trunkline')
  if (trunkline === undefined) return []
  const small = await stage.server('legacy', TOOLS_EACH)
  const cases = [
    { count: 1, tools: TOOLS_EACH },
    { count: Math.max(...effort.servers), tools: TOOLS_EACH },
    ...(effort.warmUp === 0 ? [] : [{ count: 1, tools: LONG_LIST }]),
  ]
  const all: Watched[] = []
  for (const one of cases)
    for (const isChanging of [false, true]) all.push(await enter(stage, trunkline, small, { ...one, isChanging }))

  const samples: (readonly Sample[])[] = []
  const started = performance.now()
  for (let round = 0; round < effort.rounds; round++) {
    if (isOver(deadline, round, (performance.now() - started) / round)) break
    samples.push(await watch(all))
  }
  const of = ({ count, tools }: (typeof cases)[number], isChanging: boolean): readonly Sample[] => {
    const at = all.findIndex((one) => one.count === count && one.tools === tools && one.isChanging === isChanging)
    return samples.map((found) => found[at]!)
  }
  /** What changes cost beyond the same gateway without them, by change that was taken in. */
  const extra = (one: (typeof cases)[number]): readonly number[] =>
    of(one, true).map(({ cpu, reads }, round) => (cpu - of(one, false)[round]!.cpu) / reads)
  return cases.flatMap((one) => {
    const own = (what: string, values: readonly number[], base?: readonly number[]) =>
      figure(SECTION, trunkline.name, `${what}, ${one.count} × ${one.tools}`, 'µs', values, base)
    const perSecond = (isChanging: boolean) => of(one, isChanging).map(({ cpu }) => cpu)
    return [
      own('CPU per second, nothing changes', perSecond(false)),
      own('CPU per second, one changes', perSecond(true)),
      own('CPU of a change', extra(one), extra(cases[0]!)),
    ]
  })
}
