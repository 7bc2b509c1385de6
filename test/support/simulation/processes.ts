/** Processes in memory: each is `children/relay.ts` by another name, three pipes and one connection to the fake server behind it. */
import { EventEmitter } from 'node:events'
import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import type { SimulatedNetwork, SimulatedSocket } from './network.ts'
import type { SimulatedClock } from './clock.ts'
import { currentNode } from './node.ts'
import type { SimulatedNode } from './node.ts'

/** Above every pid that Linux gives. */
const FIRST_PID = 10_000_000

interface Running {
  readonly end: (code: number | null, signal: NodeJS.Signals | null) => void
  /** The process that started it. */
  readonly parent: SimulatedNode | undefined
}

export class SimulatedProcesses {
  readonly #clock: SimulatedClock
  readonly #network: SimulatedNetwork
  readonly #running = new Map<number, Running>()
  #nextPid = FIRST_PID
  /** How long a process takes to connect to the server behind it, and so to its first word, ms. */
  startMs = 5
  /** Whether processes end only by SIGKILL. */
  isStubborn = false
  /** Until when every start fails as if the system had no process left. */
  failsUntilMs = 0

  constructor(clock: SimulatedClock, network: SimulatedNetwork) {
    this.#clock = clock
    this.#network = network
  }

  get running(): number {
    return this.#running.size
  }

  /** In the place of `child_process.spawn`. */
  readonly spawn = (_file: string, args: readonly string[]): ChildProcessWithoutNullStreams => {
    const parent = currentNode()
    const child = new EventEmitter() as EventEmitter & Record<string, unknown>
    const [stdin, input] = this.#network.pair()
    const [stdout, output] = this.#network.pair()
    const [stderr, errors] = this.#network.pair()
    stdout.end()
    stderr.end()
    Object.assign(child, { stdin, stdout, stderr, exitCode: null, signalCode: null })
    if (this.#clock.nowMs < this.failsUntilMs) {
      this.#clock.after(1, () => child.emit('error', Object.assign(new Error('spawn EAGAIN'), { code: 'EAGAIN' })), parent)
      for (const pipe of [stdin, input, stdout, output, stderr, errors]) pipe.destroy()
      return child as unknown as ChildProcessWithoutNullStreams
    }
    const pid = this.#nextPid++
    child['pid'] = pid
    let server: SimulatedSocket | undefined
    const end: Running['end'] = (code, signal) => {
      if (!this.#running.delete(pid)) return
      server?.destroy()
      for (const pipe of [output, errors]) pipe.end()
      input.destroy()
      Object.assign(child, { exitCode: code, signalCode: signal })
      this.#clock.after(0.1, () => child.emit('exit', code, signal), parent)
      this.#clock.after(0.1, () => [output, errors].forEach((pipe) => pipe.destroySoon()))
    }
    this.#running.set(pid, { end, parent })
    for (const pipe of [input, output, errors]) pipe.on('error', () => undefined)
    this.#clock.after(0.1, () => child.emit('spawn'), parent)
    this.#clock.after(this.startMs, () => {
      if (!this.#running.has(pid)) return
      server = this.#network.connect({ port: Number(args.at(-1)) })
      this.#relay(pid, server, input, output, errors, end)
    })
    return child as unknown as ChildProcessWithoutNullStreams
  }

  /** In the place of `process.kill`, of these processes; throws ESRCH for one that has ended. */
  kill(pid: number, signal: NodeJS.Signals): true {
    const running = this.#running.get(Math.abs(pid))
    if (running === undefined) throw Object.assign(new Error('kill ESRCH'), { code: 'ESRCH' })
    if (signal === 'SIGKILL' || !this.isStubborn) this.#clock.after(1, () => running.end(null, signal))
    return true
  }

  /** The process that started this one. */
  parentOf(pid: number): SimulatedNode | undefined {
    return this.#running.get(pid)?.parent
  }

  /** Its parent was killed: it ends with it, as processes of ours do (pdeathsig). */
  killChildren(parent: SimulatedNode): void {
    for (const running of this.#running.values()) if (running.parent === parent) running.end(null, 'SIGKILL')
  }

  static isOurs(pid: number): boolean {
    return Math.abs(pid) >= FIRST_PID
  }

  #relay(
    pid: number,
    server: SimulatedSocket,
    input: SimulatedSocket,
    output: SimulatedSocket,
    errors: SimulatedSocket,
    end: Running['end'],
  ): void {
    server.write(`${pid}\n`)
    input.on('data', (chunk: Buffer) => {
      if (!server.destroyed && !server.write(chunk)) {
        input.pause()
        server.once('drain', () => input.resume())
      }
    })
    input.on('end', () => {
      if (!this.isStubborn) server.end()
    })
    server.on('error', () => end(1, null))
    server.on('close', () => end(0, null))
    let pending: Buffer = Buffer.alloc(0)
    server.on('data', (chunk: Buffer) => {
      pending = Buffer.concat([pending, chunk])
      while (pending.length >= 5 && pending.length >= 5 + pending.readUInt32BE(1)) {
        const until = 5 + pending.readUInt32BE(1)
        const content = pending.subarray(5, until)
        const letter = String.fromCharCode(pending[0] ?? 0)
        pending = pending.subarray(until)
        if (letter === 'x') end(Number(content.toString()), null)
        else if (!output.writableEnded) (letter === 'o' ? output : errors).write(Buffer.from(content))
      }
    })
  }
}
