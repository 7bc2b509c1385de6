/**
 * Takes profiles of the gateway's call path; `npm run profile` writes each as a flame graph (SVG), as folded stacks and as a
 * `.cpuprofile` for DevTools.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { numberOf, parseOptions, runProgram, UsageError } from './command-line.ts'
import { openHostOf, openStage, type Stage } from './field.ts'
import { flameGraph } from './flame-graph.ts'
import { type CpuProfile, openInspector } from './inspector.ts'
import { TOOLS, textSize, type HostKind, type ServerKind, toolOf, type ToolName } from './payload.ts'
import { PAYLOAD_KINDS, type PayloadKind } from './payload-kinds.ts'
import { breakdown, folded, type Breakdown } from './profile.ts'
import { SUBJECTS, type Subject } from './subjects.ts'

export interface Walk {
  readonly host: HostKind
  readonly server: ServerKind
  readonly tool: ToolName
  readonly kind: PayloadKind
  /** The payload is what the call carries, and its result is of 100 B. */
  readonly isArguments?: boolean
}

/** What is profiled. */
export const WALKS: readonly Walk[] = [
  { host: 'legacy', server: 'legacy', tool: 't100', kind: 'prose' },
  { host: 'modern', server: 'stdio', tool: 't100', kind: 'prose' },
  { host: 'legacy', server: 'legacy', tool: 't10k', kind: 'dense' },
  { host: 'legacy', server: 'legacy', tool: 't1m', kind: 'prose' },
]

const nameOf = ({ host, server, tool, kind, isArguments = false }: Walk): string =>
  `${host} → ${server}, ${{ t100: '100 B', t10k: '10 KB', t1m: '1 MB' }[tool]}${kind === 'prose' ? '' : ` ${kind}`}${isArguments ? ' as arguments' : ''}`

const HOSTS: readonly HostKind[] = ['legacy', 'modern', 'http-sse', 'stdio']
const SERVERS: readonly ServerKind[] = [...HOSTS, 'sse-reply']

/** `stdio,stdio,t10k,dense`: host, server, size, kind; then `arguments`, if the call carries it. */
const walkOf = (text: string): Walk => {
  const [host, server, tool, kind = 'prose', as, ...more] = text.split(',')
  const found = {
    host: HOSTS.find((name) => name === host),
    server: SERVERS.find((name) => name === server),
    tool: (Object.keys(TOOLS) as ToolName[]).find((name) => name === tool),
    kind: PAYLOAD_KINDS.find((name) => name === kind),
  }
  if (more.length > 0 || (as ?? 'arguments') !== 'arguments' || Object.values(found).includes(undefined))
    throw new UsageError(
      `--walk: expected HOST,SERVER,SIZE,KIND[,arguments] of ${HOSTS.join('|')}; ${SERVERS.join('|')}; ${Object.keys(TOOLS).join('|')}; ${PAYLOAD_KINDS.join('|')}; got ${text}`,
    )
  return { ...(found as Walk), isArguments: as !== undefined }
}

export interface Taken extends Breakdown {
  readonly name: string
}

const takeOne = async (
  stage: Stage,
  trunkline: Subject,
  { host: hostKind, server, tool, kind, isArguments = false }: Walk,
  forMs: number,
): Promise<CpuProfile> => {
  // From its sources: in the bundle that is measured elsewhere nothing tells which room a function is of.
  const unbundled: Subject = { ...trunkline, command: (context) => trunkline.command({ ...context, main: 'src/main.ts' }) }
  const started = await stage.start(unbundled, [await stage.server(server)], hostKind === 'stdio', ['--inspect=127.0.0.1:0'])
  const host = stage.stack.use(await openHostOf(trunkline, started.reach, hostKind))
  const ask = isArguments
    ? { tool: `${trunkline.prefix}t100`, size: TOOLS.t100, carried: { tool, kind } }
    : { tool: trunkline.prefix + toolOf(tool, kind), size: textSize(tool, kind) }
  const burst = (ms: number) => host.burst({ ask, inFlight: 32, forMs: ms, meter: () => 0 })
  await burst(forMs) // so that code is compiled
  const inspector = stage.stack.use(await openInspector(started.inspector!))
  return inspector.profile(async () => {
    const { bad } = await burst(forMs)
    if (bad > 0) throw new Error(`${bad} bad replies under the profiler`)
  })
}

/** Profiles each walk for so long; `onProfile` hears the whole of it. */
export const takeProfiles = async (
  stage: Stage,
  walks: readonly Walk[],
  forMs: number,
  onProfile: (name: string, profile: CpuProfile) => Promise<void> = async () => {},
): Promise<readonly Taken[]> => {
  const trunkline = SUBJECTS.find(({ name }) => name === 'trunkline')!
  const taken: Taken[] = []
  for (const walk of walks) {
    const name = nameOf(walk)
    const profile = await stage.section((inner) => takeOne(inner, trunkline, walk, forMs))
    await onProfile(name, profile)
    taken.push({ name, ...breakdown(profile) })
  }
  return taken
}

const USAGE = `npm run profile -- [--out DIR] [--seconds N] [--walk HOST,SERVER,SIZE,KIND[,arguments]]
  Profiles the gateway under calls: ${WALKS.map(nameOf).join('; ')}.
  --out        where each goes as .svg (flame graph), .folded (stacks) and .cpuprofile (DevTools); .profile by default
  --seconds    how long each is watched, after as long to warm up; 5 by default
  --walk       this one alone, such as stdio,stdio,t10k,dense`

const run = async (): Promise<boolean> => {
  const { out, seconds, walk } = parseOptions(process.argv.slice(2), {
    out: { type: 'string', default: '.profile' },
    seconds: { type: 'string', default: '5' },
    walk: { type: 'string' },
  })
  const forMs = numberOf('--seconds', seconds, true) * 1e3
  const walks = walk === undefined ? WALKS : [walkOf(walk)]
  await mkdir(out, { recursive: true })
  await using stage = await openStage()
  const taken = await takeProfiles(stage, walks, forMs, async (name, profile) => {
    const file = join(out, name.replaceAll(/[^\w]+/g, '-'))
    const stacks = folded(profile)
    await writeFile(`${file}.cpuprofile`, JSON.stringify(profile))
    await writeFile(`${file}.folded`, [...stacks].map(([stack, time]) => `${stack} ${Math.round(time)}\n`).join(''))
    await writeFile(`${file}.svg`, flameGraph(stacks, `tools/call, ${name}, 32 in flight: time on the CPU`))
    process.stdout.write(`${file}.svg, .folded, .cpuprofile\n`)
  })
  for (const { name, groups, functions } of taken) {
    const lines = [...groups, ...functions].map(({ name, share }) => `${(100 * share).toFixed(1).padStart(6)} %  ${name}`)
    process.stdout.write(`\n${name}\n${lines.join('\n')}\n`)
  }
  return true
}

if (import.meta.main) await runProgram(USAGE, run)
