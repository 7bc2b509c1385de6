/**
 * One simulation: a gateway or several replicas, servers and hosts, the events of a plan, and the judgement. Everything is real but what
 * it stands on (`builtins.ts`).
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DEFAULT_BACKOFF } from '../../../src/downstream/pacing/backoff.ts'
import { DEFAULT_HOST_LIMITS } from '../../../src/host/options.ts'
import { DEFAULT_PARKING } from '../../../src/era/host/parking-options.ts'
import { diffConfigurations } from '../../../src/config/change/difference.ts'
import { FakeDownstream } from '../fake-downstream.ts'
import type { FakeKind } from '../fake-downstream.ts'
import type { Turn } from '../fakes/turn.ts'
import { SessionHost } from '../fakes/http-hosts.ts'
import { configure } from '../gateway.ts'
import type { GatewaySetup, TestGateway } from '../gateway.ts'
import { STATE_FOLDERS } from '../memory-folder.ts'
import { Referee } from '../referee.ts'
import type { End } from '../referee.ts'
import { installMachine } from './builtins.ts'
import type { Machine } from './builtins.ts'
import { Deployment, replicaName } from './deployment.ts'
import { SimulatedSocket } from './network.ts'
import type { SimulatedNode } from './node.ts'
import { Ownership } from './ownership.ts'
import type { Event, Plan, ServerPlan } from './plan.ts'
import { STORE } from './store.ts'
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
/** An orderly stop ends within this (docs/operations.md). */
const DRAIN_MS = 25_000
/** What the system takes for the end of processes, beside the limits that the gateway keeps. */
const LATENCY_MS = 100
const STATE_KEY = '11'.repeat(32)
/** The kinds of failure that hosts may be told (RELIABILITY 4, BRIDGING 7.2), and JSON-RPC's own. */
const KINDS: ReadonlySet<string> = new Set(
  (
    'unknown starting spawn_failed exited unreachable timeout lost bad_response session_expired not_found rate_limited ' +
    'downstream_error protocol overloaded shutting_down cancelled store_unavailable'
  ).split(' '),
)
/** Where several replicas serve, a request takes no longer than this beside what its server and its host take. */
const REPLICA_BOUND_MS = 35_000
/** What may cost a call of a modern host nothing: it is repeated at the next replica. */
const ROLLING_MS = 10_000
const RPC_KINDS: ReadonlySet<string> = new Set(['rpc -32001', 'rpc -32600', 'rpc -32602'])

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
  readonly #folder = mkdtempSync(join(STATE_FOLDERS, 'trunkline-simulation-'))
  readonly #deployment: Deployment
  readonly #ownership: Ownership
  /** By the number of a call: the process that has sent it to its server over HTTP. */
  readonly #senders = new Map<number, SimulatedNode>()
  /** Time in which replicas stood still. */
  #frozenMs = 0
  #removed = new Set<string>()
  /** Servers and hosts to which something was done that may cost calls. */
  readonly #disturbed = new Set<string>()
  #headers = 0
  readonly #work = new Set<Promise<void>>()
  readonly #sleep: Sleep

  constructor(plan: Plan, machine: Machine, isDeep: boolean) {
    this.#plan = plan
    // What a killed process referred to is not looked for: nothing of it has been closed.
    this.#isDeep = isDeep && !plan.events.some((event) => event.do === 'kill')
    this.#machine = machine
    this.#sleep = (ms) => new Promise((resolve) => machine.clock.after(ms, resolve))
    machine.network.maxDelayMs = plan.delayMs
    machine.processes.isStubborn = plan.stubborn
    const isReplicated = plan.replicas !== undefined
    this.#players = plan.hosts.map((host, at) => new Player(host, () => this.#gatewayFor(at), this.#sleep, isReplicated))
    this.#ownership = new Ownership(
      () => machine.clock.nowMs,
      (finding) => this.found(finding),
    )
    this.#deployment = new Deployment(machine, () => this.#setup, {
      folder: this.#folder,
      clocks: plan.replicas,
      claimed: (session, by) => this.#ownership.claimed(session, by),
    })
    this.#setup = {
      servers: Object.fromEntries(plan.servers.map((server, at) => [`s${at}`, specOf(server, this.#executed, this.#sleep)])),
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
      host: { httpServer: plan.httpServer, drainMs: DRAIN_MS },
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
    for (const [at, server] of this.#plan.servers.entries()) await this.#startServer(at, server)
    await this.#deployment.start()
    for (const [at] of this.#players.entries()) this.#machine.network.aliases.set(FIRST_ALIAS + at, () => this.#deployment.port)
    const startMs = performance.now()
    for (const event of this.#plan.events) {
      await this.#sleep(Math.max(0, startMs + event.atMs - performance.now()))
      this.#spawn(this.#happen(event))
    }
    while (this.#work.size > 0) await Promise.all(this.#work)
    await this.#recovered()
    await this.#rested()
    await this.#deployment.stop()
    const stopMs = this.#deployment.longestStopMs - this.#frozenMs
    if (stopMs > DRAIN_MS + LATENCY_MS) this.found(`a stop in order took ${Math.round(stopMs)} ms`)
    for (const { level, text, facts } of this.#deployment.started.flatMap(({ log }) => log.entries))
      if (level === 'error') this.found(`logged as an error: ${text} ${JSON.stringify(facts).slice(0, 300)}`)
    for (const fake of [...this.#fakes.values(), ...this.#others.values()]) await fake[Symbol.asyncDispose]()
    rmSync(this.#folder, { recursive: true, force: true })
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

  /** A server has got a call. */
  readonly #executed = (nonce: number, { connection }: Turn): void => {
    this.#referee.executed(nonce)
    const sender = this.#senders.get(nonce) ?? this.#machine.processes.parentOf(connection.pid ?? 0)
    this.#senders.delete(nonce)
    if (sender !== undefined) this.#ownership.executed(nonce, sender)
  }

  #gatewayFor(host: number): TestGateway | undefined {
    const gateway = this.#plan.replicas === undefined ? this.#deployment.first : this.#deployment.started[0]
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
        return this.#restart(event.replica ?? 0)
      case 'delete':
        this.#disturb(event)
        return this.#delete(event.host)
      case 'kill':
        this.#disturbed.add('gateway')
        this.#deployment.kill(event.replica, event.isSilent)
        await this.#sleep(event.forMs)
        return this.#deployment.revive(event.replica)
      case 'freeze':
        this.#disturbed.add('gateway')
        this.#frozenMs += event.forMs
        return this.#deployment.pause(event.replica, event.forMs)
      case 'part':
        this.#disturbed.add('gateway')
        return this.#part(event)
      case 'pause store':
        this.#disturbed.add('gateway')
        return this.#deployment.store?.pause(event.forMs)
      case 'lose store':
        this.#disturbed.add('gateway')
        return this.#deployment.store?.lose()
      case 'step':
        return this.#deployment.step(event.replica, event.byMs)
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
    if (host instanceof SessionHost && host.session !== undefined) this.#ownership.began(nonce, host.session)
    const startMs = performance.now()
    const { end, isGivenUp, requests } = await player.call(
      host,
      `s${event.server}__t${event.tool}`,
      nonce,
      event,
      event.giveUpMs ?? BOUND_MS,
    )
    const tookMs = Math.round(performance.now() - startMs)
    const isExcused = event.giveUpMs !== undefined || this.#disturbed.has(`host ${event.host}`)
    if (isGivenUp && !isExcused) this.found(`call ${nonce} had not ended after ${tookMs} ms: ${JSON.stringify(event)}`)
    this.#senders.delete(nonce)
    this.#referee.ended(nonce, end)
    this.#count(end)
    const lateMs = tookMs - event.workMs - event.answerMs - this.#frozenMs
    if (this.#plan.replicas !== undefined && !isGivenUp && lateMs > REPLICA_BOUND_MS * requests)
      this.found(`call ${nonce} took ${tookMs} ms: ${JSON.stringify(event)}`)
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
    // A replica that stops in order costs a modern host nothing that does not take long.
    const isRolling = this.#plan.hosts[host]?.transport === 'modern http' && how !== 'ask' && workMs < ROLLING_MS
    const isDisturbed =
      this.#disturbed.has(`server ${server}`) ||
      this.#disturbed.has(`host ${host}`) ||
      this.#disturbed.has('gateway') ||
      (this.#disturbed.has('restart') && !isRolling)
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
    const start = async (kind: FakeKind): Promise<FakeDownstream> => {
      const fake = await FakeDownstream.start(specOf({ ...server, kind }, this.#executed, this.#sleep))
      if (this.#plan.replicas !== undefined) fake.intercept = ({ socket }, _, body) => this.#received(socket, body)
      return fake
    }
    this.#fakes.set(key, await start(server.kind))
    if (!isHttp(server.kind)) return
    if (this.#plan.events.some((event) => event.do === 'era'))
      this.#others.set(key, await start(server.kind === 'legacy http' ? 'modern http' : 'legacy http'))
    this.#machine.network.aliases.set(FIRST_URL + at, () => portOf(this.#fakes.get(key)))
  }

  /** Notes which process has sent a call; the fake answers it. */
  #received(socket: unknown, body: string): false {
    const [, nonce] = /"nonce":(\d+)/.exec(body) ?? []
    const sender = socket instanceof SimulatedSocket ? socket.peerNode : undefined
    if (nonce !== undefined && sender !== undefined) this.#senders.set(Number(nonce), sender)
    return false
  }

  #part({ replica, from, forMs, what }: Event & { readonly do: 'part' }): void {
    const { network } = this.#machine
    const own = replicaName(replica)
    const replicas = (this.#plan.replicas ?? []).map((_, at) => replicaName(at)).filter((name) => name !== own)
    const others = from === 'all' ? [...replicas, STORE] : [from === 'store' ? STORE : replicaName(from)]
    for (const other of others) {
      if (what === 'connections') network.bar(own, other, forMs)
      else network.part(own, other, forMs)
      if (what === 'all') network.part(other, own, forMs)
    }
  }

  /** A session that its host has ended is found at no replica. */
  async #delete(host: number): Promise<void> {
    const ended = await this.#players[host]?.leave()
    if (ended === undefined || this.#disturbed.has('gateway')) return
    for (const _ of this.#plan.replicas ?? []) {
      const reply = await ended.request('DELETE').catch(() => undefined)
      if (reply?.status === 200 && !this.#disturbed.has('gateway')) this.found('a session was found after its DELETE')
    }
    await ended[Symbol.asyncDispose]()
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
    const fakes = new Map([...this.#fakes].filter(([key]) => !this.#removed.has(key)))
    await this.#deployment.each((running, setup, stateDir) => {
      const next = configure(setup, fakes, stateDir)
      return running.apply(next, new Set(diffConfigurations(running.configuration, next).changed))
    })
  }

  async #restart(replica: number): Promise<void> {
    this.#disturbed.add(this.#plan.replicas === undefined ? 'gateway' : 'restart')
    await this.#reloading
    await this.#deployment.restart(replica, () =>
      Promise.all(this.#players.filter((_, at) => this.#isPipe(at)).map((player) => player.drop())),
    )
    if (this.#removed.size > 0) await this.#reload()
  }

  /** Connections stand still for ever, and one end is not told. */
  get #isHalf(): boolean {
    return this.#plan.events.some(
      (event) => (event.do === 'stop' && event.forMs === null) || (event.do === 'kill' && event.isSilent),
    )
  }

  /** After all faults, every server is called once by every host. */
  async #recovered(): Promise<void> {
    this.#machine.processes.failsUntilMs = 0
    this.#machine.network.unreachableUntilMs.clear()
    this.#deployment.heal()
    const isCalm = this.#disturbed.size === 0
    if (!isCalm) {
      for (const player of this.#players) await player.drop()
      const ends = this.#plan.events.filter((event) => event.do === 'crash' || event.do === 'cut' || event.do === 'stop')
      // The calls of a host that is gone without a word keep their places until their total limit.
      await this.#sleep(ends.length >= MANY_CRASHES || this.#isHalf ? LONG_RECOVERY_MS : RECOVERY_MS)
    }
    this.#disturbed.clear()
    for (const [host] of this.#plan.hosts.entries())
      for (const [server] of this.#plan.servers.entries())
        await this.#call({ atMs: 0, do: 'call', host, server, tool: 0, how: 'plain', workMs: 0, answerMs: 0 }, true)
  }

  /** All hosts leave, and long after nothing of what they did is left. */
  async #rested(): Promise<void> {
    for (const player of this.#players) await player.end()
    await this.#sleep(this.#isHalf ? HALF_OPEN_MS : REST_MS)
    // The processes of hosts end, and with them connections of which the gateway's end is closed.
    for (const host of this.#plan.hosts.keys())
      for (const socket of this.#socketsOf({ host })) if (socket.isAbandoned) socket.destroy()
    const { running, store } = this.#deployment
    for (const { running: gateway } of running)
      for (const what of leftOver(gateway, this.#machine, this.#isDeep)) this.found(`at rest: ${what}`)
    const instances = new Set(running.flatMap(({ running: { replicas } }) => replicas?.home.split(' ', 1) ?? []))
    for (const key of (await store?.leftOver(instances)) ?? []) this.found(`at rest: ${key} is in the store`)
  }
}

const isHttp = (kind: FakeKind | undefined): boolean => kind === 'legacy http' || kind === 'modern http'

const portOf = (fake: FakeDownstream | undefined): number => {
  if (fake === undefined) return 0
  const { address } = fake
  return Number('url' in address ? address.url.port : address.args.at(-1))
}

const textOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error)).slice(0, 600)
