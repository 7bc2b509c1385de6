/** Several gateways of one configuration in this process, behind a balancer without stickiness, in front of the same fake servers. */
import type { Store } from '../../src/store/store.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { openBalancer } from './balancer.ts'
import type { Balancer } from './balancer.ts'
import { FakeDownstream } from './fake-downstream.ts'
import { openFaultProxy } from './fault-proxy.ts'
import type { FaultProxy } from './fault-proxy.ts'
import { startGateway } from './gateway.ts'
import type { GatewaySetup, TestGateway } from './gateway.ts'

export const KEY = '0123456789abcdef'.repeat(4)
/** Short, so that a replica that cannot be reached counts as lost soon. */
export const TIMES = { believedMs: 100, leaseMs: 900, renewMs: 200, lookMs: 50 }

export interface Replica {
  readonly gateway: TestGateway
  /** Whether this replica reaches the store. */
  readonly link: { isCut: boolean }
  /** Between this replica and the others. */
  readonly wire: FaultProxy
}

export interface ReplicaSet extends AsyncDisposable {
  readonly all: readonly Replica[]
  readonly balancer: Balancer
  /** What hosts connect to: one gateway, so it seems. */
  readonly front: TestGateway
  fake(key: string): FakeDownstream
  /** The events that are stored of all sessions. */
  stored(): Promise<readonly string[]>
  /** Starts another one, as a rolling restart does, in the place of that index. */
  restart(at: number): Promise<void>
}

/** `store`: shared by all; a store in memory by default, `undefined`: none. */
export const startReplicas = async (count: number, setup: GatewaySetup): Promise<ReplicaSet> => {
  const fakes = new Map<string, FakeDownstream>(setup.fakes)
  for (const [key, spec] of Object.entries(setup.servers)) fakes.set(key, await FakeDownstream.start(spec))
  const balancer = await openBalancer([])
  const store = 'store' in setup ? setup.store : new MemoryStore()
  const seen = new Set<string>()
  const open = async (): Promise<Replica> => {
    const wire = await openFaultProxy(0)
    const link = { isCut: false }
    const { store: _, ...rest } = setup
    const gateway = await startGateway({
      ...rest,
      host: { publicUrl: balancer.url.origin, ...rest.host },
      fakes,
      stateKey: setup.stateKey ?? KEY,
      replicaUrl: `http://127.0.0.1:${wire.port}`,
      replicaTimes: TIMES,
      ...(store !== undefined && { store: throughLink(store, link, seen) }),
    })
    wire.target = Number(gateway.url.port)
    return { gateway, wire, link }
  }
  const close = async ({ gateway, wire }: Replica): Promise<void> => {
    await gateway[Symbol.asyncDispose]()
    await wire[Symbol.asyncDispose]()
  }
  const all: Replica[] = []
  for (let at = 0; at < count; at++) all.push(await open())
  const ports = (): number[] => all.map(({ gateway }) => Number(gateway.url.port))
  balancer.targets = ports()
  const [first] = all
  if (first === undefined) throw new Error('no replica')
  return {
    all,
    balancer,
    front: { ...first.gateway, url: balancer.url },
    fake: (key) => first.gateway.fake(key),
    stored: async () => {
      const names = [...seen].filter((key) => key.startsWith('events:'))
      return (await Promise.all(names.map(async (key) => (await store?.range(key)) ?? []))).flat()
    },
    restart: async (at) => {
      const before = all[at]
      if (before === undefined) throw new Error(`no replica ${at}`)
      await close(before)
      all[at] = await open()
      balancer.targets = ports()
    },
    [Symbol.asyncDispose]: async () => {
      await balancer[Symbol.asyncDispose]()
      for (const replica of all) await close(replica)
      for (const fake of fakes.values()) await fake[Symbol.asyncDispose]()
    },
  }
}

/** The same store, of which every operation fails while the link is cut. */
const throughLink = (store: Store, link: { readonly isCut: boolean }, seen: Set<string>): Store =>
  new Proxy(store, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return (...args: unknown[]): unknown => {
        seen.add(String(args[0]))
        return link.isCut && name !== 'subscribe' ? Promise.reject(new Error('no way to the store')) : member.apply(target, args)
      }
    },
  })
