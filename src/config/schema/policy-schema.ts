/** `policy` and `policy_tests`: which calls are allowed. */
import { z } from 'zod'
import { DEFAULT_POLICY, DEFAULT_SERVICE } from '../../policy/options.ts'
import { jsonObject } from '../../values/json-object.ts'
import { LATEST_LEGACY, LEGACY_REVISIONS, MODERN_REVISIONS } from '../../wire/protocol/revisions.ts'
import { hints } from './curation-schema.ts'
import { choice, field, fieldsOf, filledText, flag, headerValue, httpUrl, kind, sizeField, text, texts } from './kinds.ts'

const rule = z.strictObject({
  name: field(filledText, 'Its name in the audit log and in errors.'),
  when: field(filledText, 'A CEL expression of type bool over `caller`, `call` and `request`. Default: the rule always matches.'),
  decision: field(
    choice('allow', 'deny', 'confirm'),
    'The decision if it matches; `confirm`: a person is asked first. Required.',
  ),
  reason: field(filledText, 'The reason that the caller gets. Required with `deny` and `confirm`.'),
})

const S = fieldsOf(DEFAULT_SERVICE)

export const serviceSchema = z.strictObject({
  url: field(
    httpUrl,
    'URL that gets a POST if no rule matches: the data API of Open Policy Agent, such as http://127.0.0.1:8181/v1/data/trunkline/decision, or a service with the same answers. Required.',
  ),
  headers: field(z.record(z.string(), headerValue), 'Sent with every request, such as a credential.', undefined, 'headers'),
  timeout: S.duration('timeoutMs', 'How long a call or list waits for its answer.'),
  max_answer: S.size('maxAnswerBytes', 'Size of one answer.'),
  on_failure: S.of(
    'onFailure',
    choice('deny', 'allow'),
    'The decision on calls and on entries of lists if the service does not answer.',
  ),
  lists: S.of('lists', flag, 'It decides on entries of lists, too; otherwise lists show what the rules allow.'),
  replaces: S.of(
    'replaces',
    z.array(choice('arguments', 'results')),
    'What its answers may replace. With `results` it gets every result of a tool, which is then buffered until it is complete.',
  ),
})

export const policySchema = z.strictObject({
  rules: field(z.array(rule), 'The first matching rule decides. A rule that cannot be evaluated denies.'),
  default: field(choice('allow', 'deny'), 'The decision if no rule matches.', DEFAULT_POLICY.otherwise),
  service: field(serviceSchema, 'A service that decides if no rule matches; if it does not decide either, `default` does.'),
  max_arguments: sizeField(
    'Size of arguments for rules and the service; a call with larger ones is denied if they are needed for the decision.',
    DEFAULT_POLICY.maxArgumentsBytes,
  ),
})

const object = kind('a mapping', { type: 'object' }, jsonObject)
const time = kind('a time such as 2026-06-01T12:00:00Z', { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\dT' }, (value) => {
  const at = typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value) ? new Date(value) : undefined
  return at === undefined || Number.isNaN(at.getTime()) ? undefined : at
})

export const policyTestSchema = z.strictObject({
  name: field(filledText, 'Its name in messages.'),
  caller: field(
    z.strictObject({
      principal: field(filledText, 'The principal.', 'local'),
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
      original: field(text, 'Tool, prompt or URI, as the server names it. Required.'),
      name: field(text, 'Its exposed name. Default: with the prefix of the server.'),
      arguments: field(object, 'Arguments of the call.'),
      annotations: hints('Annotations of the tool.'),
    }),
    'The call. Required.',
  ),
  request: field(
    z.strictObject({
      revision: field(choice(...LEGACY_REVISIONS, ...MODERN_REVISIONS), 'Revision of the host.', LATEST_LEGACY),
      host: field(text, 'Name of the host.'),
      address: field(text, 'Address of the host.'),
      time: field(time, 'Its time. Default: now.'),
    }),
    'The request.',
  ),
  expect: field(choice('allow', 'deny', 'confirm'), 'The expected decision. Required.'),
})
