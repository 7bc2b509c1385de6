/** `policy`: who may call what. */
import { z } from 'zod'
import { DEFAULT_POLICY, DEFAULT_SERVICE } from '../../policy/options.ts'
import { jsonObject } from '../../values/json-object.ts'
import { LATEST_LEGACY, LEGACY_REVISIONS, MODERN_REVISIONS } from '../../wire/protocol/revisions.ts'
import { hints } from './curation-schema.ts'
import { choice, durationField, field, filledText, flag, headerValue, httpUrl, kind, sizeField, text, texts } from './kinds.ts'

const rule = z.strictObject({
  name: field(filledText, 'Names it in the audit log and in errors.'),
  when: field(filledText, 'An expression in CEL, of type bool, over `caller`, `call` and `request`. Without: the rule always holds.'),
  decision: field(
    choice('allow', 'deny', 'confirm'),
    'What becomes of a call for which it holds; `confirm`: a person is asked first. Required.',
  ),
  reason: field(filledText, 'What the caller is told. Required with `deny` and `confirm`.'),
})

const service = z.strictObject({
  url: field(
    httpUrl,
    'Asked by POST where no rule decides: the data API of Open Policy Agent, such as http://127.0.0.1:8181/v1/data/trunkline/decision, or a service that answers alike. Required.',
  ),
  headers: field(z.record(z.string(), headerValue), 'Sent with every question, such as a credential.'),
  timeout: durationField('How long a call or list waits for its answer.', DEFAULT_SERVICE.timeoutMs),
  max_answer: sizeField('One answer.', DEFAULT_SERVICE.maxAnswerBytes),
  on_failure: field(
    choice('deny', 'allow'),
    'What becomes of a call, and of what a list shows, where it does not answer.',
    DEFAULT_SERVICE.onFailure,
  ),
  lists: field(flag, 'It is asked what lists show, too; otherwise they show what rules leave.', DEFAULT_SERVICE.lists),
  replaces: field(
    z.array(choice('arguments', 'results')),
    'What its answers may put something else in place of. With `results` it sees every result of a tool, which is then held until it is whole.',
    DEFAULT_SERVICE.replaces,
  ),
})

export const policySchema = z.strictObject({
  rules: field(z.array(rule), 'The first that holds decides. One that cannot be evaluated denies.'),
  default: field(choice('allow', 'deny'), 'What becomes of a call for which no rule holds.', DEFAULT_POLICY.otherwise),
  service: field(service, 'Decides where no rule does; where it does not decide either, `default` does.'),
  max_arguments: sizeField(
    'Arguments that rules read, or the service; calls with larger ones are denied where these decide.',
    DEFAULT_POLICY.maxArgumentsBytes,
  ),
})

const object = kind('a mapping', { type: 'object' }, jsonObject)
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
