/**
 * A gateway in a process of its own between servers of every transport and era on one side and any number of hosts on the other,
 * both in this process under the eyes of one referee. Where faults are to come, every way in and out leads through a proxy.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { everyFakeKind, FakeDownstream } from '../fake-downstream.ts'
import type { FakeKind } from '../fake-downstream.ts'
import { Journal } from '../fakes/journal.ts'
import type { Turn } from '../fakes/turn.ts'
import { openFaultProxy } from '../fault-proxy.ts'
import type { FaultProxy } from '../fault-proxy.ts'
import { isAlive } from '../pids.ts'
import { Referee } from '../referee.ts'
import type { Provocation, Vitals } from './probe.ts'
import { PROGRAM } from '../program.ts'

export interface Seat {
  readonly key: string
  readonly kind: FakeKind
  readonly fake: FakeDownstream
  /** Between gateway and server; none for one on pipes. */
  readonly proxy: FaultProxy | undefined
  /** Nonces that the server has answered after a delay. */
  readonly answered: Journal<number>
}

export interface ArenaOptions {
  /** Servers of each kind. */
  readonly perKind: number
  /** Proxies on every way, and a gateway that tries lost servers again at once; else the program itself and nothing between. */
  readonly isFaulty: boolean
  /** Options of Node for the gateway's process. */
  readonly nodeArgs?: readonly string[]
  /** Members of the configuration beside `servers`. */
  readonly config?: Readonly<Record<string, unknown>>
}

export interface Arena extends AsyncDisposable {
  readonly referee: Referee
  readonly seats: readonly Seat[]
  /** Where hosts connect: a proxy before the gateway that outlives it. */
  readonly front: FaultProxy
  /** Through the front proxy, where there are proxies. */
  readonly url: URL
  /** The gateway itself; another after `replace`. */
  readonly direct: URL
  readonly pid: number
  vitals(): Promise<Vitals>
  signal(signal: NodeJS.Signals): void
  /** Makes something go wrong inside of the gateway's process. */
  provoke(what: Provocation): void
  /** Resolves with the exit code when the gateway ends by itself. */
  ended(): Promise<number | null>
  /** Ends the gateway with a signal, waits for its end and starts another; resolves with the exit code of the old one. */
  replace(signal: NodeJS.Signals): Promise<number | null>
  /** Writes another configuration; the gateway hears of it by `signal('SIGHUP')`. */
  write(more: Readonly<Record<string, unknown>>): Promise<void>
  /** Empties the configuration file, as a program does that writes it in place. */
  truncate(): Promise<void>
  /** Every process of a server that is alive, whichever gateway started it. */
  children(): number[]
  /** Lets the servers forget what is over. */
  tidy(): void
  /** Ends the gateway and resolves with its exit code. */
  stop(): Promise<number | null>
}

const script = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

export const openArena = async ({ perKind, isFaulty, config = {}, nodeArgs = [] }: ArenaOptions): Promise<Arena> => {
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'arena-'))
  stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  const referee = new Referee()
  const seats: Seat[] = []
  for (const kind of everyFakeKind)
    for (let at = 0; at < perKind; at++)
      seats.push(await takeSeat(stack, `${kind.replace(' ', '-')}${at}`, kind, isFaulty, referee))
  const file = join(folder, 'trunkline.json')
  const write = (more: Readonly<Record<string, unknown>>): Promise<void> =>
    writeFile(
      file,
      JSON.stringify({
        reload: { watch: false },
        ...config,
        ...more,
        // Processes are killed here all the time.
        defaults: { ...(config['defaults'] as object), limits: { restarts: 1_000_000 } },
        servers: { ...serversOf(seats), ...(more['servers'] as object) },
        state: { dir: join(folder, 'state') },
      }),
    )
  await write({})
  const front = stack.use(await openFaultProxy(0))
  const start = (): Promise<ChildProcess> => startProcess(isFaulty, file, front, nodeArgs)
  let child = await start()
  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> => {
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
    return child.exitCode
  }
  stack.defer(async () => void (await stop('SIGKILL')))
  const owned = stack.move()
  return {
    referee,
    seats,
    front,
    get url() {
      return urlOf(isFaulty ? front.port : front.target)
    },
    get direct() {
      return urlOf(front.target)
    },
    get pid() {
      return child.pid ?? 0
    },
    vitals: async () => {
      const answer = once(child, 'message') as Promise<[Vitals]>
      child.send('vitals')
      return (await answer)[0]
    },
    signal: (signal) => void child.kill(signal),
    provoke: (what) => void child.send(what),
    ended: async () =>
      child.exitCode === null && child.signalCode === null ? ((await once(child, 'exit')) as [number | null])[0] : child.exitCode,
    replace: async (signal) => {
      const code = await stop(signal)
      child = await start()
      return code
    },
    write,
    truncate: () => writeFile(file, ''),
    children: () =>
      seats.flatMap(({ fake }) => fake.connections.flatMap(({ pid }) => (pid !== undefined && isAlive(pid) ? [pid] : []))),
    tidy: () => {
      for (const { fake, answered } of seats) {
        fake.forget()
        answered.clear()
        const { connections } = fake
        const kept = connections.filter(({ isOpen, pid }) => isOpen || (pid !== undefined && isAlive(pid)))
        connections.splice(0, connections.length, ...kept)
      }
    },
    stop: () => stop(),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

const urlOf = (port: number): URL => new URL(`http://127.0.0.1:${port}/mcp`)

const takeSeat = async (
  stack: AsyncDisposableStack,
  key: string,
  kind: FakeKind,
  isFaulty: boolean,
  referee: Referee,
): Promise<Seat> => {
  const answered = new Journal<number>()
  const fake = stack.use(
    await FakeDownstream.start({ kind, tools: ['echo'], on: { 'tools/call': (turn) => echo(turn, referee, answered) } }),
  )
  const { address } = fake
  const proxy = isFaulty && 'url' in address ? stack.use(await openFaultProxy(Number(address.url.port))) : undefined
  return { key, kind, fake, proxy, answered }
}

const serversOf = (seats: readonly Seat[]): Record<string, object> =>
  Object.fromEntries(
    seats.map(({ key, kind, fake, proxy }) => [
      key,
      'args' in fake.address
        ? fake.address
        : {
            url: `http://127.0.0.1:${proxy?.port ?? fake.address.url.port}/mcp`,
            ...(kind === 'legacy sse' && { transport: 'sse' }),
          },
    ]),
  )

/** What the arguments of a call ask of a server. */
export interface Wish {
  readonly nonce: number
  /** Bytes beside the nonce. */
  readonly size?: number
  /** Messages of progress before the answer. */
  readonly progress?: number
  readonly delayMs?: number
}

const echo = async (turn: Turn, referee: Referee, answered: Journal<number>): Promise<Record<string, unknown> | undefined> => {
  const { nonce, size = 0, progress = 0, delayMs = 0 } = turn.params['arguments'] as Wish
  referee.executed(nonce)
  for (let step = 1; step <= progress; step++) turn.progress(step)
  if (delayMs > 0) {
    await new Promise((resolve) => setTimeout(resolve, delayMs))
    answered.push(nonce)
  }
  return { content: [{ type: 'text', text: `${nonce}:${'x'.repeat(size)}` }] }
}

const startProcess = async (
  isFaulty: boolean,
  file: string,
  front: FaultProxy,
  nodeArgs: readonly string[],
): Promise<ChildProcess> => {
  const program = isFaulty ? [script('gateway.ts'), file] : [PROGRAM, 'up', '-c', file, '--listen', '127.0.0.1:0']
  const child = spawn(process.execPath, [...nodeArgs, '--expose-gc', '--import', script('probe.ts'), ...program], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const ready = Promise.withResolvers<number>()
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-4_000)
    const port = /trunkline is ready: http:\/\/127\.0\.0\.1:(\d+)\//.exec(said)?.[1]
    if (port !== undefined) ready.resolve(Number(port))
  })
  child.once('exit', (code, signal) => ready.reject(new Error(`the gateway ended with ${code ?? signal}: ${said}`)))
  front.target = await ready.promise
  return child
}
