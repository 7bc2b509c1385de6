/** Registers the cells of some hosts: one process of Trunkline per downstream, whose names carry the server key. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gatewayHome, startGatewayProcess, stdioGateway } from '../support/gateway-process.ts'
import type { GatewayProcess } from '../support/gateway-process.ts'
import { hostKinds } from '../support/hosts.ts'
import type { HostKind } from '../support/hosts.ts'
import type { Target } from '../support/processes.ts'
import { cellTitle, downstreamKeys, downstreamKinds, eraOf, revisionOf, startDownstream } from './gateway-cells.ts'
import type { DownstreamKey } from './gateway-cells.ts'
import { matrix } from './matrix.ts'

/** Smaller than any list, so that hosts have to turn pages too. */
const PAGE_ITEMS = 3

/** Every host given × every downstream given, all features. */
export const gatewayMatrix = (hosts: readonly HostKind[], downstreams: readonly DownstreamKey[] = downstreamKeys): void => {
  describe.each(downstreams.map((key) => ({ key })))('$key', ({ key }) => {
    const opened = new AsyncDisposableStack()
    let file: string
    let gateway: GatewayProcess | undefined
    const listens = hosts.some((host) => hostKinds[host].transport !== 'stdio')
    beforeAll(async () => {
      const home = opened.use(await gatewayHome())
      const { config } = opened.use(await startDownstream(key))
      file = await home.write('trunkline', { cache: { page_items: PAGE_ITEMS }, servers: { [key]: config } })
      if (listens) gateway = opened.use(await startGatewayProcess(file))
    })
    afterAll(() => opened.disposeAsync())

    const target = (host: HostKind): Target => {
      if (gateway === undefined || hostKinds[host].transport === 'stdio') return stdioGateway(file)
      return { url: hostKinds[host].transport === 'sse' ? gateway.sseUrl : gateway.url }
    }
    const { transport, era } = downstreamKinds[key]
    const channel = transport === 'stdio' ? 'pipe' : transport
    const revision = revisionOf(era)
    const findsOut = async () => {
      const ready = () => gateway?.said.find((line) => line.includes('server is ready')) ?? '{}'
      await gateway?.saw(() => ready() !== '{}')
      expect(JSON.parse(ready())).toMatchObject({ server: key, transport: channel, revision })
    }
    if (listens) test(`B211 Trunkline finds out that it speaks ${revision} over ${transport}`, findsOut)

    for (const host of hosts) {
      describe(cellTitle(host, key), () => matrix(host, () => target(host), { prefix: key, expectEra: eraOf(host) }))
    }
  })
}
