/** The facts of a call under way, of which nothing is known but its receipt, for tests of what is kept and shown of calls. */
import { NEVER } from '../../../src/observe/capture/call-facts.ts'
import type { CallFacts } from '../../../src/observe/capture/call-facts.ts'
import { EVERYTHING } from '../../../src/rpc/call.ts'

export const HOP = { era: 'legacy', revision: '2025-11-25', transport: 'pipe' } as const

export const factsOf = (more: Partial<CallFacts> = {}): CallFacts => ({
  id: 1,
  method: 'tools/call',
  principal: 'p',
  scope: EVERYTHING,
  revision: '2025-11-25',
  sessionId: undefined,
  clientInfo: undefined,
  transport: undefined,
  replayOf: undefined,
  name: undefined,
  server: undefined,
  original: undefined,
  traceId: undefined,
  atMs: 0,
  receivedMs: 100,
  startedMs: NEVER,
  slottedMs: NEVER,
  answeredMs: NEVER,
  writtenMs: NEVER,
  bytesIn: 0,
  bytesOut: 0,
  lanes: [],
  asks: [],
  deviations: [],
  end: undefined,
  request: undefined,
  response: undefined,
  ...more,
})

export const laneOf = (sentMs: number, doneMs: number): CallFacts['lanes'][number] => ({
  hop: HOP,
  id: 1,
  kind: 'call',
  sentMs,
  firstMs: doneMs,
  doneMs,
  end: 'result',
  request: undefined,
  response: undefined,
})
