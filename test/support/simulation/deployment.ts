/**
 * The gateways of a simulation: one that hosts reach by itself, or several replicas behind a balancer without stickiness that share a store.
 * Each replica is a process of its own (`node.ts`) on a machine with a clock of its own.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Running } from '../../../src/app/running.ts'
import { openBalancer } from '../balancer.ts'
import type { Balancer } from '../balancer.ts'
import { startGateway } from '../gateway.ts'
import type { GatewaySetup, TestGateway } from '../gateway.ts'
import type { Machine } from './builtins.ts'
import { runAt, SimulatedNode } from './node.ts'
import type { ClockPlan } from './plan.ts'
import { SimulatedStore } from './store.ts'
import type { Claimed } from './store.ts'

/** Ports at which replicas reach each other, whatever port each start gives them. */
const FIRST_REPLICA = 50_000
/** Where nothing listens. */
const NO_PORT = 1

/** The machine of one gateway; `gateway` is undefined while it is down. */
interface Seat {
  readonly at: number
  readonly clock: ClockPlan | undefined
  readonly stateDir: string
  node: SimulatedNode | undefined
  gateway: TestGateway | undefined
  /** The balancer sends requests there. */
  isReady: boolean
  isRestarting: boolean
  /** By how much its wall clock was set, ms. */
  stepMs: number
}

/** Name of the machine of a replica. */
export const replicaName = (at: number): string => `replica ${at}`

export class Deployment {
  readonly #machine: Machine
  readonly #setup: () => GatewaySetup
  readonly #seats: readonly Seat[]
  readonly #started: TestGateway[] = []
  /** What replicas share; `undefined`: there is one gateway. */
  readonly store: SimulatedStore | undefined
  #balancer: Balancer | undefined
  /** Of the gateways that were stopped in order, how long the slowest took. */
  longestStopMs = 0

  constructor(
    machine: Machine,
    setup: () => GatewaySetup,
    { folder, clocks, claimed }: { folder: string; clocks: readonly ClockPlan[] | undefined; claimed: Claimed },
  ) {
    this.#machine = machine
    this.#setup = setup
    this.store = clocks && new SimulatedStore(machine.clock, machine.network, claimed)
    this.#seats = (clocks ?? [undefined]).map((clock, at) => {
      const stateDir = clock === undefined ? folder : join(folder, String(at))
      mkdirSync(stateDir, { recursive: true })
      return { at, clock, stateDir, node: undefined, gateway: undefined, isReady: false, isRestarting: false, stepMs: 0 }
    })
  }

  async start(): Promise<void> {
    if (this.store !== undefined) {
      this.#balancer = await openBalancer([])
      for (const { at } of this.#seats)
        this.#machine.network.aliases.set(FIRST_REPLICA + at, () => Number(this.#seats[at]?.gateway?.url.port ?? NO_PORT))
    }
    await Promise.all(this.#seats.map((seat) => this.#startSeat(seat)))
  }

  /** What hosts connect to. */
  get port(): number {
    return Number((this.#balancer ?? this.first)?.url.port ?? NO_PORT)
  }
  /** The only gateway, or the first replica, if it runs. */
  get first(): TestGateway | undefined {
    return this.#seats[0]?.gateway
  }
  get running(): readonly TestGateway[] {
    return this.#seats.flatMap(({ gateway }) => gateway ?? [])
  }
  /** All that ever ran. */
  get started(): readonly TestGateway[] {
    return this.#started
  }

  /** Stops one in order, calls `meanwhile`, and starts it again. */
  async restart(at: number, meanwhile: () => Promise<unknown>): Promise<void> {
    const seat = this.#seats[at]
    const gateway = seat?.gateway
    if (seat === undefined || gateway === undefined || seat.isRestarting) return
    // One after the other: a replica is ready meanwhile.
    if (this.#balancer !== undefined && !this.#seats.some((other) => other !== seat && other.isReady)) return
    const { node } = seat
    seat.isRestarting = true
    // The balancer looks whether replicas are ready; without one the gateway is reached no more.
    if (this.#balancer === undefined) seat.gateway = undefined
    this.#balance(seat, false)
    await this.#stopSeat(seat, gateway)
    seat.isRestarting = false
    if (seat.node !== node || node?.isDead === true) return
    seat.gateway = undefined
    await meanwhile()
    await this.#startSeat(seat)
  }

  /** Ends one without a word. `isSilent`: its machine is lost with it, and nothing answers at its address. */
  kill(at: number, isSilent: boolean): void {
    const { network, processes } = this.#machine
    const seat = this.#seats[at]
    const node = seat?.node
    if (seat === undefined || node === undefined || node.isDead) return
    if (isSilent) network.unreachableUntilMs.set(FIRST_REPLICA + at, Infinity)
    node.kill()
    network.kill(node, isSilent)
    processes.killChildren(node)
    seat.gateway = undefined
    // A connection is refused, and the balancer tries the next one; where it would wait for ever, it does not try.
    this.#balance(seat, !isSilent)
  }

  /** Starts what was killed. */
  async revive(at: number): Promise<void> {
    const seat = this.#seats[at]
    if (seat === undefined || seat.node?.isDead !== true) return
    this.#machine.network.unreachableUntilMs.delete(FIRST_REPLICA + at)
    await this.#startSeat(seat)
  }

  /** It stands still for `ms`, as after SIGSTOP. */
  pause(at: number, ms: number): void {
    const node = this.#seats[at]?.node
    if (node !== undefined) node.pausedUntilMs = this.#machine.clock.nowMs + ms
  }

  /** Sets its wall clock. */
  step(at: number, byMs: number): void {
    const seat = this.#seats[at]
    if (seat === undefined) return
    seat.stepMs += byMs
    if (seat.node !== undefined) seat.node.offsetMs += byMs
  }

  /** Does something at every gateway that runs. */
  async each(run: (running: Running, setup: GatewaySetup, stateDir: string) => Promise<unknown>): Promise<void> {
    for (const seat of this.#seats) {
      const { gateway, stateDir } = seat
      if (gateway !== undefined && !gateway.running.isStopping)
        await this.#at(seat, () => run(gateway.running, this.#setupOf(seat), stateDir))
    }
  }

  /** Everything goes on: no machine is parted from another one, nothing is paused. */
  heal(): void {
    this.#machine.network.heal()
    this.store?.resume()
    for (const { node } of this.#seats) if (node !== undefined) node.pausedUntilMs = 0
  }

  async stop(): Promise<void> {
    await Promise.all(this.#seats.map((seat) => this.#stopSeat(seat, seat.gateway)))
    await this.#balancer?.[Symbol.asyncDispose]()
  }

  async #stopSeat(seat: Seat, gateway: TestGateway | undefined): Promise<void> {
    const { clock } = this.#machine
    const startMs = clock.nowMs
    await this.#at(seat, async () => gateway?.running.stop())
    this.longestStopMs = Math.max(this.longestStopMs, clock.nowMs - startMs)
  }

  #balance(changed: Seat, isReady: boolean): void {
    changed.isReady = isReady
    if (this.#balancer === undefined) return
    this.#balancer.targets = this.#seats.flatMap((seat) => (seat.isReady ? Number(seat.gateway?.url.port ?? NO_PORT) : []))
  }

  /** Resolves with `undefined` where its process is killed before. */
  async #at<T>({ node }: Seat, run: () => Promise<T>): Promise<T | undefined> {
    return runAt(node, () => Promise.race([run(), ...(node === undefined ? [] : [node.died])]))
  }

  #setupOf(seat: Seat): GatewaySetup {
    const setup = { ...this.#setup(), stateDir: seat.stateDir }
    if (this.store === undefined || seat.node === undefined) return setup
    return {
      ...setup,
      host: { ...setup.host, publicUrl: this.#balancer?.url.origin },
      replicaUrl: `http://127.0.0.1:${FIRST_REPLICA + seat.at}`,
      store: this.store.linkOf(seat.node),
    }
  }

  async #startSeat(seat: Seat): Promise<void> {
    const { clock, at, stepMs } = seat
    const node = clock && new SimulatedNode(replicaName(at), 1 + clock.driftPpm / 1e6, clock.offsetMs + stepMs)
    seat.node = node
    const gateway = await this.#at(seat, () => startGateway(this.#setupOf(seat)))
    if (gateway === undefined) return
    this.#started.push(gateway)
    seat.gateway = gateway
    this.#balance(seat, true)
  }
}
