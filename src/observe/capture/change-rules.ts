/** The rules that explain changes of messages: a table of paths, of which the first match counts (BRIDGING 2.5). */
import { META } from '../../wire/protocol/meta.ts'

/** `down`: a request to the server; `up`: an answer to the host. */
export type Direction = 'down' | 'up'

export interface ChangeRule {
  readonly rule: string
  readonly why: string
}

interface Row extends ChangeRule {
  readonly direction: Direction
  /** Keys from the root. `*`: any key or index; `**` at the end: anything below. */
  readonly path: readonly string[]
}

const down = (path: readonly string[], rule: string, why: string): Row => ({ direction: 'down', path, rule, why })
const up = (path: readonly string[], rule: string, why: string): Row => ({ direction: 'up', path, rule, why })

const RULES: readonly Row[] = [
  down(['id'], '4', 'each connection to a server has ids of its own; the host’s id never leaves its exchange'),
  down(['params', 'name'], '4.2', 'the exposed name became the server’s own'),
  down(['params', 'uri'], '4.4', 'the exposed URI became the server’s own'),
  down(['params', 'ref', '**'], '3.6', 'the exposed name or URI became the server’s own'),
  down(
    ['params', 'arguments', '**'],
    'tools.*.args',
    'arguments that the configuration pins, hides or gives a default; prefixed URIs in them',
  ),
  down(['params', '_meta', 'progressToken'], 'B136', 'the progress token is our id at the server'),
  down(['params', '_meta', META.version], 'B013', 'the revision that is spoken to this server'),
  down(['params', '_meta', META.capabilities], 'B037', 'what the host declares, as far as it may be used here'),
  down(['params', '_meta', META.clientInfo], 'B013', 'a server of 2026-07-28 is told who calls: the gateway'),
  down(['params', '_meta', META.hops], 'T-35', 'how many gateways the request has passed'),
  down(['params', '_meta', 'traceparent'], 'B020', 'the trace goes on as a child'),
  down(['params', '_meta', '**'], '2.5', 'members of one exchange are not relayed; each era has its own'),
  down(['params', '_meta'], '2.5', 'members of one exchange are not relayed; each era has its own'),
  down(['params', 'requestState'], 'B066', 'the server’s own state, out of the one that the gateway sealed'),
  down(['params', 'inputResponses', '**'], 'B066', 'answers under the keys that the server gave'),
  down(['params', 'task'], '3.17', 'tasks in the form of this server’s era'),
  down(['params', 'context'], '3.6', 'the server’s revision knows no context'),
  up(['id'], '4', 'the host’s own id'),
  up(['result', 'resultType'], 'B008', 'present for hosts of 2026-07-28, absent for older ones (B106)'),
  up(['result', 'ttlMs'], 'B106', 'caching hints belong to 2026-07-28'),
  up(['result', 'cacheScope'], 'B106', 'caching hints belong to 2026-07-28'),
  up(['result', '_meta', META.serverInfo], 'B011', 'hosts of 2026-07-28 are told who answers: the gateway'),
  up(['result', '_meta', META.server], '2.5', 'which server the result came from'),
  up(['result', '_meta', '**'], '2.5', 'members of one exchange are not relayed'),
  up(['result', '_meta'], 'B011', 'hosts of 2026-07-28 are told who answers, and from which server'),
  up(['result', 'requestState'], '3.2', 'the state is sealed for this caller'),
  up(['result', 'inputRequests', '**'], '3.13', 'questions name the server that asks'),
  up(['result', 'structuredContent', '**'], 'B108', 'structured content in the shape of the host’s revision'),
  up(['result', 'structuredContent'], 'B108', 'structured content in the shape of the host’s revision'),
  up(['result', 'content', '*', 'uri'], '4.4', 'the URI as hosts see it'),
  up(['result', 'content', '*', 'resource', 'uri'], '4.4', 'the URI as hosts see it'),
  up(['result', 'content', '**'], 'B107', 'a content block in a form that the host’s revision knows'),
  up(['result', 'contents', '*', 'uri'], '4.4', 'the URI as hosts see it'),
  up(['result', 'messages', '*', 'content', '**'], '4.4', 'the URI as hosts see it'),
  up(['result', 'completion', '**'], 'B111', 'at most a hundred values'),
  up(['error', '**'], '7.3', 'the error in the words of the host’s era'),
  up(['error'], '7', 'the answer is an error on one side alone'),
  up(['result'], '7', 'the answer is a result on one side alone'),
]

const UNKNOWN: ChangeRule = { rule: '', why: '' }

export const ruleFor = (direction: Direction, path: readonly (string | number)[]): ChangeRule =>
  RULES.find((row) => row.direction === direction && matches(row.path, path)) ?? UNKNOWN

const matches = (pattern: readonly string[], path: readonly (string | number)[]): boolean => {
  const isOpen = pattern.at(-1) === '**'
  const fixed = isOpen ? pattern.slice(0, -1) : pattern
  if (isOpen ? path.length <= fixed.length : path.length !== fixed.length) return false
  return fixed.every((key, at) => key === '*' || key === String(path[at]))
}
