/**
 * Which subjects run at the same time: few, before one kind of server, together with their baselines. With fifty processes, each
 * was cold whenever it was measured.
 */
import type { ServerKind } from './payload.ts'
import type { Between, Subject } from './subjects.ts'

/** One group of subjects. */
export interface Field {
  readonly name: string
  readonly subjects: readonly Subject[]
  /** Whether `subject` takes part between these; some are there for the ratio alone, and count in a field of their own. */
  readonly role: (subject: string, between: Between) => 'counted' | 'baseline' | undefined
  /** So many processes of a baseline as the others have most. */
  readonly copies: number
}

/** Processes of subjects that are alive at once. */
const MAX_PROCESSES = 8

/** What subjects before this kind of server are set against: its names, and the pairs in which it is. */
const BASELINES: Readonly<Record<ServerKind, readonly (readonly [subject: string, between: string])[]>> = {
  legacy: [['raw', 'legacy,legacy']],
  modern: [['raw', 'modern,modern']],
  'sse-reply': [['raw', 'legacy,sse-reply']],
  'http-sse': [['raw', 'http-sse,http-sse']],
  stdio: [
    ['lines', 'stdio,stdio'],
    ['raw', 'legacy,legacy'],
  ],
}

/** What is compared most stands in the first group, with what it is compared with. */
const FIRST = /^(raw|lines|trunkline)$/

/** `copies`: processes of the same that a subject has between these. */
export const fieldsOf = (
  subjects: readonly Subject[],
  isWanted: (between: Between) => boolean,
  copies: (subject: string, between: Between) => number,
): readonly Field[] => {
  const kinds = [...new Set(subjects.flatMap(({ between }) => between.filter(isWanted).map(([, kind]) => kind)))]
  return kinds.flatMap((kind) => {
    const isBaseline = (subject: string, between: Between) =>
      BASELINES[kind].some(([name, pair]) => name === subject && pair === between.join())
    /** Those of HTTP hosts share processes; a host with a pipe has its own. */
    const processes = ({ name, between }: Subject): number => {
      const own = between.filter((pair) => pair[1] === kind && isWanted(pair))
      const shared = Math.max(0, ...own.filter(([host]) => host !== 'stdio').map((pair) => copies(name, pair)))
      return own.reduce((sum, pair) => (pair[0] === 'stdio' ? sum + copies(name, pair) : sum), shared)
    }
    const groups: Subject[][] = []
    let room = 0
    const here = subjects.filter(({ between }) => between.some((pair) => pair[1] === kind && isWanted(pair)))
    const [first, rest] = [here.filter(({ name }) => FIRST.test(name)), here.filter(({ name }) => !FIRST.test(name))]
    for (const subject of [...first, ...rest]) {
      const needed = processes(subject)
      if (groups.length === 0 || needed > room) {
        groups.push([])
        room = MAX_PROCESSES
      }
      groups.at(-1)!.push(subject)
      room -= needed
    }
    return groups.map((group, at): Field => {
      const counted = new Set(group.map(({ name }) => name))
      const pairs = group.flatMap(({ name, between }) => between.map((pair) => [name, pair] as const))
      const beside = subjects.filter(
        ({ name, between }) => !counted.has(name) && between.some((pair) => isWanted(pair) && isBaseline(name, pair)),
      )
      return {
        name: `before ${kind}${groups.length === 1 ? '' : `, ${at + 1} of ${groups.length}`}`,
        subjects: [...beside, ...group],
        copies: Math.max(...pairs.filter(([, pair]) => pair[1] === kind && isWanted(pair)).map((one) => copies(...one))),
        role: (subject, between) => {
          if (!isWanted(between)) return undefined
          if (counted.has(subject) && between[1] === kind) return 'counted'
          return isBaseline(subject, between) ? 'baseline' : undefined
        },
      }
    })
  })
}
