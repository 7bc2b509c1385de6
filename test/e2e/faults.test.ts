/** What happens to the whole process: descriptors, the event loop, exceptions that nobody caught, SIGKILL. */
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { openArena } from '../support/arena/arena.ts'
import type { Arena } from '../support/arena/arena.ts'
import { openCaller } from '../support/arena/callers.ts'
import { send } from '../support/fakes/raw-http.ts'
import { FakeDownstream } from '../support/fake-downstream.ts'
import { openFullDisk } from '../support/faults/full-disk.ts'
import { killRounds } from '../support/faults/rounds.ts'
import { gatewayHome, startGatewayAfter, startGatewayProcess } from '../support/gateway-process.ts'
import { isAlive } from '../support/pids.ts'

/** Begins one call of each server and waits until all have arrived; how they end is the referee's. */
const beginCalls = async ({ referee, seats, url }: Arena): Promise<() => Promise<void>> => {
  const callers = await Promise.all(seats.map(() => openCaller('modern', url, 1)))
  const ends = seats.map(async ({ key }, at) => {
    const nonce = referee.begin()
    for (const end of await callers[at]!.call(0, `${key}__echo`, { nonce, delayMs: 60_000 })) referee.ended(nonce, end)
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
  arena.referee.ended(nonce, end!)
  await caller.leave(true)
  return end!.type === 'failed' ? end!.kind : end!.type
}

describe('F-31 an uncaught error', () => {
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

test('F-30 with its heap really full it opens no session, goes on with what it has, and is well again when there is room', async () => {
  // The collector that finds no room makes the event loop late, too.
  const config = { listen: { limits: { loop_lag: '1h' } } }
  await using arena = await openArena({ perKind: 1, isFaulty: false, nodeArgs: ['--max-old-space-size=300'], config })
  const session = await openCaller('legacy', arena.url, 1)
  arena.provoke('fill')
  const initialize = {
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } }),
  }
  let refused = await send(arena.url, initialize)
  while (refused.status !== 503) refused = await send(arena.url, initialize)
  expect(await refused.body).toMatch(/the heap is 9\d % full/)
  expect((await send(new URL('/healthz', arena.url), { method: 'GET' })).status).toBe(200)
  expect(await called(arena, 'modern-http0')).toBe('answered')
  const nonce = arena.referee.begin()
  for (const end of await session.call(0, 'modern-http0__echo', { nonce })) arena.referee.ended(nonce, end)
  arena.provoke('recover')
  while ((await send(arena.url, initialize)).status !== 200);
  await session.leave(true)
  expect(arena.referee.findings).toEqual([])
  expect(arena.referee.verdict).toMatchObject({ answered: 2, failed: {} })
})

test('F-27 after SIGSTOP and SIGCONT nothing has expired: calls under way are answered, sessions and servers are as they were', async () => {
  const short = { listen: { limits: { session_idle: '5s' } }, defaults: { timeouts: { idle: '5s' } } }
  await using arena = await openArena({ perKind: 1, isFaulty: false, config: short })
  const { referee, seats } = arena
  const caller = await openCaller('legacy', arena.url, 1)
  const nonces = seats.map(({ key }) => [key, referee.begin()] as const)
  const hosts = await Promise.all(nonces.map(() => openCaller('modern', arena.url, 1)))
  const ends = nonces.map(async ([key, nonce], at) => {
    for (const end of await hosts[at]!.call(0, `${key}__echo`, { nonce, delayMs: 7_000 })) referee.ended(nonce, end)
  })
  await Promise.all(seats.map(({ fake }) => fake.until('tools/call')))
  const children = arena.children()
  arena.signal('SIGSTOP')
  // Servers take longer than any limit of the gateway that is stopped meanwhile.
  await Promise.all(nonces.map(([, nonce], at) => seats[at]!.answered.until((one) => one === nonce)))
  arena.signal('SIGCONT')
  await Promise.all(ends)
  const last = referee.begin()
  for (const end of await caller.call(0, 'modern-http0__echo', { nonce: last })) referee.ended(last, end)
  expect(referee.findings).toEqual([])
  expect(referee.verdict).toMatchObject({ answered: seats.length + 1, failed: {}, broken: 0 })
  expect(arena.children()).toEqual(expect.arrayContaining(children))
  await Promise.all([caller, ...hosts].map((one) => one.leave(true)))
})

test('F-23 killed at random moments under load it leaves no process behind, and the next one serves', async () => {
  const { odd } = await killRounds(3, 5)
  expect(odd).toEqual([])
})

test.runIf(process.platform === 'linux')('T-24 JSON bombs of every kind cost the process 100 MiB at most', async () => {
  await using arena = await openArena({ perKind: 1, isFaulty: false })
  const memory = (what: string): number =>
    Number(new RegExp(`^${what}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${arena.pid}/status`, 'latin1'))?.[1]) / 1024
  expect(await called(arena, 'modern-http0')).toBe('answered')
  const before = memory('VmRSS')
  const wide = (piece: string, megabytes: number): string => piece.repeat(Math.floor((megabytes * 1024 * 1024) / piece.length))
  const bombs = [
    '['.repeat(2_000_000),
    `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":[${wide('{},', 3.9)}{}]}}`,
    `{"jsonrpc":"2.0","id":1,"method":"x","params":{${Array.from({ length: 300_000 }, (_, at) => `"k${at}":1`).join(',')}}}`,
    `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":${wide('{"a":', 3)}1${wide('}', 0.6)}}}`,
    `[${wide('1,', 3.9)}1]`,
  ]
  for (const body of bombs.flatMap((bomb) => [bomb, bomb])) expect([400, 413]).toContain((await send(arena.url, { body })).status)
  expect(memory('VmHWM') - before).toBeLessThanOrEqual(100)
  expect(await called(arena, 'modern-http0')).toBe('answered')
})

describe('F-26 with the disk really full', () => {
  test('what was kept stays as it was, it is told, and everything is served; then the process ends as usual', async () => {
    await using home = await gatewayHome()
    await using a = await FakeDownstream.start({ kind: 'modern http', tools: ['t'] })
    const file = await home.write('config', { servers: { a: { url: 'url' in a.address ? a.address.url.href : '' } } })
    await using disk = await openFullDisk(join(home.folder, 'config-state'))
    const first = await startGatewayProcess(file)
    await first.saw((said) => said.some((line) => line.includes('server is ready')))
    expect(await first.stop()).toBe(0)
    const stored = readdirSync(disk.folder, { recursive: true, encoding: 'utf8' }).find((name) => name.endsWith('server-a.json'))
    const before = readFileSync(join(disk.folder, stored ?? ''))
    disk.fill()
    a.offers.tools.push({ name: 'later', inputSchema: { type: 'object' } })
    const second = await startGatewayAfter(disk.words, file)
    await second.saw((said) => said.some((line) => line.includes('cannot be')))
    await second.saw((said) => said.some((line) => line.includes('server is ready')))
    const caller = await openCaller('modern', new URL(second.url), 1)
    const [end] = await caller.call(0, 'a__later', { nonce: 1 })
    expect(end).toMatchObject({ type: 'answered' })
    await caller.leave(true)
    expect(readFileSync(join(disk.folder, stored ?? ''))).toEqual(before)
    expect(await second.stop()).toBe(0)
  })
})

describe.runIf(process.platform === 'linux')('F-23 the real server behind a wrapper', () => {
  const script = fileURLToPath(new URL('../support/children/fake-server.ts', import.meta.url))

  test('is swept by the next start, three times over, and other processes live on', async () => {
    await using home = await gatewayHome()
    const log = join(home.folder, 'servers.log')
    // The shell dies with the gateway; the server behind it ignores the end of its stdin.
    const command = `"${process.execPath}" "${script}" stubborn "${log}"; true`
    const file = await home.write('config', { servers: { a: { command: 'sh', args: ['-c', command] } } })
    const started = (): number[] => [...readFileSync(log, 'utf8').matchAll(/^start (\d+)$/gm)].map(([, pid]) => Number(pid))
    const bystander = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 600_000)'], { detached: true, stdio: 'ignore' })
    try {
      const left: number[] = []
      for (let round = 0; round < 3; round++) {
        const gateway = await startGatewayProcess(file)
        await gateway.saw((said) => said.some((line) => line.includes('server is ready')))
        expect(left.filter(isAlive)).toEqual([])
        process.kill(gateway.pid, 'SIGKILL')
        await gateway.stop()
        left.push(...started().filter(isAlive))
      }
      // What the sweep is for: the kernel has ended the shells alone.
      expect(left.length).toBeGreaterThanOrEqual(3)
      const last = await startGatewayProcess(file)
      await last.saw((said) => said.some((line) => line.includes('server is ready')))
      expect(await last.stop()).toBe(0)
      expect(started().filter(isAlive)).toEqual([])
      expect(isAlive(bystander.pid ?? 0)).toBe(true)
    } finally {
      bystander.kill('SIGKILL')
      if (existsSync(log)) for (const pid of started().filter(isAlive)) process.kill(pid, 'SIGKILL')
    }
  })
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
