/** A CPU profile of the gateway under load: the time per module and per function. */
import type { CpuProfile, ProfileNode } from './inspector.ts'

/** Share of the time in which the process did something, 0..1. */
export interface Share {
  readonly name: string
  readonly share: number
}

export interface Breakdown {
  /** Milliseconds in which the process did something, and in which it was watched. */
  readonly busyMs: number
  readonly watchedMs: number
  readonly groups: readonly Share[]
  /** Functions in which most time is spent, their own only. */
  readonly functions: readonly Share[]
}

const TOP = 25

const isIdle = ({ callFrame }: ProfileNode): boolean => callFrame.functionName === '(idle)'

/** `wire/json/scan.ts` of ours, `node:net`, the name of a package. */
const placeOf = (url: string): string => {
  const own = /\/(?:src|dist)\/(.+)$/.exec(url)?.[1]
  return url.includes('/node_modules/') ? url.replace(/.*\/node_modules\/((?:@[^/]+\/)?[^/]+).*/, '$1') : (own ?? url)
}

const GROUPS: Readonly<Record<string, string>> = {
  '(program)': 'system calls and native code',
  '(garbage collector)': 'garbage collection',
}

const groupOf = ({ callFrame: { functionName, url } }: ProfileNode): string => {
  if (url === '') return GROUPS[functionName] ?? 'built-in functions'
  if (url.startsWith('node:')) return 'Node: sockets, HTTP, streams'
  const place = placeOf(url)
  if (url.includes('/node_modules/')) return place
  return place.includes('/') ? `\`${place.split('/')[0]}/\`` : `\`${place}\``
}

export const labelOf = ({ callFrame: { functionName, url, lineNumber } }: ProfileNode): string => {
  const name = functionName === '' ? '(anonymous)' : functionName
  return url === '' ? name : `${name} ${placeOf(url)}:${lineNumber + 1}`
}

/** Own time of every node, µs. */
const ownTimes = ({ samples, timeDeltas }: CpuProfile): ReadonlyMap<number, number> => {
  const own = new Map<number, number>()
  samples.forEach((id, index) => own.set(id, (own.get(id) ?? 0) + Math.max(0, timeDeltas[index]!)))
  return own
}

const shares = (times: ReadonlyMap<string, number>, whole: number): readonly Share[] =>
  [...times].map(([name, time]) => ({ name, share: time / whole })).sort((one, other) => other.share - one.share)

export const breakdown = (profile: CpuProfile): Breakdown => {
  const own = ownTimes(profile)
  const busy = profile.nodes.filter((node) => !isIdle(node))
  const groups = new Map<string, number>()
  const functions = new Map<string, number>()
  let total = 0
  for (const node of busy) {
    const time = own.get(node.id) ?? 0
    total += time
    groups.set(groupOf(node), (groups.get(groupOf(node)) ?? 0) + time)
    if (node.callFrame.url !== '') functions.set(labelOf(node), (functions.get(labelOf(node)) ?? 0) + time)
  }
  return {
    busyMs: total / 1e3,
    watchedMs: (profile.endTime - profile.startTime) / 1e3,
    groups: shares(groups, total),
    functions: shares(functions, total).slice(0, TOP),
  }
}

/** One line per stack: frames from the bottom with `;` between them, then µs. */
export const folded = (profile: CpuProfile): ReadonlyMap<string, number> => {
  const own = ownTimes(profile)
  const byId = new Map(profile.nodes.map((node) => [node.id, node]))
  const lines = new Map<string, number>()
  const walk = (node: ProfileNode, above: string) => {
    const stack = above === '' ? labelOf(node) : `${above};${labelOf(node)}`
    const time = own.get(node.id) ?? 0
    if (time > 0 && !isIdle(node)) lines.set(stack, (lines.get(stack) ?? 0) + time)
    for (const id of node.children ?? []) walk(byId.get(id)!, stack)
  }
  for (const id of profile.nodes[0]?.children ?? []) walk(byId.get(id)!, '')
  return lines
}
