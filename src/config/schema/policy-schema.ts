/** `policy`: who may call what. */
import { z } from 'zod'
import { DEFAULT_POLICY } from '../../policy/options.ts'
import { choice, field, filledText, sizeField } from './kinds.ts'

const rule = z.strictObject({
  name: field(filledText, 'Names it in the audit log and in errors.'),
  when: field(filledText, 'An expression in CEL, of type bool, over `caller`, `call` and `request`. Without: the rule always holds.'),
  decision: field(
    choice('allow', 'deny', 'confirm'),
    'What becomes of a call for which it holds; `confirm`: a person is asked first. Required.',
  ),
  reason: field(filledText, 'What the caller is told. Required with `deny` and `confirm`.'),
})

export const policySchema = z.strictObject({
  rules: field(z.array(rule), 'The first that holds decides. One that cannot be evaluated denies.'),
  default: field(choice('allow', 'deny'), 'What becomes of a call for which no rule holds.', DEFAULT_POLICY.otherwise),
  max_arguments: sizeField(
    'Arguments that rules read; larger ones are not decoded, and rules that read them deny.',
    DEFAULT_POLICY.maxArgumentsBytes,
  ),
})
