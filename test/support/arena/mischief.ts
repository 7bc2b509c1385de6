/** Faults that can be done to an arena, each for real. A fault ends by itself; what it takes until everybody is well is awaited. */
import type { FakeConnection } from '../fakes/connection.ts'
import type { Fault } from '../fault-proxy.ts'
import type { Arena, Seat } from './arena.ts'

export interface Mischief {
  /** Ids of RELIABILITY 4 and 3 that it stands for. */
  readonly id: string
  readonly name: string
  /** How likely it is beside the others; 1 unless given. */
  readonly weight?: number
  readonly does: (arena: Arena, random: () => number) => Promise<void> | void
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
const pick = <T>(items: readonly T[], random: () => number): T | undefined => items[Math.floor(random() * items.length)]

/** One living process of a server on pipes. */
const child = ({ seats }: Arena, random: () => number): FakeConnection | undefined =>
  pick(
    seats.flatMap(({ fake }) => fake.connections).filter(({ isOpen, pid }) => isOpen && pid !== undefined),
    random,
  )

const remote = ({ seats }: Arena, random: () => number): Seat | undefined =>
  pick(
    seats.filter(({ proxy }) => proxy !== undefined),
    random,
  )

/**
 * Ends the connections of a server that `chance` picks. One of 2026-07-28 over HTTP has none to end, and a fake of it whose one is dropped is
 * a server that is gone for good: what leads to it is reset.
 */
const disconnect = ({ seats }: Arena, { kind, fake }: Seat, chance: () => boolean = () => true): void => {
  if (kind === 'modern http') {
    const port = 'url' in fake.address ? Number(fake.address.url.port) : 0
    for (const { proxy } of seats) if (proxy?.target === port) proxy.reset()
    return
  }
  for (const connection of fake.connections) if (connection.isOpen && chance()) connection.drop()
}

/** A signal to a process that may have gone meanwhile. */
const signal = (pid: number | undefined, name: NodeJS.Signals): void => {
  try {
    if (pid !== undefined) process.kill(pid, name)
  } catch {
    // It has.
  }
}

/** One fault of the network below the gateway, for a while. */
const below =
  (fault: (random: () => number) => Fault, longestMs: number): Mischief['does'] =>
  async (arena, random) => {
    const proxy = remote(arena, random)?.proxy
    proxy?.set(fault(random))
    await pause(random() * longestMs)
    proxy?.set({ type: 'none' })
    proxy?.reset()
  }

/** The same between the hosts and the gateway. */
const above =
  (fault: (random: () => number) => Fault, longestMs: number): Mischief['does'] =>
  async ({ front }, random) => {
    front.set(fault(random))
    await pause(random() * longestMs)
    front.set({ type: 'none' })
    front.reset()
  }

const cut = (random: () => number): Fault => ({ type: 'cut', after: Math.floor(random() * 2_000) })
const GARBAGE = [
  '*** welcome ***\n',
  '{"jsonrpc":"2.0","id":1\n',
  '\u0000\u0001\u0002\n',
  '{"jsonrpc":"2.0","method":"notifications/nonsense"}\n',
  '[]\n',
  'null\n',
  '\n',
]

const FLOOD = 2_000
const LARGE = 'x'.repeat(4_000)
const largeTool = (at: number): Record<string, unknown> => ({
  name: `large${at}`,
  description: LARGE,
  inputSchema: { type: 'object' },
})

export const MISCHIEF: readonly Mischief[] = [
  { id: 'F-01', name: 'kill a child', weight: 4, does: (arena, random) => signal(child(arena, random)?.pid, 'SIGKILL') },
  {
    id: 'F-12',
    name: 'stop a child for a while',
    does: async (arena, random) => {
      const pid = child(arena, random)?.pid
      signal(pid, 'SIGSTOP')
      await pause(random() * 300)
      signal(pid, 'SIGCONT')
    },
  },
  { id: 'F-09', name: 'a child exits', weight: 4, does: (arena, random) => child(arena, random)?.drop() },
  {
    id: 'F-24',
    name: 'kill all children of a server',
    does: ({ seats }, random) => {
      const pipes = seats.filter(({ proxy }) => proxy === undefined)
      for (const { pid, isOpen } of pick(pipes, random)?.fake.connections ?? []) if (isOpen) signal(pid, 'SIGKILL')
    },
  },
  {
    id: 'F-05',
    name: 'garbage on stdout',
    weight: 4,
    does: (arena, random) => child(arena, random)?.stdout(Buffer.from(pick(GARBAGE, random) ?? '')),
  },
  {
    id: 'F-05',
    name: 'a flood of log messages',
    does: ({ seats }, random) => {
      const connection = pick(
        seats.flatMap(({ fake }) => fake.connections).filter(({ isOpen }) => isOpen),
        random,
      )
      for (let at = 0; at < FLOOD; at++) connection?.notify('notifications/message', { level: 'error', data: at })
    },
  },
  {
    id: 'F-05',
    name: 'a flood of announcements, with a large list',
    does: async ({ seats }, random) => {
      const fake = pick(seats, random)?.fake
      const tools = fake?.offers.tools ?? []
      tools.push(...Array.from({ length: 200 }, (_, at) => largeTool(at)))
      for (let at = 0; at < 20; at++) {
        fake?.changed('tools')
        await pause(random() * 20)
      }
      tools.splice(0, tools.length, ...tools.filter(({ description }) => description !== LARGE))
      fake?.changed('tools')
    },
  },
  {
    id: 'F-07',
    name: 'a server hangs: it answers neither handshakes nor lists',
    does: async (arena, random) => {
      const seat = pick(arena.seats, random)
      if (seat === undefined) return
      const methods = ['initialize', 'server/discover', 'tools/list']
      for (const method of methods) seat.fake.on(method, () => new Promise(() => undefined))
      disconnect(arena, seat, () => random() < 0.5)
      await pause(random() * 1_000)
      for (const method of methods) seat.fake.off(method)
      // What it took meanwhile is never answered: its connections end.
      disconnect(arena, seat)
    },
  },
  {
    id: 'F-04',
    name: 'a server flaps',
    does: async (arena, random) => {
      const seat = pick(arena.seats, random)
      for (let at = 0; at < 5; at++) {
        if (seat !== undefined) disconnect(arena, seat)
        await pause(random() * 100)
      }
    },
  },
  {
    id: 'F-25',
    name: 'a configuration file that is truncated while it is written',
    does: async (arena, random) => {
      await arena.truncate()
      arena.signal('SIGHUP')
      await pause(random() * 200)
      await arena.write({})
      arena.signal('SIGHUP')
    },
  },
  { id: 'F-11', name: 'a flood on stderr', does: (arena, random) => child(arena, random)?.stderr('no news\n'.repeat(20_000)) },
  {
    id: 'F-16',
    name: 'an HTTP server forgets its sessions',
    weight: 2,
    does: (arena, random) => {
      const seat = remote(arena, random)
      if (seat?.kind !== 'modern http') for (const connection of seat?.fake.connections ?? []) connection.drop()
    },
  },
  {
    id: 'F-15',
    name: 'an HTTP server refuses for a while',
    does: async (arena, random) => {
      const fake = remote(arena, random)?.fake
      const status = random() < 0.5 ? 429 : 503
      if (fake !== undefined)
        fake.intercept = (_, response) => {
          response.writeHead(status, { 'retry-after': '0' }).end()
          return true
        }
      await pause(random() * 200)
      if (fake !== undefined) fake.intercept = () => false
    },
  },
  {
    id: 'T-19',
    name: 'answers nobody asked for',
    does: (arena, random) => {
      const connection = pick(arena.seats, random)?.fake.connections.at(-1)
      const id = Math.floor(random() * 5_000)
      connection?.say(JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: '-1:forged' }] } }))
    },
  },
  {
    id: 'F-16',
    name: 'the era at a URL changes',
    weight: 2,
    // The servers behind two URLs change places, as a deployment would change one.
    does: ({ seats }, random) => {
      const of = (kind: Seat['kind']): Seat['proxy'] =>
        pick(
          seats.filter((seat) => seat.kind === kind),
          random,
        )?.proxy
      const [one, other] = [of('legacy http'), of('modern http')]
      if (one === undefined || other === undefined) return
      ;[one.target, other.target] = [other.target, one.target]
      if (random() < 0.5) for (const proxy of [one, other]) proxy.reset()
    },
  },
  { id: 'F-18', name: 'connections to a server are cut', weight: 3, does: below(cut, 300) },
  {
    id: 'F-18',
    name: 'connections to a server are reset',
    weight: 3,
    does: (arena, random) => remote(arena, random)?.proxy?.reset(),
  },
  { id: 'F-14', name: 'connections to a server are half-open', does: below(() => ({ type: 'swallow' }), 400) },
  { id: 'F-03', name: 'a server dribbles', does: below(() => ({ type: 'dribble', bytes: 7 }), 400) },
  { id: 'F-02', name: 'a server stalls', does: below(() => ({ type: 'stall' }), 400) },
  { id: 'F-07', name: 'a server cannot be reached', does: below(() => ({ type: 'refuse' }), 400) },
  { id: 'F-20', name: 'all hosts lose their connections', weight: 2, does: ({ front }) => front.reset() },
  { id: 'F-19', name: 'connections of hosts are cut', does: above(cut, 300) },
  { id: 'F-13', name: 'connections of hosts are half-open', does: above(() => ({ type: 'swallow' }), 300) },
  { id: 'F-21', name: 'hosts do not read', does: above(() => ({ type: 'stall' }), 300) },
  {
    id: 'F-27',
    name: 'the gateway is suspended',
    does: async (arena, random) => {
      arena.signal('SIGSTOP')
      await pause(random() * 300)
      arena.signal('SIGCONT')
    },
  },
  {
    id: 'F-25',
    name: 'a reload that adds a server and one that takes it away',
    does: async (arena, random) => {
      await arena.write({ servers: { passing: { command: process.execPath, args: ['-e', ''] } } })
      arena.signal('SIGHUP')
      await pause(random() * 200)
      await arena.write({})
      arena.signal('SIGHUP')
    },
  },
  {
    id: 'F-05',
    name: 'a list changes',
    does: ({ seats }, random) => pick(seats, random)?.fake.changed('tools'),
  },
  {
    id: 'F-23',
    name: 'the gateway is killed and started again',
    weight: 0.3,
    does: async (arena) => void (await arena.replace('SIGKILL')),
  },
  {
    id: 'F-22',
    name: 'the gateway is told to end and started again',
    weight: 0.3,
    does: async (arena) => void (await arena.replace('SIGTERM')),
  },
]

const TOTAL = MISCHIEF.reduce((sum, { weight = 1 }) => sum + weight, 0)

/** One of the table, by weight. */
export const choose = (random: () => number): Mischief => {
  let left = random() * TOTAL
  return MISCHIEF.find(({ weight = 1 }) => (left -= weight) < 0) ?? MISCHIEF[0]!
}
