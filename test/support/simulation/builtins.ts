/**
 * Puts simulated time, network, processes and disk in the place of Node's own modules, for this whole process: `src/` and the fakes are not told.
 * What Node's HTTP does over sockets is Node's; only its sockets are ours.
 */
import childProcess from 'node:child_process'
import crypto from 'node:crypto'
import fs from 'node:fs'
import promises from 'node:fs/promises'
import http from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import timers from 'node:timers/promises'
import v8 from 'node:v8'
import { SimulatedClock } from './clock.ts'
import { SimulatedNetwork } from './network.ts'
import type { ConnectOptions } from './network.ts'
import { SimulatedProcesses } from './processes.ts'
import { Random } from './random.ts'

/** What a simulation runs in. */
export interface Machine {
  readonly clock: SimulatedClock
  readonly network: SimulatedNetwork
  readonly processes: SimulatedProcesses
  /** Until when the disk takes nothing more. */
  diskFullUntilMs: number
  [Symbol.dispose](): void
}

type Methods = Record<string, unknown>

/** Replaces methods of an object that is there already; returns how to take that back. */
const replace = (target: object, methods: Methods): (() => void) => {
  const before = Object.fromEntries(Object.keys(methods).map((name) => [name, (target as Methods)[name]]))
  Object.assign(target, methods)
  return () => Object.assign(target, before)
}

/** Of `fs.promises`, what has another form than its synchronous twin. */
const OTHERWISE: ReadonlySet<string> = new Set(['open', 'opendir', 'glob'])

/** What the disk says, or has written, comes at once: when a thread of Node's pool has time is not part of a simulation. */
const diskAtOnce = (): Methods => {
  const names = Object.keys(promises).filter((name) => !OTHERWISE.has(name) && `${name}Sync` in fs)
  const call = (name: string, values: readonly unknown[]): unknown =>
    // Cast: it is called with what its twin was called with.
    ((fs as unknown as Methods)[`${name}Sync`] as (...values: readonly unknown[]) => unknown)(...values)
  return Object.fromEntries(names.map((name) => [name, async (...values: unknown[]) => call(name, values)]))
}

/** The machine of one seed. Only one is in place at a time. */
export const installMachine = (seed: number): Machine => {
  const clock = new SimulatedClock()
  const random = new Random(seed)
  const network = new SimulatedNetwork(clock, random)
  const processes = new SimulatedProcesses(clock, network)
  const machine = { clock, network, processes, diskFullUntilMs: 0, [Symbol.dispose]: () => undefined as void }
  const connect = (first: ConnectOptions | number, second?: string): unknown =>
    network.connect(typeof first === 'object' ? first : { port: first, ...(second !== undefined && { host: second }) })
  const bytes = (size: number): Buffer => Buffer.from(Array.from({ length: size }, () => random.int(0, 255)))
  const kill = process.kill.bind(process)
  const failIfFull = (): void => {
    if (clock.nowMs < machine.diskFullUntilMs)
      throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
  }
  const { writeFileSync, writeSync, statSync } = fs
  const { createServer } = http
  // Helper programs would be real ones.
  const { PATH } = process.env
  process.env['PATH'] = ''
  const undo = [
    () => void (process.env['PATH'] = PATH),
    clock.install(),
    replace(Math, { random: random.next }),
    replace(process, {
      kill: (pid: number, signal: NodeJS.Signals) =>
        SimulatedProcesses.isOurs(pid) ? processes.kill(pid, signal) : kill(pid, signal),
    }),
    replace(crypto, {
      randomBytes: bytes,
      randomUUID: () =>
        bytes(16)
          .toString('hex')
          .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
    }),
    replace(childProcess, { spawn: processes.spawn }),
    replace(net, { connect, createConnection: connect }),
    replace(net.Server.prototype, {
      listen(this: net.Server, where: number | net.ListenOptions, ...rest: unknown[]) {
        const listening = rest.find((value): value is () => void => typeof value === 'function')
        if (listening !== undefined) this.once('listening', listening)
        network.listen(this, typeof where === 'number' ? where : (where.port ?? 0))
        return this
      },
      address(this: net.Server) {
        const port = network.portOf(this)
        return port === undefined ? null : { address: '127.0.0.1', family: 'IPv4', port }
      },
      close(this: net.Server, done?: () => void) {
        if (done !== undefined) this.once('close', done)
        network.unlisten(this, () => this.emit('close'))
        return this
      },
    }),
    replace(http, {
      // Node looks for late requests by real timers and a real clock. A server that does not listen looks, too.
      createServer: (...values: Parameters<typeof createServer>) =>
        Object.assign(createServer(...values), { headersTimeout: 0, requestTimeout: 0 }),
    }),
    replace(http.Agent.prototype, { createConnection: connect }),
    replace(promises, diskAtOnce()),
    // How full the heap of this process is, is not part of a simulation either.
    replace(v8, { getHeapSpaceStatistics: () => [] }),
    replace(fs, {
      // The count of open descriptors.
      statSync: (path: fs.PathLike, ...options: []) =>
        path === '/proc/self/fd' ? { size: network.sockets.size } : statSync(path, ...options),
      writeFileSync: (...values: Parameters<typeof writeFileSync>) => (failIfFull(), writeFileSync(...values)),
      writeSync: (...values: Parameters<typeof writeSync>) => (failIfFull(), writeSync(...values)),
    }),
    replace(timers, { setImmediate: () => new Promise<void>((resolve) => globalThis.setImmediate(resolve)) }),
  ]
  syncBuiltinESMExports()
  machine[Symbol.dispose] = () => {
    for (const restore of undo.reverse()) restore()
    syncBuiltinESMExports()
  }
  return machine
}
