/**
 * The gain of a second worker: calls with `listen.workers: 2` compared with one. Hosts and servers share the
 * cores of the machine, so the CPU of the call must be in the gateway: it carries about two hundred records, and seventy rules of a policy
 * read each of them. Hosts are modern, because calls of a legacy session pass through the worker of the session. For comparison, two gateways of
 * one worker each, which share nothing, show what the cores can give.
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
/** What two cores of this machine give where nothing is shared: the bound of what workers can reach. */
const APART = 'trunkline, two processes'

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

/** One gateway of the contestant: its process, and the host before it. */
interface Gateway {
  readonly pid: number
  readonly host: Host
}

interface Contestant {
  readonly name: string
  /** They share its calls. */
  readonly gateways: readonly Gateway[]
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

const measure = async ({ gateways, tool }: Contestant, server: number, forMs: number): Promise<Sample> => {
  const around = () => cpuMicros([process.pid, server])
  const aroundBefore = around()
  const ask = { tool, size: TOOLS.t100, carried: { tool: 't10k', kind: 'objects' } } as const
  const bursts = await Promise.all(
    gateways.map(({ pid, host }) =>
      host.burst({ ask, inFlight: IN_FLIGHT / gateways.length, forMs, meter: () => cpuMicros(processTree(pid)) }),
    ),
  )
  const failed = bursts.find(({ bad }) => bad > 0)
  if (failed !== undefined) throw new Error(`${failed.bad} bad replies\n${failed.firstBad}`)
  const sum = (of: (burst: (typeof bursts)[number]) => number) => bursts.reduce((total, burst) => total + of(burst), 0)
  const calls = sum(({ latencies }) => latencies.length)
  return {
    time: (1e6 * Math.max(...bursts.map(({ seconds }) => seconds))) / calls,
    gateway: sum(({ used }) => used) / calls,
    around: (around() - aroundBefore) / calls,
    resident: residentMiB(gateways.flatMap(({ pid }) => processTree(pid))),
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
  const open = async (subject: Subject): Promise<Gateway> => {
    const { pid, reach } = await stage.start(subject, [server])
    return { pid, host: stage.stack.use(await openHostOf(subject, reach, 'modern')) }
  }
  const one = subjectWith(1)
  const two = subjectWith(2)
  const tool = `${one.prefix}t100`
  const first = await open(one)
  contestants.push({ name: one.name, gateways: [first], tool })
  contestants.push({ name: two.name, gateways: [await open(two)], tool })
  contestants.push({ name: APART, gateways: [first, await open(one)], tool })
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
