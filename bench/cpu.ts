/** CPU and memory of a process tree by the kernel's own accounting: exact to the nanosecond, for all threads. Linux only. */
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
