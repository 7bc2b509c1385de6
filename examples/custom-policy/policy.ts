/** A policy of one's own: while a change freeze is in force, tools that write are answered with its reason and never reach a server. */
import { complete, Payload } from '../../src/index.ts'
import type { Layer } from '../../src/index.ts'

/** With and without the prefix of a server: at `/servers/<key>/mcp` its tools have none. */
const WRITES = /(?:^|__)(?:write|edit|move|create|delete)_/

/** `freeze`: the reason for the freeze in force, `undefined` while there is none. Asked for every call of a tool. */
export const changeFreeze =
  (freeze: () => string | undefined): Layer =>
  (inner) =>
  (call) => {
    const reason = call.method === 'tools/call' && WRITES.test(call.target ?? '') ? freeze() : undefined
    if (reason === undefined) return inner(call)
    // A result of the tool, so that the model reads it; `throw new Refusal(-32600, …)` would be an error of the request.
    const text = `${call.target} is refused: ${reason}`
    return Promise.resolve(complete(Payload.of({ content: [{ type: 'text', text }], isError: true })))
  }
