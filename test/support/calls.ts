/** A call without a host, for tests of what stands on its way. */
import type { Call, Caller } from '../../src/rpc/call.ts'
import { Cancellation } from '../../src/rpc/cancellation.ts'
import { Payload } from '../../src/wire/message/payload.ts'

export type CallFacts = Partial<Omit<Call, 'caller'>> & { readonly caller?: Partial<Caller> }

/** `tools/call` of `a__x` by `local`, a modern host that can do nothing, but for what is said. */
export const callOf = ({ caller, ...facts }: CallFacts = {}): Call => ({
  ref: 1,
  method: 'tools/call',
  target: 'a__x',
  params: Payload.of({ name: 'a__x', arguments: {} }),
  caller: {
    principal: 'local',
    revision: '2026-07-28',
    capabilities: {},
    scope: { server: undefined },
    session: undefined,
    ...caller,
  },
  resume: undefined,
  signal: new Cancellation().signal,
  progressToken: undefined,
  logLevel: undefined,
  paramHeaders: [],
  unknownHeaders: {},
  notify: () => undefined,
  ask: undefined,
  ...facts,
})
