/** The refusal of a name that does not exist for its caller, in the form of the method and of the host's era (B103). */
import { Refusal } from '../rpc/call.ts'
import type { Call } from '../rpc/call.ts'
import { isModernRevision } from '../wire/protocol/revisions.ts'

/** `why`: appended to the message for a resource. */
export const unknownName = (call: Call, why = ''): Refusal => {
  if (call.method === 'tools/call') return new Refusal(-32602, `Unknown tool: ${call.target}`)
  if (call.method === 'prompts/get') return new Refusal(-32602, `Unknown prompt: ${call.target}`)
  if (call.method === 'completion/complete') return new Refusal(-32602, 'Unknown prompt or resource template in params.ref')
  const code = isModernRevision(call.caller.revision) ? -32602 : -32002
  return new Refusal(code, `Resource not found: ${call.target}${why}`, { data: { uri: call.target } })
}
