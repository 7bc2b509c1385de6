/** `faults`: what is injected into calls on purpose. */
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
  tools: field(texts, 'Patterns of its tools, as the server names them; without: every call of `methods`.'),
  methods: field(methods, 'Which calls it is about.', ['tools/call']),
  delay: field(duration, 'The call waits so long before it is sent; longer than `timeouts.idle`, it is a time-out.'),
  fault: field(
    choice(...FAULT_KINDS),
    '`error`: a JSON-RPC error of the server. `tool_error`: a result with `isError`. `cut`: the server does it, and its answer is lost. `hang`: no answer until `timeouts.idle`. `lost_auth`: the server answers 401. `wrong_era`: it answers as one of the other era does.',
  ),
  code: field(errorCode, 'Of `error`.', -32603),
  message: field(filledText, 'Of `error` and `tool_error`.', 'injected fault'),
  every: countField('Each so many-th of these calls.', 1),
  share: field(share, 'Of those, this share by chance.', 1),
})
