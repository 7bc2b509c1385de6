/** Probes every cell of the matrix in one process: one gateway, a server of every kind behind it, a host of every kind before it. */
import { setTimeout as pause } from 'node:timers/promises'
import { FakeDownstream } from '../fake-downstream.ts'
import { startGateway } from '../gateway.ts'
import type { TestGateway } from '../gateway.ts'
import { CELLS, connectCell } from './cells.ts'
import type { Cell } from './cells.ts'
import { contentFeatures } from './content.ts'
import { extensionFeatures } from './extensions.ts'
import { answerAll, inputFeatures } from './input.ts'
import type { Feature, ProbedHost, ProbedServer, Verdict } from './probing.ts'
import { serverOf } from './server.ts'
import { streamFeatures } from './streams.ts'

export const FEATURES: readonly Feature[] = [...contentFeatures, ...streamFeatures, ...inputFeatures, ...extensionFeatures]

/** How one cell of one feature came out; `error`: neither of the three verdicts. */
export interface Observation {
  readonly feature: string
  readonly host: string
  readonly server: string
  readonly observed: Verdict | 'error'
  readonly error?: string
}

/** A cell that has not answered by then has lost what it was to carry. */
const PATIENCE_MS = 20_000

/** Every cell in which there is anything to carry, in no particular order. */
export const probeAll = async (features: readonly Feature[] = FEATURES): Promise<Observation[]> => {
  const servers: ProbedServer[] = []
  for (const cell of CELLS) {
    const extras: ProbedServer['extras'] = []
    servers.push({ ...cell, extras, fake: await FakeDownstream.start(serverOf(cell, extras)) })
  }
  for (const { fake } of servers) fake.intercept = sendRest
  const fakes = new Map(servers.map(({ key, fake }) => [key, fake]))
  await using gateway = await startGateway({
    servers: {},
    fakes,
    gateway: { pageMaxItems: 100, maxNameLength: 64 },
    host: { streamAfterMs: 50 },
  })
  try {
    const alone = features.filter(({ isAlone }) => isAlone === true)
    const together = features.filter(({ isAlone }) => isAlone !== true)
    const seen = await Promise.all(CELLS.map((cell) => probeHost(cell, servers, together, gateway)))
    for (const cell of CELLS) seen.push(await probeHost(cell, servers, alone, gateway))
    return seen.flat()
  } finally {
    for (const { fake } of servers) await fake[Symbol.asyncDispose]()
  }
}

const probeHost = async (
  cell: Cell,
  servers: readonly ProbedServer[],
  features: readonly Feature[],
  gateway: TestGateway,
): Promise<Observation[]> => {
  const connect: ProbedHost['connect'] = () => connectCell(gateway, cell)
  await using host = await connect()
  const probed: ProbedHost = { ...cell, host, asked: [], connect }
  answerAll(probed)
  const seen: Observation[] = []
  for (const server of servers)
    for (const feature of features) {
      if (feature.expected(cell, server) === 'none') continue
      const ids = { feature: feature.name, host: cell.key, server: server.key }
      const late = pause(PATIENCE_MS, 'late' as const, { ref: false })
      try {
        const observed = await Promise.race([feature.probe({ host: probed, server, gateway }), late])
        seen.push(observed === 'late' ? { ...ids, observed: 'error', error: 'nothing came' } : { ...ids, observed })
      } catch (error) {
        seen.push({ ...ids, observed: 'error', error: String(error) })
      }
    }
  return seen
}

/** The rest of a stream on which a server hung up, for whoever comes back for it. */
const sendRest: FakeDownstream['intercept'] = (request, response) => {
  const [, id] = /^rest-(.+)$/.exec(String(request.headers['last-event-id'] ?? '')) ?? []
  if (request.method !== 'GET' || id === undefined) return false
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.end(`id: end\ndata: {"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"the rest"}]}}\n\n`)
  return true
}
