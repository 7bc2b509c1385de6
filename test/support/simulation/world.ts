/**
 * One simulation: a gateway, its servers and hosts, the events of a plan, and the judgement. Everything is real but what it stands on
 * (`builtins.ts`).
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEFAULT_BACKOFF } from '../../../src/downstream/pacing/backoff.ts'
import { DEFAULT_HOST_LIMITS } from '../../../src/host/options.ts'
import { DEFAULT_PARKING } from '../../../src/era/host/parking-options.ts'
import { diffConfigurations } from '../../../src/config/change/difference.ts'
import { FakeDownstream } from '../fake-downstream.ts'
import type { FakeKind } from '../fake-downstream.ts'
import { configure, startGateway } from '../gateway.ts'
import type { GatewaySetup, TestGateway } from '../gateway.ts'
import { Referee } from '../referee.ts'
import type { End } from '../referee.ts'
import { installMachine } from './builtins.ts'
import type { Machine } from './builtins.ts'
import type { Event, Plan, ServerPlan } from './plan.ts'
import { Player } from './player.ts'
import type { Sleep } from './player.ts'
import { leftOver } from './rest.ts'
import { specOf } from './server.ts'

/** What one simulation came to. */
export interface Report {
  /** In words; empty: nothing is wrong. */
  readonly findings: readonly string[]
  readonly simulatedMs: number
  /** By how they ended. */
  readonly ends: Readonly<Record<string, number>>
}

const TIMEOUTS = { idleMs: 60_000, totalMs: 240_000 }
const HOST_LIMITS = { sessionIdleMs: 40_000, maxEventAgeMs: 30_000, orphanMs: 30_000 }
/** Every call ends within this, whatever happens: its total limit, the wait for its server, a round of questions. */
const BOUND_MS = 400_000
/** After all faults: the longest back-off; after so many ends of processes, the pause that they cost. */
const RECOVERY_MS = 70_000
const MANY_CRASHES = 4
const LONG_RECOVERY_MS = 400_000
const REST_MS = 80_000
const LONGEST_HANG_MS = 90_000
/** A host's machine that is gone is found out by the keep-alives of its connections. */
const HALF_OPEN_MS = 1_000_000
/** Ports of hosts' ways to the gateway, and of URLs at which the era may change. */
const FIRST_ALIAS = 30_000
const FIRST_URL = 40_000
const STATE_KEY = '11'.repeat(32)
/** The kinds of failure that hosts may be told (RELIABILITY 4, BRIDGING 7.2), and JSON-RPC's own. */
const KINDS: ReadonlySet<string> = new Set(
  (
    'unknown starting spawn_failed exited unreachable timeout lost bad_response session_expired not_found rate_limited ' +
    'downstream_error protocol overloaded shutting_down cancelled'
  ).split(' '),
)
const RPC_KINDS: ReadonlySet<string> = new Set(['rpc -32600', 'rpc -32602'])

/** `isDeep`: also looks for objects that something still refers to, which takes seconds. */
export const simulate = async (plan: Plan, isDeep = false): Promise<Report> => {
  using machine = installMachine(plan.seed)
  const world = new World(plan, machine, isDeep)
  const rejected = (error: unknown): void => world.found(`unhandled rejection: ${textOf(error)}`)
  process.on('unhandledRejection', rejected)
  try {
    await machine.clock.drive(world.run(), 24 * 3_600_000, 'the simulation')
    await machine.clock.pass(60_000)
    world.judgeEnd()
  } catch (error) {
    world.found(textOf(error))
  }
  process.off('unhandledRejection', rejected)
  for (const error of machine.clock.errors) world.found(`a timer threw ${textOf(error)}`)
  return { findings: world.findings, simulatedMs: machine.clock.nowMs, ends: world.ends }
}

class World {
  readonly findings: string[] = []
  readonly ends: Record<string, number> = {}
  readonly #plan: Plan
  readonly #machine: Machine
  readonly #isDeep: boolean
  readonly #referee = new Referee()
  readonly #players: Player[]
  /** What stands behind each key now, and of HTTP servers the one of the other era. */
  readonly #fakes = new Map<string, FakeDownstream>()
  readonly #others = new Map<string, FakeDownstream>()
  readonly #setup: { -readonly [K in keyof GatewaySetup]: GatewaySetup[K] }
  #gateway: TestGateway | undefined
  #removed = new Set<string>()
  /** Servers and hosts to which something was done that may cost calls. */
  readonly #disturbed = new Set<string>()
  #headers = 0
  readonly #work = new Set<Promise<void>>()
  readonly #sleep: Sleep

  constructor(plan: Plan, machine: Machine, isDeep: boolean) {
    this.#plan = plan
    this.#isDeep = isDeep
    this.#machine = machine
    this.#sleep = (ms) => new Promise((resolve) => machine.clock.after(ms, resolve))
    machine.network.maxDelayMs = plan.delayMs
    machine.processes.isStubborn = plan.stubborn
    this.#players = plan.hosts.map((host, at) => new Player(host, () => this.#gatewayFor(at), this.#sleep))
    this.#setup = {
      servers: Object.fromEntries(plan.servers.map((server, at) => [`s${at}`, specOf(server, this.#referee, this.#sleep)])),
      options: Object.fromEntries(
        plan.servers.map(({ kind, sharing, spare, start, concurrency }, at) => [
          `s${at}`,
          {
            sharing,
            spare,
            start,
            idleStopMs: 30_000,
            timeouts: TIMEOUTS,
            limits: { maxConcurrent: concurrency, maxRestarts: 10 },
            ...(isHttp(kind) && { url: new URL(`http://127.0.0.1:${FIRST_URL + at}/mcp`) }),
          },
        ]),
      ),
      gateway: { parking: { ...DEFAULT_PARKING, ttlMs: plan.parkMs } },
      host: { httpServer: plan.httpServer, drainMs: 25_000 },
      hostLimits: { ...DEFAULT_HOST_LIMITS, ...HOST_LIMITS, maxLoopLagMs: Infinity },
      backoff: DEFAULT_BACKOFF,
      early: true,
      stateKey: STATE_KEY,
      fakes: this.#fakes,
    }
  }

  found(finding: string): void {
    if (this.findings.length < 20) this.findings.push(finding)
  }

  async run(): Promise<void> {
    const stateDir = mkdtempSync(join(tmpdir(), 'trunkline-simulation-'))
    this.#setup.stateDir = stateDir
    for (const [at, server] of this.#plan.servers.entries()) await this.#startServer(at, server)
    this.#gateway = await startGateway(this.#setup)
    for (const [at] of this.#players.entries())
      this.#machine.network.aliases.set(FIRST_ALIAS + at, () => Number(this.#gateway?.url.port ?? 1))
    const startMs = performance.now()
    for (const event of this.#plan.events) {
      await this.#sleep(Math.max(0, startMs + event.atMs - performance.now()))
      this.#spawn(this.#happen(event))
    }
    while (this.#work.size > 0) await Promise.all(this.#work)
    await this.#recovered()
    await this.#rested()
    await this.#gateway?.running.stop()
    const { log } = this.#gateway ?? {}
    for (const { level, text, facts } of log?.entries ?? [])
      if (level === 'error') this.found(`logged as an error: ${text} ${JSON.stringify(facts).slice(0, 300)}`)
    for (const fake of [...this.#fakes.values(), ...this.#others.values()]) await fake[Symbol.asyncDispose]()
    rmSync(stateDir, { recursive: true, force: true })
  }

  /** After everything was stopped. */
  judgeEnd(): void {
    const { clock, network, processes } = this.#machine
    if (clock.open.length > 0) this.found(`${clock.open.length} timers are left after the end ${clock.open[0]?.origin ?? ''}`)
    if (network.listening.length > 0) this.found(`${network.listening.length} listeners are left after the end`)
    if (network.sockets.size > 0) this.found(`${network.sockets.size} sockets are left after the end`)
    if (processes.running > 0) this.found(`${processes.running} processes are left after the end`)
    for (const finding of this.#referee.findings) this.found(finding)
    if (!this.#referee.isClean && this.#referee.findings.length === 0) this.found(JSON.stringify(this.#referee.verdict))
  }

  #spawn(work: Promise<void>): void {
    const tracked = work.catch((error: unknown) => this.found(textOf(error))).finally(() => this.#work.delete(tracked))
    this.#work.add(tracked)
  }

  #gatewayFor(host: number): TestGateway | undefined {
    const gateway = this.#gateway
    return gateway && { ...gateway, url: new URL(`http://127.0.0.1:${FIRST_ALIAS + host}/mcp`) }
  }

  async #happen(event: Event): Promise<void> {
    const { network, processes } = this.#machine
    switch (event.do) {
      case 'call':
        return this.#call(event)
      case 'list': {
        const host = await this.#players[event.host]?.connected()
        await Promise.race([host?.call('tools/list').catch(() => undefined), this.#sleep(BOUND_MS)])
        return
      }
      case 'leave':
        this.#disturb(event)
        return this.#players[event.host]?.drop()
      case 'cut':
        this.#disturb(event)
        if (event.host !== undefined && this.#isPipe(event.host)) return this.#players[event.host]?.drop()
        for (const socket of this.#socketsOf(event)) socket.reset()
        return
      case 'stop':
        this.#disturb(event)
        // A pipe is not half-open: a process that hangs goes on at some time, and until then its calls time out.
        const isPipe = event.server !== undefined && !isHttp(this.#fakes.get(`s${event.server}`)?.kind)
        for (const socket of this.#socketsOf(event)) socket.stop(event.forMs ?? (isPipe ? LONGEST_HANG_MS : Infinity))
        return
      case 'crash': {
        this.#disturb(event)
        const fake = this.#fakes.get(`s${event.server}`)
        if (fake?.kind === 'modern http') for (const socket of this.#socketsOf(event)) socket.reset()
        else for (const connection of fake?.connections ?? []) if (connection.isOpen) connection.drop()
        return
      }
      case 'unreachable': {
        this.#disturb(event)
        network.unreachableUntilMs.set(this.#portOf(event.server), performance.now() + event.forMs)
        return
      }
      case 'no processes':
        for (const [at] of this.#plan.servers.entries()) this.#disturb({ server: at })
        processes.failsUntilMs = performance.now() + event.forMs
        return
      case 'full disk':
        this.#machine.diskFullUntilMs = performance.now() + event.forMs
        return
      case 'change': {
        const fake = this.#fakes.get(`s${event.server}`)
        const tools = fake?.offers.tools ?? []
        if (tools.some(({ name }) => name === 'more')) tools.pop()
        else tools.push({ name: 'more', inputSchema: { type: 'object' } })
        fake?.changed('tools')
        return
      }
      case 'flood': {
        const fake = this.#fakes.get(`s${event.server}`)
        for (const connection of fake?.connections ?? [])
          if (connection.isOpen && connection.era === 'legacy')
            for (let line = 0; line < event.count; line++)
              connection.notify('notifications/message', { level: 'error', data: `flood ${line}` })
        return
      }
      case 'reload': {
        const key = `s${event.server}`
        if (event.restarts) this.#disturb(event)
        const options = this.#setup.options?.[key] ?? {}
        this.#setup.options = {
          ...this.#setup.options,
          [key]: {
            ...options,
            limits: { ...options.limits, maxConcurrent: event.concurrency },
            ...(event.restarts && { headers: { 'x-changed': String(++this.#headers) } }),
          },
        }
        return this.#reload()
      }
      case 'remove':
        this.#disturb(event)
        this.#removed.add(`s${event.server}`)
        await this.#reload()
        await this.#sleep(event.forMs)
        this.#removed.delete(`s${event.server}`)
        return this.#reload()
      case 'restart':
        return this.#restart()
      case 'era': {
        this.#disturb(event)
        const key = `s${event.server}`
        const [before, after] = [this.#fakes.get(key), this.#others.get(key)]
        if (before === undefined || after === undefined) return
        this.#fakes.set(key, after)
        this.#others.set(key, before)
        for (const socket of this.#socketsOf(event)) socket.reset()
        return
      }
    }
  }

  /** `isAlone`: no other call is under way. */
  async #call(event: Event & { readonly do: 'call' }, isAlone = false): Promise<void> {
    const player = this.#players[event.host]
    const host = await player?.connected()
    if (player === undefined || host === undefined) return
    const nonce = this.#referee.begin()
    const startMs = performance.now()
    const { end, isGivenUp } = await player.call(
      host,
      `s${event.server}__t${event.tool}`,
      nonce,
      event,
      event.giveUpMs ?? BOUND_MS,
    )
    const tookMs = Math.round(performance.now() - startMs)
    const isExcused = event.giveUpMs !== undefined || this.#disturbed.has(`host ${event.host}`)
    if (isGivenUp && !isExcused) this.found(`call ${nonce} had not ended after ${tookMs} ms: ${JSON.stringify(event)}`)
    this.#referee.ended(nonce, end)
    this.#count(end)
    if (end.type === 'failed' && !KINDS.has(end.kind) && !RPC_KINDS.has(end.kind))
      this.found(`call ${nonce} ended with the unknown kind ${end.kind}`)
    if (end.type !== 'answered' && !isGivenUp && this.#mustBeAnswered(event, isAlone))
      this.found(
        `call ${nonce} ended with ${JSON.stringify(end)} after ${tookMs} ms, and nothing was done to it: ${JSON.stringify(event)}`,
      )
  }

  /** Nothing that happened may cost this call. */
  #mustBeAnswered(call: Event & { readonly do: 'call' }, isAlone: boolean): boolean {
    const { server, host, tool, how, workMs, answerMs, giveUpMs } = call
    const { servers, parkMs, events } = this.#plan
    const isThere = tool < (servers[server]?.tools ?? 0)
    const isLate = how === 'never' || giveUpMs !== undefined || workMs > 50_000 || answerMs >= parkMs
    // Calls that wait for others may wait too long.
    const isCrowded = events.some(
      (event) =>
        (event.do === 'reload' && event.server === server && event.concurrency < 100) ||
        (servers[server]?.concurrency ?? 0) < 100,
    )
    const isDisturbed =
      this.#disturbed.has(`server ${server}`) || this.#disturbed.has(`host ${host}`) || this.#disturbed.has('gateway')
    return isThere && !isLate && (isAlone || !isCrowded) && !isDisturbed
  }

  #count(end: End): void {
    const name = end.type === 'failed' ? end.kind : end.type
    this.ends[name] = (this.ends[name] ?? 0) + 1
  }

  #disturb({ host, server }: { readonly host?: number; readonly server?: number }): void {
    if (host !== undefined) this.#disturbed.add(`host ${host}`)
    if (server !== undefined) this.#disturbed.add(`server ${server}`)
  }

  #isPipe(host: number): boolean {
    return this.#plan.hosts[host]?.transport.endsWith('stdio') ?? false
  }

  async #startServer(at: number, server: ServerPlan): Promise<void> {
    const key = `s${at}`
    const start = (kind: FakeKind): Promise<FakeDownstream> =>
      FakeDownstream.start(specOf({ ...server, kind }, this.#referee, this.#sleep))
    this.#fakes.set(key, await start(server.kind))
    if (!isHttp(server.kind)) return
    this.#others.set(key, await start(server.kind === 'legacy http' ? 'modern http' : 'legacy http'))
    this.#machine.network.aliases.set(FIRST_URL + at, () => portOf(this.#fakes.get(key)))
  }

  #portOf(server: number): number {
    if (isHttp(this.#plan.servers[server]?.kind)) return FIRST_URL + server
    return portOf(this.#fakes.get(`s${server}`))
  }

  #socketsOf({ host, server }: { readonly host?: number; readonly server?: number }) {
    const port = host === undefined ? this.#portOf(server ?? 0) : FIRST_ALIAS + host
    return this.#machine.network.at(port)
  }

  #reloading: Promise<void> = Promise.resolve()

  /** One after the other, as `commands/serve/reloading` does. */
  #reload(): Promise<void> {
    const before = this.#reloading
    return (this.#reloading = this.#applyAfter(before))
  }

  async #applyAfter(before: Promise<void>): Promise<void> {
    await before
    const { running } = this.#gateway ?? {}
    if (running === undefined || running.isStopping) return
    const fakes = new Map([...this.#fakes].filter(([key]) => !this.#removed.has(key)))
    const next = configure(this.#setup, fakes, this.#setup.stateDir ?? '')
    await running.apply(next, new Set(diffConfigurations(running.configuration, next).changed))
  }

  async #restart(): Promise<void> {
    const gateway = this.#gateway
    if (gateway === undefined) return
    this.#disturbed.add('gateway')
    await this.#reloading
    this.#gateway = undefined
    await gateway.running.stop()
    await Promise.all(this.#players.filter((_, at) => this.#isPipe(at)).map((player) => player.drop()))
    this.#gateway = await startGateway(this.#setup)
    if (this.#removed.size > 0) await this.#reload()
  }

  /** After all faults, every server is called once by every host. */
  async #recovered(): Promise<void> {
    this.#machine.processes.failsUntilMs = 0
    this.#machine.network.unreachableUntilMs.clear()
    const isCalm = this.#disturbed.size === 0
    if (!isCalm) {
      for (const player of this.#players) await player.drop()
      const ends = this.#plan.events.filter((event) => event.do === 'crash' || event.do === 'cut' || event.do === 'stop')
      await this.#sleep(ends.length >= MANY_CRASHES ? LONG_RECOVERY_MS : RECOVERY_MS)
    }
    this.#disturbed.clear()
    for (const [host] of this.#plan.hosts.entries())
      for (const [server] of this.#plan.servers.entries())
        await this.#call({ atMs: 0, do: 'call', host, server, tool: 0, how: 'plain', workMs: 0, answerMs: 0 }, true)
  }

  /** All hosts leave, and long after nothing of what they did is left. */
  async #rested(): Promise<void> {
    for (const player of this.#players) await player.end()
    const isHalf = this.#plan.events.some((event) => event.do === 'stop' && event.forMs === null)
    await this.#sleep(isHalf ? HALF_OPEN_MS : REST_MS)
    const gateway = this.#gateway
    if (gateway === undefined) return
    for (const what of leftOver(gateway.running, this.#machine, this.#isDeep)) this.found(`at rest: ${what}`)
  }
}

const isHttp = (kind: FakeKind | undefined): boolean => kind === 'legacy http' || kind === 'modern http'

const portOf = (fake: FakeDownstream | undefined): number => {
  if (fake === undefined) return 0
  const { address } = fake
  return Number('url' in address ? address.url.port : address.args.at(-1))
}

const textOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error)).slice(0, 600)
