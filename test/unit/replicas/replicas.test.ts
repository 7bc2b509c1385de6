/** Which replica has a session, where several act at a time (decision 0172). Nothing listens at the address of one that is lost. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { Seal } from '../../../src/auth/seal.ts'
import { formatHome, homeOf } from '../../../src/replicas/home.ts'
import type { Home } from '../../../src/replicas/home.ts'
import type { ReplicaTimes } from '../../../src/replicas/lease.ts'
import { ReplicaAway, Replicas } from '../../../src/replicas/replicas.ts'
import type { HttpRequest } from '../../../src/transport/http1/server/request/http-request.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import { StoreDown } from '../../../src/store/store.ts'
import { freePort } from '../../support/free-port.ts'
import { listening } from '../../support/listening.ts'

const quiet = { info: () => undefined, warn: () => undefined }
const SESSION = 'of-a-host'
const KEY = `session:${createHash('sha256').update(SESSION).digest('base64url').slice(0, 22)}`

const open: Replicas[] = []
afterEach(() => open.splice(0).forEach((replicas) => replicas.close()))

const lostHome = async (instance: string): Promise<Home> => ({ instance, url: `http://127.0.0.1:${await freePort()}` })

/** A request to be passed on; `begun` is called with the status of its answer. Cast: what passing on needs of a request. */
const requestOf = (begun: (status: number) => void = () => undefined): HttpRequest =>
  ({
    method: 'POST',
    path: '/mcp',
    query: '',
    client: '',
    headers: () => ({}),
    onDisconnect: () => undefined,
    replyInPieces: (status: number) => ({ begin: () => begun(status), write: () => undefined, end: () => undefined }),
  }) as unknown as HttpRequest

/** A replica with a lease, in a store that is no longer young. */
const startReplica = async (store: MemoryStore, times?: ReplicaTimes, sessionMaxMs?: number): Promise<Replicas> => {
  const replicas = new Replicas({
    self: await lostHome('self'),
    seal: new Seal({ keys: [Buffer.alloc(32, 7)] }),
    store,
    log: quiet,
    ...(times !== undefined && { times }),
    ...(sessionMaxMs !== undefined && { sessionMaxMs: () => sessionMaxMs }),
  })
  open.push(replicas)
  await replicas.start(async () => undefined)
  await store.delete('epoch:young')
  return replicas
}

/** Calls back before a fence is set: between the claim of a session and the second look. */
class WatchedStore extends MemoryStore {
  onFence: () => Promise<void> = async () => undefined
  override async set(...given: Parameters<MemoryStore['set']>): Promise<void> {
    if (given[0].startsWith('fence:')) await this.onFence()
    return super.set(...given)
  }
}

test('the name of a replica is read as it was written, and nothing else is one', () => {
  const home = { instance: 'a', url: 'http://127.0.0.1:1/x' }
  expect(homeOf(formatHome(home))).toEqual(home)
  for (const text of ['', 'a', ' http://127.0.0.1:1', 'a http://127.0.0.1:1 b']) expect(homeOf(text), text).toBeUndefined()
})

test('all replicas are listed, also where one has a lease that this version does not understand', async () => {
  const store = new MemoryStore()
  await store.append('replicas', ['other'], 10, 60_000)
  const replicas = await startReplica(store)
  for (const lease of ['', 'null', 'url=http://z:1']) {
    await store.set('replica:other', lease, 60_000)
    const all = (await replicas.list()) ?? []
    expect(all.find(({ isSelf }) => !isSelf)).toEqual({ url: '', isSelf: false })
    expect(all.find(({ isSelf }) => isSelf)?.url).toMatch(/^http/)
  }
})

test('F-28 a claim that is not sure in the end is given back to the replica that had the session, not to where it began', async () => {
  const store = new WatchedStore()
  const replicas = await startReplica(store)
  const [origin, taker] = [await lostHome('origin'), await lostHome('taker')]
  await store.set(KEY, formatHome(taker), 60_000)
  store.onFence = () => store.set('epoch:young', '1', 60_000)
  await expect(replicas.locate(formatHome(origin), SESSION)).rejects.toThrow(ReplicaAway)
  expect(await store.get(KEY)).toBe(formatHome(taker))
  store.onFence = async () => undefined
  await store.delete('epoch:young')
  expect(await replicas.locate(formatHome(origin), SESSION)).toBeUndefined()
  expect([await store.get(KEY), replicas.counts.takenOver]).toEqual([replicas.home, 1])
})

test('F-28 a value of another program at the key of a session is replaced by the takeover, which others see then', async () => {
  const store = new MemoryStore()
  const replicas = await startReplica(store)
  const lost = await lostHome('lost')
  await store.set(KEY, 'of another program', 60_000)
  expect(await replicas.locate(formatHome(lost), SESSION)).toBeUndefined()
  expect(await store.get(KEY)).toBe(replicas.home)
})

test('F-28 a request that was passed on waits until the takeover of its session is sure', async () => {
  const store = new WatchedStore()
  const replicas = await startReplica(store)
  const origin = await lostHome('origin')
  const [claimed, goOn] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()]
  store.onFence = async () => {
    claimed.resolve(undefined)
    await goOn.promise
    await store.set('epoch:young', '1', 60_000)
  }
  const taking = replicas.locate(formatHome(origin), SESSION).catch((error: unknown) => error)
  await claimed.promise
  const isOwner = replicas.isOwner(formatHome(origin), SESSION)
  goOn.resolve(undefined)
  expect(await isOwner).toBe(false)
  expect(await taking).toBeInstanceOf(ReplicaAway)
})

test('F-28 who finds that another replica has claimed a session fences the lost one, too: the other one may not have come so far', async () => {
  const store = new MemoryStore()
  const replicas = await startReplica(store)
  const [origin, taker] = [await lostHome('origin'), await lostHome('taker')]
  await store.set(KEY, formatHome(taker), 60_000)
  await replicas.locate(formatHome(origin), SESSION)
  expect(await store.get('fence:origin')).toBeDefined()
})

test("F-28 while the store is young a session that is not here is nobody's, though it began here", async () => {
  const store = new MemoryStore()
  const replicas = await startReplica(store)
  expect(await replicas.isOwner(replicas.home, SESSION)).toBe(true)
  await store[Symbol.asyncDispose]()
  await expect(replicas.isOwner(replicas.home, SESSION)).rejects.toThrow(StoreDown)
  await expect(replicas.locate(replicas.home, SESSION)).rejects.toThrow(StoreDown)
})

test('F-28 a replica is watched for as long as a request waits for it, and no longer', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  // Another process at the address: without its mark its answer is not relayed.
  const peer = createServer()
  await using opened = await listening(peer)
  const replicas = new Replicas({
    self: await lostHome('self'),
    seal: new Seal({ keys: [Buffer.alloc(32, 7)] }),
    store: undefined,
    log: quiet,
    times: { believedMs: 10, leaseMs: 100, renewMs: 50, lookMs: 10 },
  })
  open.push(replicas)
  const request = { method: 'POST', path: '/mcp', query: 'a=1', client: '', headers: () => ({}), onDisconnect: () => undefined }
  const to = { instance: 'peer', url: opened.url }
  const arrived = once(peer, 'request') as Promise<[{ url: string }, { end(): void }]>
  // Cast: what passing on needs of a request.
  const passed = replicas.forward(request as unknown as HttpRequest, Buffer.from('{}'), to)
  const [{ url }, response] = await arrived
  expect(url).toBe('/mcp?a=1')
  expect(vi.getTimerCount()).toBe(1)
  response.end()
  expect(await passed).toBe('refused')
  vi.advanceTimersByTime(10)
  expect(vi.getTimerCount()).toBe(0)
})

/** A replica behind a real listener, the number of probes that have come to it, and what it has served and logged. */
const startPeer = async (isMarked: boolean) => {
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/replica') === true && ++peer.probes === peer.marksAt) peer.isMarked = true
    const headers: Record<string, string> = {}
    const [path, query = ''] = request.url!.split('?')
    const given = {
      path,
      query,
      header: (name: string) => request.headers[name],
      addHeaders: (more: Record<string, string>) => void Object.assign(headers, more),
      reply: (status: number) => void response.writeHead(status, peer.isMarked ? headers : {}).end(),
    }
    // Cast: what a probe needs of a request.
    if (peer.replicas.receives(given as unknown as HttpRequest)) return
    peer.served++
    response.writeHead(404, peer.isMarked ? headers : {}).end()
  })
  const opened = await listening(server)
  onTestFinished(() => opened[Symbol.asyncDispose]())
  const self = { instance: 'peer', url: opened.url }
  const warnings: unknown[][] = []
  const log = { ...quiet, warn: (...said: unknown[]) => void warnings.push(said) }
  const peer = {
    self,
    replicas: new Replicas({ self, seal: new Seal({ keys: [Buffer.alloc(32, 7)] }), store: undefined, log }),
    probes: 0,
    served: 0,
    warnings,
    isMarked,
    /** The probe that is the first to be marked. */
    marksAt: Infinity,
  }
  open.push(peer.replicas)
  return peer
}

test('a replica whose URL leads to nothing, or to another process, says so once in its log', async () => {
  const peer = await startPeer(true)
  await peer.replicas.checkUrl()
  expect([peer.probes, peer.warnings]).toEqual([1, []])
  const check = async (url: string): Promise<unknown[][]> => {
    const warnings: unknown[][] = []
    const replicas = new Replicas({
      self: { instance: 'self', url },
      seal: new Seal({ keys: [Buffer.alloc(32, 7)] }),
      store: undefined,
      log: { ...quiet, warn: (...said: unknown[]) => void warnings.push(said) },
      times: { believedMs: 100, leaseMs: 100, renewMs: 5, lookMs: 10 },
    })
    open.push(replicas)
    await replicas.checkUrl()
    return warnings
  }
  const text = expect.stringContaining('(replicas.url)')
  const { url: nothing } = await lostHome('other')
  expect(await check(nothing)).toEqual([[{ url: nothing, reason: expect.stringContaining('ECONNREFUSED') }, text]])
  const { url } = peer.self
  expect(await check(url)).toEqual([[{ url, reason: expect.stringContaining('another process answers there') }, text]])
})

test('a replica whose name is published only after its start warns of nothing, and neither does one that ends meanwhile', async () => {
  const peer = await startPeer(false)
  const warnings: unknown[][] = []
  const replicas = new Replicas({
    self: peer.self,
    seal: new Seal({ keys: [Buffer.alloc(32, 7)] }),
    store: undefined,
    log: { ...quiet, warn: (...said: unknown[]) => void warnings.push(said) },
    times: { believedMs: 100, leaseMs: 100, renewMs: 20, lookMs: 10 },
  })
  open.push(replicas)
  peer.marksAt = 3
  await replicas.checkUrl()
  expect(peer.probes).toBe(3)
  peer.isMarked = false
  const ending = replicas.checkUrl()
  replicas.close()
  await ending
  expect(warnings).toEqual([])
})

/** Replicas that believe for a minute that a peer is alive. */
const startBelieving = async (): Promise<Replicas> => {
  const replicas = new Replicas({
    self: await lostHome('self'),
    seal: new Seal({ keys: [Buffer.alloc(32, 7)] }),
    store: undefined,
    log: quiet,
    times: { believedMs: 60_000, leaseMs: 100, renewMs: 50, lookMs: 10 },
  })
  open.push(replicas)
  return replicas
}

test('F-28 a replica that is alive is believed for a while; one that has ended is asked again each time, once at a time', async () => {
  const replicas = await startBelieving()
  const [alive, other] = [await startPeer(true), await startPeer(false)]
  const aliveHome = formatHome(alive.self)
  for (let i = 0; i < 3; i++) expect(await replicas.locate(aliveHome, undefined)).toEqual(alive.self)
  expect(alive.probes).toBe(1)
  const otherHome = formatHome({ ...other.self, instance: 'other' })
  for (let i = 0; i < 2; i++)
    expect(await Promise.all([replicas.locate(otherHome, undefined), replicas.locate(otherHome, undefined)])).toEqual([
      undefined,
      undefined,
    ])
  expect(other.probes).toBe(2)
})

test('F-28 a replica is believed to be alive after it has answered a request, and asked again after one that it did not answer', async () => {
  const replicas = await startBelieving()
  const peer = await startPeer(true)
  const home = formatHome(peer.self)
  const replied: number[] = []
  const request = requestOf((status) => replied.push(status))
  const forward = (): Promise<string> => replicas.forward(request, Buffer.from('{}'), peer.self)
  expect(await replicas.locate(home, undefined)).toEqual(peer.self)
  expect([await forward(), replied]).toEqual(['answered', [404]])
  expect(await replicas.locate(home, undefined)).toEqual(peer.self)
  expect(peer.probes).toBe(1)
  // Another process listens at the address now.
  peer.isMarked = false
  expect([await forward(), replied]).toEqual(['refused', [404]])
  expect(await replicas.locate(home, undefined)).toBeUndefined()
  expect(peer.probes).toBe(2)
})

test('F-28 a replica that may not serve now answers a probe as one that cannot be reached, not as one that has ended', async () => {
  const replicas = await startReplica(new MemoryStore(), { believedMs: 10, leaseMs: 10_000, renewMs: 5_000, lookMs: 10 })
  const peer = await startPeer(true)
  const mayServe = vi.spyOn(peer.replicas, 'mayServe').mockResolvedValue(false)
  // It is waited for until its lease has ended.
  const located = replicas.locate(formatHome(peer.self), undefined)
  await vi.waitFor(() => expect(peer.probes).toBeGreaterThan(2), { timeout: 5_000 })
  mayServe.mockResolvedValue(true)
  expect(await located).toEqual(peer.self)
})

test.each([
  ['4 min 59 s', 299_000, ['answered', 1, 0]],
  ['more than 5 min', 301_000, ['refused', 0, 1]],
])(
  'T-21 F-27 a request of a replica whose clock differs by %s is served once or not at all, and nothing is taken over',
  async (_, apartMs, ends) => {
    for (const sign of [1, -1]) {
      const peer = await startPeer(true)
      const replicas = new Replicas({
        self: await lostHome('self'),
        seal: new Seal({ keys: [Buffer.alloc(32, 7)] }),
        store: undefined,
        log: quiet,
        now: () => Date.now() + sign * apartMs,
      })
      open.push(replicas)
      expect(await replicas.locate(formatHome(peer.self), SESSION)).toEqual(peer.self)
      const ended: string[] = []
      for (let at = 0; at < 2; at++) ended.push(await replicas.forward(requestOf(), Buffer.from('{}'), peer.self))
      const [end, served, warnings] = ends
      expect([ended, peer.served]).toEqual([[end, end], 2 * Number(served)])
      // Once for each replica.
      expect(peer.warnings).toHaveLength(Number(warnings))
      if (warnings === 1)
        expect(peer.warnings[0]).toEqual([
          { replica: 'self', apartMs: expect.closeTo(sign * apartMs, -4) as number },
          'the clocks of two replicas differ by more than 5 min: requests between them are refused',
        ])
    }
  },
)

test('T-21 a mark of another key, or for another process, is none of a replica; without one a request is a host’s', async () => {
  const own = new Seal({ keys: [Buffer.alloc(32, 7)] })
  const replicas = new Replicas({ self: await lostHome('self'), seal: own, store: undefined, log: quiet })
  open.push(replicas)
  const receive = (header: string | undefined, path = '/mcp') => {
    const replied: number[] = []
    const added: object[] = []
    const given = {
      path,
      query: '',
      header: () => header,
      addHeaders: (headers: object) => added.push(headers),
      reply: (status: number) => replied.push(status),
    }
    // Cast: what is read of a request.
    const request = given as unknown as HttpRequest
    return { isAnswered: replicas.receives(request), isForwarded: replicas.isForwarded(request), replied, marks: added.length }
  }
  const marked = (to: string, seal = own, version = 'v1'): string => {
    const text = `${version} ${to} other ${Date.now()} nonce`
    return `${text} ${seal.mark('replica request', text)}`
  }
  const host = { isAnswered: false, isForwarded: false, replied: [], marks: 0 }
  expect(receive(undefined)).toEqual(host)
  expect(receive('')).toEqual(host)
  expect(receive(marked('self', new Seal({ keys: [Buffer.alloc(32, 8)] })))).toEqual(host)
  expect(receive(marked('self', own, 'v2'))).toEqual(host)
  expect(receive(marked('self').replace('other', 'others'))).toEqual(host)
  expect(receive(marked('self'))).toEqual({ isAnswered: false, isForwarded: true, replied: [], marks: 1 })
  // Another process had this address before.
  expect(receive(marked('another'))).toEqual({ isAnswered: true, isForwarded: false, replied: [421], marks: 0 })
})

test('F-28 a session that was given back is looked for where it began', async () => {
  const store = new MemoryStore()
  const replicas = await startReplica(store)
  const [origin, taker] = [await startPeer(true), await lostHome('taker')]
  await store.set(KEY, formatHome(taker), 60_000)
  await replicas.refused(SESSION)
  await store.delete(KEY)
  await replicas.refused(SESSION)
  expect(await replicas.locate(formatHome(origin.self), SESSION)).toEqual(origin.self)
})

test('F-28 a session that another replica has taken over is released; one that this replica took over is claimed again', async () => {
  const store = new MemoryStore()
  const replicas = await startReplica(store)
  const taker = await lostHome('taker')
  expect(await replicas.areTakenOver([SESSION, 'another'])).toEqual([false, false])
  await store.set(KEY, formatHome(taker), 60_000)
  expect(await replicas.areTakenOver([SESSION, 'another'])).toEqual([true, false])
  await store.set(KEY, replicas.home, 60_000)
  expect(await replicas.areTakenOver([SESSION, 'another'])).toEqual([false, false])
  // Taken over by this one, and then the store loses its data.
  const origin = await lostHome('origin')
  expect(await replicas.isOwner(formatHome(origin), SESSION)).toBe(true)
  await store.delete(KEY)
  expect(await replicas.areTakenOver([SESSION])).toEqual([false])
  expect(await store.get(KEY)).toBe(replicas.home)
})

test('F-28 who has taken over a session is known for as long as the session may last (listen.limits.session_max)', async () => {
  const DAY_MS = 24 * 3_600_000
  const claimedMs: number[] = []
  class TimedStore extends MemoryStore {
    override async claim(...given: Parameters<MemoryStore['claim']>): Promise<string> {
      if (given[0] === KEY) claimedMs.push(given[2])
      return super.claim(...given)
    }
  }
  for (const sessionMaxMs of [3_600_000, 7 * DAY_MS]) {
    const store = new TimedStore()
    const replicas = await startReplica(store, undefined, sessionMaxMs)
    expect(await replicas.locate(formatHome(await lostHome('origin')), SESSION)).toBeUndefined()
    await store.delete(KEY)
    expect(await replicas.areTakenOver([SESSION])).toEqual([false])
  }
  expect(claimedMs).toEqual([DAY_MS, DAY_MS, 7 * DAY_MS, 7 * DAY_MS])
})

test('F-28 a request to a replica that answers no probe any more is broken off', async () => {
  await using silent = await listening(createServer(() => undefined))
  const replicas = await startReplica(new MemoryStore(), { believedMs: 10, leaseMs: 100, renewMs: 50, lookMs: 10 })
  expect(await replicas.forward(requestOf(), undefined, { instance: 'other', url: silent.url })).toBe('lost')
})
