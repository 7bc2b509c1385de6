/** One tool called by a person at the command line: through the gateway, as principal `local`, like any host on this machine. */
import { EVERYTHING, Refusal, ServerError } from '../rpc/call.ts'
import type { Call, Scope } from '../rpc/call.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { Failure } from '../wire/message/failure.ts'
import type { FailureKind } from '../wire/message/failure.ts'
import { join, Payload } from '../wire/message/payload.ts'
import { MODERN } from '../wire/protocol/revisions.ts'

/** How a call ended: with what the tool said, byte for byte, or without. */
export type CallEnd =
  | { readonly kind: 'result'; readonly isError: boolean; readonly result: Buffer }
  | { readonly kind: 'refused' | 'error' | FailureKind; readonly message: string }

/** `args` is a JSON object as text. Never rejects for what a host would be told as an error. */
export const callTool = async (
  gateway: Gateway,
  tool: string,
  args: string,
  signal: AbortSignal,
  scope: Scope = EVERYTHING,
): Promise<CallEnd> => {
  const call: Call = {
    ref: 0,
    method: 'tools/call',
    target: tool,
    params: Payload.at(Buffer.from(`{"name":${JSON.stringify(tool)},"arguments":${args}}`)),
    caller: { principal: 'local', revision: MODERN, capabilities: {}, scope, session: undefined },
    resume: undefined,
    signal,
    progressToken: undefined,
    logLevel: undefined,
    paramHeaders: [],
    unknownHeaders: {},
    notify: () => undefined,
    ask: undefined,
  }
  try {
    const { kind, result } = await gateway.handle(call)
    if (kind === 'input_required') return { kind: 'refused', message: `${tool} asks for input, which this command cannot give` }
    const bytes = join(result.parts())
    return { kind: 'result', isError: Payload.at(bytes).value('isError') === true, result: bytes }
  } catch (error) {
    if (error instanceof Refusal) return { kind: 'refused', message: error.message }
    if (error instanceof ServerError) return { kind: 'error', message: `${error.message} (${error.code})` }
    if (error instanceof Failure) return { kind: error.kind, message: describe(error) }
    throw error
  }
}

const describe = ({ message, facts }: Failure): string =>
  facts.server === undefined ? message : `server "${facts.server.key}": ${message}`
