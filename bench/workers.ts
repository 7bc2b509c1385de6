/**
 * What a second worker brings: calls with `listen.workers: 2` beside calls with one, whose CPU is in the gateway. Hosts and servers share the
 * machine's cores with it, so the call is one of which they do next to nothing: it carries some two hundred records, seventy rules of a policy
 * look at each of them. Hosts are of the modern era: calls of a legacy session pass through the worker where it lives.
 */
import type { Deadline } from './budget.ts'
import { cpuMicros, processTree, residentMiB } from './cpu.ts'
import { openHostOf, type Stage } from './field.ts'
import { type Effort, figure, type Figure, rotate } from './figures.ts'
import type { Host } from './load.ts'
import { TOOLS } from './payload.ts'
import { configuredTrunkline, type Subject } from './subjects.ts'

export const SECTION = 'workers'
/** Few enough that no turn of the event loop counts as overload. */
const IN_FLIGHT = 16
/** A call takes some milliseconds: a burst is long enough for hundreds. */
const BURST_MS = 3_000
const WORKERS = [1, 2] as const

const ofEach = (test: string): string => `call.arguments.?data.?items.orValue([]).exists(item, ${test})`

/** Teams that have names of their own, in two forms. */
const TEAMS =
  'audit bank board claims cloud data design dev europe events finance fleet helpdesk hiring legal mail mobile payroll pilot pricing print quality rent research risk sales shop store tax travel'.split(
    ' ',
  )

/** What may not be written, as it may be said of each record of a call. Nothing is denied here. */
const RULES_OF_RECORDS = [
  'item.?name.orValue("").matches("[^a-z0-9-]")',
  'item.?name.orValue("").matches("(secret|password|token)$")',
  'item.?name.orValue("").size() > 64',
  'item.?name.orValue("").startsWith("admin-") || item.?name.orValue("").startsWith("root-")',
  'item.?name.orValue("") in ["root", "admin", "system"]',
  'item.?id.orValue(0.0) < 0.0',
  'item.?score.orValue(0.0) > 1000.0',
  'item.?ok.orValue(true) == false && item.?score.orValue(0.0) > 900.0',
  'item.?owner.orValue(caller.principal) != caller.principal',
  'item.?id.orValue(0.0) > 1000000.0 && !item.?ok.orValue(false)',
  ...TEAMS.flatMap((team) => [
    `item.?name.orValue("").matches("^${team}-[a-z]+-[0-9]+$")`,
    `item.?name.orValue("").matches("-(of|for|by)-${team}$")`,
  ]),
].map((test) => ({ when: ofEach(test), decision: 'deny', reason: 'not here' }))

const subjectWith = (workers: number): Subject =>
  configuredTrunkline(`trunkline, ${workers} ${workers === 1 ? 'worker' : 'workers'}`, {
    listen: { workers },
    policy: { default: 'allow', rules: RULES_OF_RECORDS },
  })

interface Contestant {
  readonly name: string
  readonly pid: number
  readonly host: Host
  readonly tool: string
}

/** Of one burst. */
interface Sample {
  /** µs of time for each call that was answered. */
  readonly time: number
  /** µs of CPU of a call: of the gateway with all its processes; of the host and the server together. */
  readonly gateway: number
  readonly around: number
  readonly resident: number
}

const measure = async ({ pid, host, tool }: Contestant, server: number, forMs: number): Promise<Sample> => {
  const around = () => cpuMicros([process.pid, server])
  const aroundBefore = around()
  const ask = { tool, size: TOOLS.t100, carried: { tool: 't10k', kind: 'objects' } } as const
  const meter = () => cpuMicros(processTree(pid))
  const { latencies, used, seconds, bad, firstBad } = await host.burst({ ask, inFlight: IN_FLIGHT, forMs, meter })
  if (bad > 0) throw new Error(`${bad} bad replies\n${firstBad}`)
  const calls = latencies.length
  return {
    time: (1e6 * seconds) / calls,
    gateway: used / calls,
    around: (around() - aroundBefore) / calls,
    resident: residentMiB(processTree(pid)),
  }
}

export const workers = async (
  stage: Stage,
  subjects: readonly Subject[],
  effort: Effort,
  deadline: Deadline,
): Promise<readonly Figure[]> => {
  if (!subjects.some(({ name }) => name === 'trunkline')) return []
  const server = await stage.server('modern')
  const contestants: Contestant[] = []
  for (const count of WORKERS) {
    const subject = subjectWith(count)
    const { pid, reach } = await stage.start(subject, [server])
    const host = stage.stack.use(await openHostOf(subject, reach, 'modern'))
    contestants.push({ name: subject.name, pid, host, tool: `${subject.prefix}t100` })
  }
  const found = await rotate(
    effort,
    contestants,
    (one) => measure(one, server.pid, effort.warmUp === 0 ? effort.forMs : BURST_MS),
    (one, error) => stage.lose(one.name, error),
    deadline,
  )
  const [alone] = contestants
  const pick = (one: Contestant, field: keyof Sample) => (found.get(one) ?? []).map((sample) => sample[field])
  return [...found.keys()].flatMap((one) => {
    const of = (what: string, unit: 'µs' | 'MiB', field: keyof Sample, base: readonly number[] = pick(alone!, field)) =>
      figure(SECTION, one.name, what, unit, pick(one, field), base)
    return [
      of('time for each call', 'µs', 'time'),
      of('CPU of a call', 'µs', 'gateway'),
      of('CPU of a call, host and server', 'µs', 'around', pick(one, 'gateway')),
      of('resident', 'MiB', 'resident'),
    ]
  })
}
