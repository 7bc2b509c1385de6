/** Tests of a policy in the configuration: a caller, a call, and the expected decision. */
import type { HintName } from '../catalog/hints.ts'
import { believed } from '../catalog/hints.ts'
import { EVERYTHING } from '../rpc/call.ts'
import type { Revision } from '../wire/protocol/revisions.ts'
import { wholeOf } from './arguments.ts'
import type { Decision } from './options.ts'
import type { Policy, Verdict } from './policy.ts'
import { PolicyAnnotations } from './subject.ts'
import type { Claims } from './subject.ts'

export interface PolicyTest {
  readonly caller: {
    readonly principal: string
    readonly claims: Claims
    readonly scopes: readonly string[]
    readonly toolset: string | undefined
  }
  readonly call: {
    readonly method: string
    readonly server: string
    readonly name: string
    readonly original: string
    readonly arguments: object | undefined
    readonly annotations: Readonly<Partial<Record<HintName, boolean | undefined>>>
  }
  readonly request: {
    readonly revision: Revision
    readonly host: string
    readonly address: string
    readonly time: Date
  }
  readonly expect: Decision
}

/** The decision of the policy on the call of a test. */
export const verdictFor = (policy: Policy, { caller, call, request }: PolicyTest): Verdict => {
  const { revision, host, address, time } = request
  const { annotations, method } = call
  const args = call.arguments === undefined ? undefined : wholeOf(Buffer.from(JSON.stringify(call.arguments)))
  return policy.judge(
    {
      caller: {
        principal: caller.principal,
        revision,
        capabilities: {},
        scope: EVERYTHING,
        session: undefined,
        facts: { claims: caller.claims, scopes: caller.scopes, host, address },
      },
      toolset: caller.toolset,
      method,
      server: call.server,
      name: call.name,
      original: call.original,
      entry: undefined,
      annotations: () =>
        new PolicyAnnotations((hint) => believed(hint, method === 'tools/call' ? annotations : { readOnlyHint: true })),
    },
    () => args,
    time,
  )
}
