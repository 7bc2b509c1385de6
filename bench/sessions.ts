/** The memory of sessions, per thousand. `growth.ts` measures the cost of calls beside them. */
import { processTree, residentMiB } from './cpu.ts'
import { openHostOf, type Stage } from './field.ts'
import { type Effort, figure, type Figure } from './figures.ts'
import { openInspector } from './inspector.ts'
import { type Host, openHost } from './load.ts'
import type { Started } from './process.ts'
import type { Between, Place, Subject } from './subjects.ts'

const SECTION = 'sessions'
const STEPS = 3
/** Peers take so long to open one that they get a tenth of the sessions; what is told is of a thousand. */
const OF_PEERS = 10
const AT_ONCE = 16
const MIB = 1024 * 1024

type Open = () => Promise<Host>

export const openMany = async (count: number, open: Open): Promise<readonly Host[]> => {
  const hosts: Host[] = []
  while (hosts.length < count) {
    const some = Math.min(AT_ONCE, count - hosts.length)
    hosts.push(...(await Promise.all(Array.from({ length: some }, open))))
  }
  return hosts
}

/** Opens hosts of `subject` at what was started; `used`: each makes a call, so that the gateway has a connection of its own for it. */
export const opener = (subject: Subject, { reach }: Pick<Started, 'reach'>, [kind]: Between, used: boolean): Open => {
  const at = new URL(kind === 'http-sse' ? (subject.ssePath ?? '/sse') : '/mcp', reach as URL)
  return async () => {
    const host = await openHost(at, kind)
    if (used) await host.request('tools/call', { name: `${subject.prefix}t100`, arguments: { nonce: '000000000000' } })
    return host
  }
}

/** Memory of the process tree and of the heap, per thousand sessions, in steps; after full collections. */
const memory = async (stage: Stage, subject: Subject, server: Place, between: Between, used: boolean, perStep: number) => {
  await using started = await stage.start(subject, [server], false, ['--inspect=127.0.0.1:0'])
  await using first = await openHostOf(subject, started.reach, between[0])
  await using inspector = await openInspector(started.inspector!)
  const open = opener(subject, started, between, used)
  await first.request('tools/list')
  const end = (hosts: readonly Host[]) => Promise.all(hosts.map((host) => host[Symbol.asyncDispose]()))
  await end(await openMany(perStep, open)) // code is compiled, pools are filled
  const read = async () => {
    const heap = (await inspector.collect()) / MIB
    return { heap, resident: residentMiB(processTree(started.pid)) }
  }
  const opened: Host[] = []
  const reads = [await read()]
  for (let step = 0; step < STEPS; step++) {
    opened.push(...(await openMany(perStep, open)))
    reads.push(await read())
  }
  await end(opened)
  const slope = (field: 'heap' | 'resident') =>
    reads.slice(1).map((after, step) => ((after[field] - reads[step]![field]) * 1000) / perStep)
  return { heap: slope('heap'), resident: slope('resident') }
}

export const sessions = async (stage: Stage, subjects: readonly Subject[], effort: Effort): Promise<readonly Figure[]> => {
  const server = await stage.server('legacy')
  const figures: Figure[] = []
  for (const subject of subjects.filter(({ name }) => /^(trunkline|sdk-proxy|mcp-hub)$/.test(name))) {
    const between = subject.between.find(([host, behind]) => behind === 'legacy' && /^(legacy|http-sse)$/.test(host))!
    await stage.attempt(`${subject.name}, memory of sessions`, async () => {
      for (const used of [false, true]) {
        const perStep = subject.name === 'trunkline' ? effort.sessions : Math.ceil(effort.sessions / OF_PEERS)
        const { heap, resident } = await memory(stage, subject, server, between, used, perStep)
        const kind = used ? 'that made a call' : 'idle'
        figures.push(figure(SECTION, subject.name, `1,000 ${kind}, resident`, 'MiB', resident))
        figures.push(figure(SECTION, subject.name, `1,000 ${kind}, heap`, 'MiB', heap))
      }
    })
  }
  return figures
}
