/** Calls one tool for the command line: through the gateway, as principal `local`, like a host on this machine. */
import type { Observer } from '../../observe/observer.ts'
import { EVERYTHING, Refusal, ServerError, SHARED_PRINCIPAL, ownCall } from '../../rpc/call.ts'
import type { Call, Scope } from '../../rpc/call.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { parseJsonObject } from '../../values/json-object.ts'
import { AdminRefusal } from '../refusal.ts'
import { Failure } from '../../wire/message/failure.ts'
import type { FailureKind } from '../../wire/message/failure.ts'
import { requestMessage, resultMessage } from '../../wire/message/message.ts'
import { join, Payload } from '../../wire/message/payload.ts'
import { MODERN } from '../../wire/protocol/revisions.ts'

/** The end of a call: the result as a host gets it, or the error. */
export type CallEnd =
  | { readonly kind: 'result'; readonly isError: boolean; readonly result: Buffer }
  | { readonly kind: 'refused' | 'error' | FailureKind; readonly message: string }

/** A call of one tool. */
export interface CallRequest {
  /** The exposed name. */
  readonly tool: string
  /** A JSON object as text. */
  readonly args: string
  readonly toolset?: string | undefined
  /** Name of the host, for rules of the policy; absent: none. */
  readonly host?: string | undefined
}

/**
 * `ref`: the number of the call, in the log and in captured calls. Rejects for unexpected errors, and with `AdminRefusal` for arguments that
 * are no JSON object: errors that a host would get are returned.
 */
export const callTool = async (
  gateway: Gateway,
  { tool, args, host, ref }: Omit<CallRequest, 'toolset'> & { readonly ref: number },
  signal: AbortSignal,
  scope: Scope = EVERYTHING,
): Promise<CallEnd> => {
  if (parseJsonObject(args) === undefined) throw new AdminRefusal(400, 'body', 'the arguments must be a JSON object')
  const params = Payload.at(Buffer.from(`{"name":${JSON.stringify(tool)},"arguments":${args}}`))
  const called = { method: 'tools/call', target: tool, params, scope, host }
  return callMethod({ gateway, observer: undefined, ref }, called, signal)
}

/** The origin of a call, and its number. */
interface Calling {
  readonly gateway: Gateway
  /** Captures the call; absent: it is captured like every call. Under `ref` in both cases. */
  readonly observer: Observer | undefined
  readonly ref: number
  readonly replayOf?: number
}

/** One request; `target`: the member of `params` that names the tool, prompt or resource. */
interface Called {
  readonly method: string
  readonly target: string
  readonly params: Payload
  readonly scope: Scope
  readonly host?: string | undefined
}

/** Sends one request as a modern host would. Rejects for unexpected errors only. */
export const callMethod = async (
  { gateway, observer, ref, replayOf }: Calling,
  { method, target, params, scope, host }: Called,
  signal: AbortSignal,
): Promise<CallEnd> => {
  const facts = host === undefined ? undefined : { claims: {}, scopes: [], address: '', host }
  const caller = { principal: SHARED_PRINCIPAL, revision: MODERN, capabilities: {}, scope, session: undefined, facts } as const
  const sent = join(params.parts())
  const message = join(requestMessage(ref, method, [sent]))
  const record = observer?.begin({ ref, method, ...caller, clientInfo: undefined, transport: undefined, message, replayOf })
  const call: Call = { ...ownCall({ ref, method, target, params: Payload.at(sent), caller, signal }), record }
  try {
    const outcome = await gateway.handle(call)
    record?.returned(call, outcome)
    const { kind, result } = outcome
    const bytes = join(result.parts())
    record?.answered(resultMessage(String(ref), [bytes]))
    if (kind === 'input_required') return { kind: 'refused', message: `${target} asks for input, which is not possible here` }
    return { kind: 'result', isError: Payload.at(bytes).value('isError') === true, result: bytes }
  } catch (error) {
    record?.rejected(error, signal.aborted)
    record?.answered(undefined)
    if (error instanceof Refusal) return { kind: 'refused', message: error.message }
    if (error instanceof ServerError) return { kind: 'error', message: `${error.message} (${error.code})` }
    if (error instanceof Failure) return { kind: error.kind, message: describe(error) }
    throw error
  }
}

const describe = ({ kind, message, facts: { server, retryAfterMs } }: Failure): string => {
  const text = server === undefined ? message : `server "${server.key}": ${message}`
  return kind === 'rate_limited' && retryAfterMs !== undefined
    ? `${text}; retry after ${Math.ceil(retryAfterMs / 1_000)} s`
    : text
}
