/**
 * One process of a simulation: its clock, and whether it runs. Which one runs now follows its code through timers, sockets and promises, so
 * that `src/` is not told: the clock and the network ask here.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

export class SimulatedNode {
  /** Of its machine, which outlives the process. */
  readonly name: string
  /** How fast its clock runs: 1.001 gains a millisecond in a second. */
  readonly rate: number
  /** How far its wall clock is off, ms. */
  offsetMs: number
  /** Until when it stands still, as after SIGSTOP. */
  pausedUntilMs = 0
  /** It was killed: nothing of it runs any more. */
  isDead = false
  readonly #died = Promise.withResolvers<undefined>()
  /** Resolves when it is killed. */
  readonly died = this.#died.promise

  constructor(name: string, rate = 1, offsetMs = 0) {
    this.name = name
    this.rate = rate
    this.offsetMs = offsetMs
  }

  kill(): void {
    this.isDead = true
    this.#died.resolve(undefined)
  }
}

const running = new AsyncLocalStorage<SimulatedNode | undefined>()

/** `undefined`: the world, which hosts and servers belong to. */
export const currentNode = (): SimulatedNode | undefined => running.getStore()

/** Runs code as that node, with everything that follows from it. */
export const runAt = <T>(node: SimulatedNode | undefined, run: () => T): T =>
  running.getStore() === node ? run() : running.run(node, run)
