/** Gateways that the conformance suite is run against: one server with original names, at the merged endpoint and at its bridge. */
import { fake, FakeDownstream } from './fake-downstream.ts'
import { startGatewayProcess } from './gateway-process.ts'
import type { GatewayHome, GatewayProcess } from './gateway-process.ts'
import { stdioTarget } from './processes.ts'

export interface ConformanceGateway extends GatewayProcess {
  /** Of the bridge in front of the server. */
  readonly bridge: string
}

/** Streams from the start, closed early to be polled: so that the suite sees what it can check of them. */
const POLLED = { stream_after: { legacy: '0s' }, poll_after: '100ms' }

/** A gateway with this server behind it, once it knows the server; a second one, which offers nothing, makes `/mcp` a merged endpoint. */
export const conformanceGateway = async (
  home: GatewayHome,
  name: string,
  options: Record<string, unknown>,
  listen: object = POLLED,
): Promise<ConformanceGateway> => {
  const idle = await FakeDownstream.start(fake.of({ kind: 'modern http' }))
  const file = await home.write(name, {
    version: 1,
    listen,
    naming: { prefix: 'never' },
    servers: { ref: options, idle: { url: 'url' in idle.address ? idle.address.url.href : '' } },
    reload: { watch: false },
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

export const stdioOptions = (...args: string[]): Record<string, unknown> => {
  const target = stdioTarget('reference-server', ...args)
  return { command: target.command, args: target.args }
}
