/** `faults`: faults that are injected into calls on purpose. */
import { z } from 'zod'
import { FAULT_KINDS } from '../../gateway/faults.ts'
import { isInteger, isList } from '../../values/json-object.ts'
import { METHODS } from '../../wire/protocol/methods.ts'
import { choice, countField, duration, field, filledText, kind, share, texts } from './kinds.ts'

const CALLS = Object.entries(METHODS)
  .filter(([, { handling }]) => handling === 'forward')
  .map(([method]) => method)

const errorCode = kind(
  'a JSON-RPC error code such as -32603',
  { type: 'integer', minimum: -2_147_483_648, maximum: 2_147_483_647 },
  (value) => (isInteger(value) && Math.abs(value) < 2 ** 31 ? value : undefined),
)
const methods = kind(
  `a method or a list of them: ${CALLS.join(', ')}`,
  { type: ['string', 'array'], items: { enum: CALLS } },
  (value) => {
    const list = isList(value) ? value : [value]
    return list.length > 0 && list.every((item) => CALLS.includes(String(item))) ? list.map(String) : undefined
  },
)

export const faultSchema = z.strictObject({
  server: field(filledText, 'Key of the server. Required.'),
  tools: field(texts, 'Patterns of its tools, as the server names them. Default: every call of `methods`.'),
  methods: field(methods, 'The methods of the affected calls.', ['tools/call']),
  delay: field(duration, 'Delay before the call is sent. If it is longer than `timeouts.idle`, the call times out.'),
  fault: field(
    choice(...FAULT_KINDS),
    '`error`: a JSON-RPC error of the server. `tool_error`: a result with `isError`. `cut`: the server executes the call, and its answer is lost. `hang`: no answer until `timeouts.idle`. `lost_auth`: the server answers 401. `wrong_era`: it answers like a server of the other era.',
  ),
  code: field(errorCode, 'Error code of `error`.', -32603),
  message: field(filledText, 'Message of `error` and `tool_error`.', 'injected fault'),
  every: countField('Only every nth of these calls is affected.', 1),
  share: field(share, 'The probability that such a call is affected.', 1),
})
