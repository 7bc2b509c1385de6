/** What happens to the whole process: descriptors, the event loop, exceptions that nobody caught, SIGKILL. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { openArena } from '../support/arena/arena.ts'
import type { Arena } from '../support/arena/arena.ts'
import { openCaller } from '../support/arena/callers.ts'
import { send } from '../support/fakes/raw-http.ts'
import { gatewayHome } from '../support/gateway-process.ts'
import { isAlive } from '../support/pids.ts'

/** Begins one call of each server and waits until all have arrived; how they end is the referee's. */
const beginCalls = async ({ referee, seats, url }: Arena): Promise<() => Promise<void>> => {
  const callers = await Promise.all(seats.map(() => openCaller('modern', url, 1)))
  const ends = seats.map(async ({ key }, at) => {
    const nonce = referee.begin()
    for (const end of await callers[at].call(0, `${key}__echo`, { nonce, delayMs: 60_000 })) referee.ended(nonce, end)
  })
  await Promise.all(seats.map(({ fake }) => fake.until('tools/call')))
  return async () => {
    await Promise.all(ends)
    await Promise.all(callers.map((caller) => caller.leave(true)))
  }
}

const called = async (arena: Arena, key: string): Promise<string> => {
  const caller = await openCaller('modern', arena.url, 1)
  const nonce = arena.referee.begin()
  const [end] = await caller.call(0, `${key}__echo`, { nonce })
  arena.referee.ended(nonce, end)
  await caller.leave(true)
  return end.type === 'failed' ? end.kind : end.type
}

describe('F-31 what nobody caught', () => {
  test.each(['throw', 'reject'] as const)(
    '(%s) ends the process in order: exit 70, no call lost, no process left',
    async (what) => {
      await using arena = await openArena({ perKind: 1, isFaulty: false, config: { reload: { drain: '6s', watch: false } } })
      const settled = await beginCalls(arena)
      const children = arena.children()
      expect(children.length).toBeGreaterThan(0)
      arena.provoke(what)
      expect(await arena.ended()).toBe(70)
      await settled()
      expect(arena.referee.findings).toEqual([])
      expect(arena.referee.verdict).toMatchObject({ calls: 5, answered: 0, lost: 0 })
      expect(children.filter(isAlive)).toEqual([])
    },
  )
})

test('F-30 while the event loop is late calls are refused with 503, health is not; afterwards all is as before', async () => {
  await using arena = await openArena({ perKind: 1, isFaulty: false })
  expect(await called(arena, 'modern-http0')).toBe('answered')
  arena.provoke('lag')
  while ((await called(arena, 'modern-http0')) !== 'http 503');
  expect((await send(new URL('/healthz', arena.url), { method: 'GET' })).status).toBe(200)
  arena.provoke('recover')
  while ((await called(arena, 'modern-http0')) !== 'answered');
  expect(arena.referee.isClean).toBe(true)
})

test('F-23 of a gateway that is killed no process is left, and the next one serves', async () => {
  await using arena = await openArena({ perKind: 1, isFaulty: true })
  const settled = await beginCalls(arena)
  const children = arena.children()
  expect(children.length).toBeGreaterThan(0)
  await arena.replace('SIGKILL')
  await settled()
  expect(arena.referee.verdict).toMatchObject({ calls: 5, broken: 5 })
  for (const { key } of arena.seats) expect(await called(arena, key)).toBe('answered')
  expect(children.filter(isAlive)).toEqual([])
})

test.runIf(process.platform === 'linux')(
  'F-29 without descriptors it goes on: connections wait or are refused, and come again',
  async () => {
    await using home = await gatewayHome()
    const file = await home.write('config', { servers: {} })
    const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
    const command = 'ulimit -n 64; exec "$@"'
    const child = spawn('sh', ['-c', command, 'sh', process.execPath, main, 'up', '-c', file, '--listen', '127.0.0.1:0'], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const said: string[] = []
    const lines = createInterface({ input: child.stderr })
    const ready = Promise.withResolvers<URL>()
    lines.on('line', (line) => {
      said.push(line)
      const url = /ready: (\S+)$/.exec(line)?.[1]
      if (url !== undefined) ready.resolve(new URL(url))
    })
    const url = await ready.promise
    const health = async (): Promise<number> =>
      (await send(new URL('/healthz', url), { method: 'GET' }).catch(() => undefined))?.status ?? 0
    const sockets: Socket[] = []
    for (let at = 0; at < 100; at++) {
      const socket = connect(Number(url.port), '127.0.0.1')
      socket.on('error', () => undefined)
      sockets.push(socket)
      await once(socket, 'connect')
    }
    for (const socket of sockets) socket.destroy()
    while ((await health()) !== 200);
    expect(said.join('\n')).toContain('few file descriptors (ulimit -n)')
    const ended = once(child, 'exit')
    child.kill()
    expect(await ended).toEqual([0, null])
  },
)
