/** `policy`: who may call what. */
import { z } from 'zod'
import { DEFAULT_POLICY } from '../../policy/options.ts'
import { LATEST_LEGACY, LEGACY_REVISIONS, MODERN_REVISIONS } from '../../wire/protocol/revisions.ts'
import { hints } from './curation-schema.ts'
import { choice, field, filledText, kind, sizeField, text, texts } from './kinds.ts'

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

const object = kind('a mapping', { type: 'object' }, (value) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : undefined,
)
const time = kind('a time such as 2026-06-01T12:00:00Z', { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\dT' }, (value) => {
  const at = typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value) ? new Date(value) : undefined
  return at === undefined || Number.isNaN(at.getTime()) ? undefined : at
})

export const policyTestSchema = z.strictObject({
  name: field(filledText, 'What it shows, for messages.'),
  caller: field(
    z.strictObject({
      principal: field(filledText, 'Who calls.', 'local'),
      claims: field(object, 'Claims of the OAuth token.'),
      scopes: field(texts, 'OAuth scopes of the token.'),
      toolset: field(filledText, 'Toolsets of the caller, separated by blanks.'),
    }),
    'The caller.',
  ),
  call: field(
    z.strictObject({
      method: field(filledText, 'The method.', 'tools/call'),
      server: field(filledText, 'Key of the server. Required.'),
      original: field(text, 'Tool, prompt or URI, as the server calls it. Required.'),
      name: field(text, 'As hosts call it. Default: with the prefix of the server.'),
      arguments: field(object, 'Arguments of the call.'),
      annotations: hints('What is believed of the tool.'),
    }),
    'The call. Required.',
  ),
  request: field(
    z.strictObject({
      revision: field(choice(...LEGACY_REVISIONS, ...MODERN_REVISIONS), 'Revision of the host.', LATEST_LEGACY),
      host: field(text, 'Name of the host.'),
      address: field(text, 'Address of the host.'),
      time: field(time, 'When it comes. Default: now.'),
    }),
    'The request.',
  ),
  expect: field(choice('allow', 'deny', 'confirm'), 'What the rules are to decide. Required.'),
})
