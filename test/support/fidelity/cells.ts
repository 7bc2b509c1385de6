/** The rows and columns of the fidelity matrix: every revision over every transport that carries it, as a host and as a server. */
import { legacyHttp, legacyPipe, legacySse, modernHttp, modernPipe } from '../fake-host.ts'
import type { Host } from '../fake-host.ts'
import type { FakeKind } from '../fake-downstream.ts'
import { LEGACY, MODERN } from '../fakes/messages.ts'
import type { JsonMap } from '../fakes/messages.ts'
import type { TestGateway } from '../gateway.ts'

export type Transport = 'stdio' | 'sse' | 'http'
export type Revision = (typeof LEGACY)[number] | typeof MODERN
export const REVISIONS: readonly Revision[] = [...LEGACY, MODERN]

/** One revision over one transport. */
export interface Cell {
  readonly revision: Revision
  readonly transport: Transport
  /** Unique; also the key of the server. */
  readonly key: string
}

/** [BRIDGING 1.2]: HTTP+SSE carries every legacy revision, Streamable HTTP all but the first. */
const transportsOf = (revision: Revision): readonly Transport[] =>
  revision === MODERN ? ['stdio', 'http'] : revision === '2024-11-05' ? ['stdio', 'sse'] : ['stdio', 'sse', 'http']

export const CELLS: readonly Cell[] = REVISIONS.flatMap((revision) =>
  transportsOf(revision).map((transport) => ({ revision, transport, key: `r${revision.replaceAll('-', '')}-${transport}` })),
)

export const isModern = ({ revision }: Pick<Cell, 'revision'>): boolean => revision === MODERN
export const era = (cell: Pick<Cell, 'revision'>): 'legacy' | 'modern' => (isModern(cell) ? 'modern' : 'legacy')
export const since = ({ revision }: Pick<Cell, 'revision'>, first: Revision): boolean => revision >= first

export const UI = 'io.modelcontextprotocol/ui'
export const TASKS = 'io.modelcontextprotocol/tasks'

/** Everything that hosts of a revision can declare. */
const capabilitiesOf = (cell: Cell): JsonMap => ({
  roots: isModern(cell) ? {} : { listChanged: true },
  sampling: since(cell, '2025-11-25') ? { tools: {} } : {},
  ...(since(cell, '2025-06-18') && { elicitation: since(cell, '2025-11-25') ? { form: {}, url: {} } : {} }),
  extensions: { [UI]: { mimeTypes: ['text/html;profile=mcp-app'] }, ...(isModern(cell) && { [TASKS]: {} }) },
})

/** A host that can do all that its revision knows. */
export const connectCell = (gateway: TestGateway, cell: Cell): Promise<Host> => {
  const legacy = { stdio: legacyPipe, sse: legacySse, http: legacyHttp }
  const row = isModern(cell) ? (cell.transport === 'stdio' ? modernPipe : modernHttp) : legacy[cell.transport]
  return row.connect(gateway, { revision: cell.revision, capabilities: capabilitiesOf(cell) })
}

export const kindOf = (cell: Cell): FakeKind => `${era(cell)} ${cell.transport}` as FakeKind
