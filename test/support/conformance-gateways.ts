/** Gateways that the conformance suite is run against: one server with original names, at the merged endpoint and at its bridge. */
import { openBalancer } from './balancer.ts'
import { fake, FakeDownstream } from './fake-downstream.ts'
import { openFaultProxy } from './fault-proxy.ts'
import { startGatewayProcess } from './gateway-process.ts'
import type { GatewayHome, GatewayProcess } from './gateway-process.ts'

export interface ConformanceGateway extends GatewayProcess {
  /** Of the bridge in front of the server. */
  readonly bridge: string
}

/**
 * Streams from the start, closed early to be polled: so that the suite sees what it can check of them. Late enough for the tools that
 * log in steps, on a machine that does much else, and before the answer of the tool that closes its stream (400 ms).
 */
const POLLED = { stream_after: { legacy: '0s' }, poll_after: '300ms' }

const STATE_KEY = '0123456789abcdef'.repeat(4)

/** A gateway with this server behind it, once it knows the server; a second one, which offers nothing, makes `/mcp` a merged endpoint. */
export const conformanceGateway = async (
  home: GatewayHome,
  name: string,
  options: Record<string, unknown>,
  listen: object = POLLED,
  more: Record<string, unknown> = {},
): Promise<ConformanceGateway> => {
  const idle = await FakeDownstream.start(fake.of({ kind: 'modern http' }))
  const file = await home.write(name, {
    version: 1,
    listen,
    naming: { prefix: 'never' },
    servers: { ref: options, idle: { url: 'url' in idle.address ? idle.address.url.href : '' } },
    reload: { watch: false },
    ...more,
  })
  const gateway = await startGatewayProcess(file)
  await gateway.saw((said) => said.some((line) => line.includes('server is ready') && line.includes('"ref"')))
  return {
    ...gateway,
    bridge: new URL('/servers/ref/mcp', gateway.url).href,
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]()
      await idle[Symbol.asyncDispose]()
    },
  }
}

/** So many replicas of it behind a balancer that sends each request to the next one. `store`: URL of the one they share. */
export const conformanceReplicas = async (
  home: GatewayHome,
  count: number,
  options: Record<string, unknown>,
  store: string,
  listen?: object,
): Promise<{ readonly url: string } & AsyncDisposable> => {
  await using opened = new AsyncDisposableStack()
  const ports: number[] = []
  for (let at = 0; at < count; at++) {
    // Has its port before the replica has one.
    const wire = opened.use(await openFaultProxy(0))
    const shared = { state: { key: STATE_KEY }, replicas: { url: `http://127.0.0.1:${wire.port}` }, store }
    const gateway = opened.use(await conformanceGateway(home, `replica-${at}`, options, listen, shared))
    wire.target = Number(new URL(gateway.url).port)
    ports.push(wire.target)
  }
  const balancer = opened.use(await openBalancer(ports))
  const all = opened.move()
  return { url: balancer.url.href, [Symbol.asyncDispose]: () => all.disposeAsync() }
}
