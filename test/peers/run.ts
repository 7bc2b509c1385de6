/**
 * Runs the scenarios in the cells of one SDK: a pair of host and server over one transport, first directly, then through Trunkline, at
 * the merged endpoint and at the server's own. One host process serves all cells of its kind; every connection is a new one.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect as connectTcp } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../support/free-port.ts'
import { gatewayHome, startGatewayProcess, stdioGateway } from '../support/gateway-process.ts'
import { PROGRAM } from '../support/program.ts'
import type { Bridge, Group } from './cells.ts'
import { JOURNAL, run } from './languages.ts'
import type { Sdk, Transport } from './languages.ts'
import { DEFAULT_SCENARIOS, SCENARIOS } from './scenarios.ts'
import type { Driven, Json, Scenario } from './scenarios.ts'
import { readLines } from './typescript/wire.ts'

/** The ways through Trunkline: among other servers, under the server's key, or the server alone as it is. */
export type Way = 'merged' | 'alone'

export interface Cell {
  readonly host: Sdk
  readonly server: Sdk
  readonly transport: Transport
  /** The program between them, if there is one. */
  readonly bridge?: string
}

/** What one scenario gave in one cell. */
export interface Observation {
  readonly cell: Cell
  readonly way: Way
  readonly scenario: string
  readonly direct: unknown
  readonly through: unknown
  /** Whether host and server agreed on the modern era, and host and Trunkline. */
  readonly isModern: { readonly direct: boolean; readonly through: boolean }
}

export const cellName = ({ host, server, transport, bridge }: Cell): string =>
  `${host.key} → ${bridge === undefined ? '' : `${bridge} → `}${server.key}, ${transport}`

/** The key of the server in Trunkline's configuration; with it begin its names at the merged endpoint. */
const KEY = 'peer'

/** Every command ends by then: a bound for what hangs. A host in Python may need most of a minute to start on a busy machine. */
const COMMAND_MS = 120_000
/** Without an event for so long, the direct pair has seen all of them. */
const QUIET_MS = 150
/** So long are events waited for that must come: those of the scenario in the direct pair, those that this pair got through Trunkline. */
const EVENTS_MS = 5_000
/** So long is asked again through Trunkline for what the direct pair reached. */
const REACHED_MS = 10_000

/** Python keeps what it compiles, whatever the machine says: a start of FastMCP needs 1.3 s of CPU with it, 1.7 s without. */
const peerEnvironment = (): NodeJS.ProcessEnv => ({ ...process.env, PYTHONDONTWRITEBYTECODE: '' })

/** One host program, driven over its pipe. */
class HostProcess implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #answers = new Map<number, (answer: Json) => void>()
  readonly #exited: Promise<unknown>
  events: Json[] = []
  /** Commands that got no answer in time: a pair that does not answer both ways would be equal. */
  readonly unanswered: string[] = []
  #said = ''
  #last = 0
  #onEvent: () => void = () => undefined

  constructor([command = '', ...args]: readonly string[]) {
    this.#child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], env: peerEnvironment() })
    this.#exited = once(this.#child, 'exit').then(() => {
      for (const answer of this.#answers.values()) answer({ error: { kind: 'ended', message: this.#said.slice(-2_000) } })
    })
    this.#child.on('error', () => undefined)
    this.#child.stdin!.on('error', () => undefined)
    this.#child.stderr!.on('data', (chunk: Buffer) => (this.#said = (this.#said + chunk.toString()).slice(-10_000)))
    readLines(this.#child.stdout!, (line) => {
      if (!line.startsWith('{')) return
      const message = JSON.parse(line) as Json & { id?: number }
      if (message.id === undefined) {
        this.events.push(message)
        this.#onEvent()
        return
      }
      const { id, ...answer } = message
      this.#answers.get(id)?.(answer)
      this.#answers.delete(id)
    })
  }

  start(verb: string, params: Json = {}): { id: number; answer: Promise<Json> } {
    const id = ++this.#last
    const { promise, resolve } = Promise.withResolvers<Json>()
    this.#answers.set(id, resolve)
    const timer = setTimeout(() => {
      this.unanswered.push([verb, params['name']].filter(Boolean).join(' '))
      resolve({ error: { kind: 'no answer', message: verb } })
    }, COMMAND_MS)
    this.#child.stdin!.write(`${JSON.stringify({ id, do: verb, ...params })}\n`)
    return { id, answer: promise.finally(() => clearTimeout(timer)) }
  }

  /** Resolves with the next event, or after so long without one. */
  async event(withinMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onEvent = resolve
    const timer = setTimeout(resolve, withinMs)
    await promise
    clearTimeout(timer)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null || this.#child.pid === undefined) return
    this.#child.kill('SIGKILL')
    await this.#exited
  }
}

/** Runs a scenario; `counts` holds how many events of each kind the direct pair got, and is filled by it. */
const play = async (
  process: HostProcess,
  scenario: Scenario,
  key: string,
  counts: Map<string, number>,
  /** Absent: the direct pair. */
  restart: (() => Promise<void>) | undefined,
) => {
  const isDirect = restart === undefined
  process.events = []
  let turn = 0
  const driven: Driven = {
    key,
    start: (verb, params) => process.start(verb, params),
    do: (verb, params) => process.start(verb, params).answer,
    events: async (kind, usual = 0) => {
      const label = `${scenario.name} ${++turn}`
      const seen = (): Json[] => process.events.filter(({ event }) => event === kind)
      const wanted = isDirect ? usual : (counts.get(label) ?? 0)
      const until = Date.now() + EVENTS_MS
      while (seen().length < wanted && Date.now() < until) await process.event(until - Date.now())
      for (let before = -1; before < seen().length;) {
        before = seen().length
        await process.event(QUIET_MS)
      }
      const found = seen().map(withoutNumbers)
      if (isDirect) counts.set(label, found.length)
      process.events = process.events.filter(({ event }) => event !== kind)
      return found
    },
    until: async (ask, isReached) => {
      const label = `${scenario.name} ${++turn}`
      const limitMs = isDirect ? 500 : counts.get(label) === 1 ? REACHED_MS : 0
      const last = Date.now() + limitMs
      let answer = await ask()
      while (!isReached(answer) && Date.now() < last) {
        await sleep(100)
        answer = await ask()
      }
      if (isDirect) counts.set(label, isReached(answer) ? 1 : 0)
      return answer
    },
    restart: () => restart?.() ?? Promise.resolve(),
    asked: () => process.events.filter(({ event }) => event === 'asked').map(withoutNumbers),
  }
  return scenario.run(driven)
}

const withoutNumbers = ({ method, params }: Json): Json => ({ ...(method !== undefined && { method }), params })

/** Where a host finds a server: what its `connect` command says. */
type Target = Launch | { readonly url: string }
interface Launch {
  readonly command: string
  readonly args: readonly string[]
}

const PATHS = { stdio: '', sse: '/sse', http: '/mcp' }

interface Served extends AsyncDisposable {
  readonly target: Target
  readonly config: Json
}

/** Attempts to start a server at a port that another program may have taken meanwhile. */
const STARTS = 3

/** Starts a server, or says how it is started. */
const serve = async ({ server }: Pick<Sdk, 'server'>, transport: Transport, attempt = 1): Promise<Served> => {
  const [command = '', ...args] = server
  if (transport === 'stdio') {
    const launch = { command, args: [...args, 'stdio'] }
    return { target: launch, config: launch, [Symbol.asyncDispose]: () => Promise.resolve() }
  }
  const port = await freePort()
  const child = spawn(command, [...args, transport, String(port)], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: peerEnvironment(),
    // A group: what launchers of npm start lives on without them, and holds the pipe.
    detached: true,
  })
  const { pid } = child
  const end = (): void => {
    process.off('exit', end)
    try {
      if (pid !== undefined) process.kill(-pid, 'SIGKILL')
    } catch {
      // Nothing of it is left.
    }
  }
  process.once('exit', end)
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-4_000)))
  const exited = once(child, 'exit')
  while (!(await listens(port))) {
    if (child.exitCode !== null || pid === undefined) {
      end()
      if (attempt < STARTS) return serve({ server }, transport, attempt + 1)
      throw new Error(`${command} ${args.join(' ')} ended: ${said}`)
    }
    await sleep(50)
  }
  const url = `http://127.0.0.1:${port}${PATHS[transport]}`
  return {
    target: { url },
    config: { url },
    [Symbol.asyncDispose]: async () => {
      end()
      await exited
    },
  }
}

const listens = async (port: number): Promise<boolean> => {
  const socket = connectTcp(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

/** Names of the merged endpoint as the server has them: without the prefix. */
const unprefixed = (transcript: unknown): unknown =>
  JSON.parse(
    JSON.stringify(transcript ?? null)
      .replaceAll(`${KEY}__`, '')
      .replaceAll(`${KEY}+peer:`, 'peer:')
      .replaceAll(`${KEY}+other:`, 'other:'),
  )

/** The same command at the merged endpoint: names and URIs of the server get its prefix. */
const prefixing = (process: HostProcess): HostProcess => {
  const named = (params: Json): Json => {
    const { name, uri, ref } = params as { name?: string; uri?: string; ref?: { name?: string; uri?: string } }
    return {
      ...params,
      ...(name !== undefined && { name: `${KEY}__${name}` }),
      ...(uri !== undefined && { uri: `${KEY}+${uri}` }),
      ...(ref !== undefined && {
        ref: { ...ref, ...(ref.name && { name: `${KEY}__${ref.name}` }), ...(ref.uri && { uri: `${KEY}+${ref.uri}` }) },
      }),
    }
  }
  return new Proxy(process, {
    get: (target, property) => {
      if (property === 'start') return (verb: string, params: Json = {}) => target.start(verb, named(params))
      const value: unknown = Reflect.get(target, property, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
    set: (target, property, value) => Reflect.set(target, property, value, target),
  })
}

type Transcripts = Map<string, unknown>

const converse = async (
  process: HostProcess,
  transport: Transport,
  target: Target,
  scenarios: readonly Scenario[] | undefined,
  counts: Map<string, number>,
  restart?: () => Promise<void>,
): Promise<Transcripts> => {
  const transcripts: Transcripts = new Map()
  for (const capable of scenarios === undefined ? [true, false] : [true]) {
    const connected = await process.start('connect', { transport, capable, ...target }).answer
    if (capable) transcripts.set('connect', connected)
    if ('error' in connected) continue
    for (const scenario of scenarios ?? (capable ? SCENARIOS : DEFAULT_SCENARIOS))
      transcripts.set(scenario.name, await play(process, scenario, crypto.randomUUID(), counts, restart))
    await process.start('close').answer
  }
  return transcripts
}

const agreedOnModern = (transcripts: Transcripts): boolean => {
  const { result } = transcripts.get('connect') as { result?: { protocolVersion?: string } }
  return (result?.protocolVersion ?? '') >= '2026'
}

/** A stdio program in place of a URL. */
const bridged = async ({ command }: Bridge, target: Target): Promise<Launch> => {
  const [program = '', ...args] = await command('url' in target ? target.url : '')
  return { command: program, args }
}

/** `text`, once `trunkline logs` shows it of the server of a running gateway; what it shows instead, after so long. */
const logged = async (file: string, text: string): Promise<string> => {
  await using _ = await startGatewayProcess(file, '--listen', `127.0.0.1:${await freePort()}`)
  const until = Date.now() + COMMAND_MS
  for (;;) {
    const { stdout } = await run(process.execPath, [PROGRAM, 'logs', '-c', file, KEY])
    if (stdout.includes(text)) return text
    if (Date.now() > until) return stdout
    await sleep(200)
  }
}

/** What every server offers, and no host fails in. */
const SUCCEEDING = ['tools: list, every page', 'call: text and arguments', 'call: structured content']

const written = (file: string): Promise<string> => readFile(file, 'utf8').catch(() => '')

/** All cells of one server over one transport: the server and its gateway are started once. */
export const runGroup = async (
  { server, transport, hosts, ways, scenarios, prints, bridge }: Group,
  log: (line: string) => void = () => undefined,
): Promise<readonly Observation[]> => {
  const observations: Observation[] = []
  await using home = await gatewayHome()
  const journal = join(home.folder, 'journal')
  const command = server.server.map((word) => word.replace(JOURNAL, journal))
  await using served = await serve({ server: command }, transport)
  const launch = bridge?.side === 'server' ? await bridged(bridge, served.target) : undefined
  // That calls which hosts gave up without a word are drained is not the subject.
  const file = await home.write('trunkline', {
    servers: { [KEY]: launch ?? served.config },
    reload: { drain: '1s' },
  })
  const isStdio = transport === 'stdio' || launch !== undefined
  let gateway = isStdio ? undefined : await startGatewayProcess(file, '--listen', `127.0.0.1:${await freePort()}`)
  await using gateways = new AsyncDisposableStack()
  gateways.defer(() => gateway?.[Symbol.asyncDispose]())
  const restart = async (): Promise<void> => {
    if (gateway === undefined) return
    const { host: address } = new URL(gateway.url)
    await gateway.stop()
    gateway = await startGatewayProcess(file, '--listen', address)
  }
  const targets: Record<Way, () => Target> = {
    merged: () => (gateway === undefined ? stdioGateway(file) : { url: transport === 'sse' ? gateway.sseUrl : gateway.url }),
    alone: () => {
      if (gateway !== undefined) return { url: new URL(`/servers/${KEY}${PATHS[transport]}`, gateway.url).href }
      const { command, args } = stdioGateway(file)
      return { command, args: [...args, '--server', KEY] }
    },
  }
  const reached = async (target: Target): Promise<Target> => (bridge?.side === 'host' ? bridged(bridge, target) : target)
  const spoken = bridge === undefined ? transport : 'stdio'
  for (const host of hosts) {
    const cell: Cell = { host, server, transport, ...(bridge && { bridge: `${bridge.name} (${bridge.side})` }) }
    const started = Date.now()
    await using process = new HostProcess(host.host)
    const counts = new Map<string, number>()
    const direct = await converse(process, spoken, launch ?? (await reached(served.target)), scenarios, counts)
    for (const way of ways) {
      const driven = way === 'merged' ? prefixing(process) : process
      const before = await written(journal)
      const through = await converse(driven, spoken, await reached(targets[way]()), scenarios, counts, restart)
      const isModern = { direct: agreedOnModern(direct), through: agreedOnModern(through) }
      // Where host and Trunkline do not come together, that is the one loss.
      const played = [...direct].filter(([scenario]) => through.has(scenario))
      for (const [scenario, transcript] of played)
        observations.push({
          cell,
          way,
          scenario,
          isModern,
          direct: transcript,
          through: way === 'merged' ? unprefixed(through.get(scenario)) : through.get(scenario),
        })
      const unanswered = (await written(journal)).slice(before.length)
      if (server.server.some((word) => word.includes(JOURNAL)))
        observations.push({
          cell,
          way,
          scenario: 'keep-alive: pings without an answer',
          isModern,
          direct: '',
          through: unanswered,
        })
      // Without a common revision there is nothing to compare with: these work through Trunkline.
      const isKept = host.option !== undefined || server.option !== undefined
      if (isKept && 'error' in (direct.get('connect') as Json))
        for (const scenario of SUCCEEDING) {
          const { error = 'none' } = (through.get(scenario) ?? { error: 'not played' }) as Json
          observations.push({ cell, way, scenario, isModern, direct: { error: 'none' }, through: { error } })
        }
    }
    if (prints !== undefined) {
      const [way = 'alone'] = ways
      const isModern = { direct: false, through: false }
      observations.push({
        cell,
        way,
        scenario: 'logs: what it prints on stdout',
        isModern,
        direct: prints,
        through: await logged(file, prints),
      })
    }
    if (process.unanswered.length > 0) throw new Error(`${cellName(cell)}: no answer to ${process.unanswered.join(', ')}`)
    log(`${cellName(cell)}: ${Date.now() - started} ms`)
  }
  return observations
}
