/** CPU and memory of a process tree from the kernel's accounting: exact to the nanosecond, for all threads. Linux only. */
import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'

const read = (path: string): string => {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return '' // ended meanwhile
  }
}

const threads = (pid: number): readonly string[] => {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

const children = (pid: number): readonly number[] =>
  threads(pid).flatMap((thread) => read(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number))

const isFakeServer = (pid: number): boolean => read(`/proc/${pid}/cmdline`).includes('bench/stdio-server')

/** `pid` and everything below it that lives, except the bench's own servers on pipes: what they use is not the subject's. */
export const processTree = (pid: number): readonly number[] => [
  pid,
  ...children(pid)
    .filter((child) => !isFakeServer(child))
    .flatMap(processTree),
]

/** User and system time so far of the processes, in µs; what ended threads used is not in it. */
export const cpuMicros = (pids: readonly number[]): number =>
  pids.reduce(
    (sum, pid) =>
      threads(pid).reduce((sum, thread) => sum + Number.parseInt(read(`/proc/${pid}/task/${thread}/schedstat`) || '0', 10), sum),
    0,
  ) / 1e3

/** Resident set now of each process, summed, in MiB. */
export const residentMiB = (pids: readonly number[]): number =>
  pids.reduce((sum, pid) => sum + Number(/VmRSS:\s+(\d+)/.exec(read(`/proc/${pid}/status`))?.[1] ?? 0), 0) / 1024

/** Largest resident set so far of each process, summed, in MiB. */
export const peakMiB = (pids: readonly number[]): number =>
  pids.reduce((sum, pid) => sum + Number(/VmHWM:\s+(\d+)/.exec(read(`/proc/${pid}/status`))?.[1] ?? 0), 0) / 1024

/** Ticks of `/proc` a second; so it is on every Linux of today. */
const TICKS = 100

/** User and system time of a process and of its children that have ended, s. */
const secondsOf = (pid: number): number => {
  const fields = read(`/proc/${pid}/stat`)
    .replace(/^.*\) /, '')
    .split(' ')
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS || 0
}

const descendants = (pid: number): readonly number[] => [pid, ...children(pid).flatMap(descendants)]

export interface MachineTime {
  readonly atMs: number
  /** CPU used by everything on the machine, what its host took away from it included; and by this process and all it has started. s */
  readonly all: number
  readonly own: number
  /** Pages that had been taken from programs which did not run, and were read again. */
  readonly refaults: number
}

export const machineTime = (): MachineTime => {
  const fields = (/^cpu +(.*)$/m.exec(read('/proc/stat'))?.[1] ?? '').split(' ').map(Number)
  // user, nice, system, idle, iowait, irq, softirq, steal
  const used = [0, 1, 2, 7].reduce((sum, at) => sum + (fields[at] ?? 0), 0)
  const own = descendants(process.pid).reduce((sum, pid) => sum + secondsOf(pid), 0)
  return { atMs: performance.now(), all: used / TICKS, own, refaults: refaults() }
}

const refaults = (): number =>
  [...read('/proc/vmstat').matchAll(/^workingset_refault_\w+ (\d+)$/gm)].reduce((sum, [, count]) => sum + Number(count), 0)

/** Cores that others used from `before` to `after`, on average. */
export const othersBetween = (before: MachineTime, after: MachineTime): number =>
  Math.max(0, after.all - before.all - (after.own - before.own)) / ((after.atMs - before.atMs) / 1e3)

/** Large enough for a millisecond or two. */
const HASHED = Buffer.alloc(2 * 2 ** 20)

/**
 * CPU time of always the same work, in ms: a hash, whose code is in the program itself, not made by the engine. It takes longer where a host of virtual
 * machines gives the core to others and says nothing of it.
 */
export const sameWorkMs = (): number => {
  const before = process.cpuUsage()
  hash('sha256', HASHED)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1e3
}
