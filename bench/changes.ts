/**
 * The cost of a list that changes: a gateway before 1 server and before many servers of 50 tools, and before one of 5,000. One server changes its
 * list ten times a second; the baseline is the same gateway without changes. All run in the same interval, each with a host that is notified of
 * changes.
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

/** In one window of time. */
interface Sample {
  readonly seconds: number
  /** CPU, µs. */
  readonly cpu: number
  /** How often the list that changes was read. */
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
    seconds,
    cpu: after[at]! - before[at]!,
    reads: readsAfter[at]! - readsBefore[at]!,
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
  /** What changes cost beyond the same gateway without them, by change that was taken in, in each stretch of rounds. */
  const extra = (one: (typeof cases)[number], stretches: readonly (readonly number[])[]): readonly number[] =>
    stretches.map((rounds) => {
      const sum = (isChanging: boolean, what: 'cpu' | 'reads') =>
        rounds.reduce((total, round) => total + of(one, isChanging)[round]![what], 0)
      return (sum(true, 'cpu') - sum(false, 'cpu')) / sum(true, 'reads')
    })
  return cases.flatMap((one) => {
    const own = (what: string, values: readonly number[], base?: readonly number[]) =>
      figure(SECTION, trunkline.name, `${what}, ${one.count} × ${one.tools}`, 'µs', values, base)
    const perSecond = (isChanging: boolean) => of(one, isChanging).map(({ cpu, seconds }) => cpu / seconds)
    const stretches = stretchesOf([of(cases[0]!, true), of(one, true)])
    return [
      own('CPU per second, nothing changes', perSecond(false)),
      own('CPU per second, one changes', perSecond(true)),
      ...(stretches.length === 0 ? [] : [own('CPU of a change', extra(one, stretches), extra(cases[0]!, stretches))]),
    ]
  })
}

/**
 * Rounds one after another that belong together, so that each of these lists was read in them: a list of megabytes rests longer after a reading
 * than a window lasts.
 */
const stretchesOf = (lists: readonly (readonly Sample[])[]): readonly (readonly number[])[] => {
  const stretches: number[][] = []
  let open: number[] = []
  for (const round of lists[0]!.keys()) {
    open.push(round)
    if (!lists.every((samples) => open.some((at) => samples[at]!.reads > 0))) continue
    stretches.push(open)
    open = []
  }
  return stretches
}
