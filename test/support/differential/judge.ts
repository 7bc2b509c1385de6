/**
 * What may differ between what one side wrote and what the other received through a gateway: a small model of the bridging rules
 * (touched fields, projections by the host's revision, error codes). Everything else must arrive in the spelling it was sent in.
 */
import type { Conversation, Exchange, Reply } from './conversation.ts'
import { member, readTree, valueOf } from './tree.ts'
import type { Tree } from './tree.ts'

export interface Cell {
  readonly hostEra: 'legacy' | 'modern'
  /** Of legacy hosts. */
  readonly hostRevision: string
  readonly serverEra: 'legacy' | 'modern'
  readonly prefix: string
}

/** One question: its `params` and the result it was answered with, as text. At most one of a method in an exchange. */
export interface Asked {
  readonly method: string
  readonly params: string
  readonly answer: string
}

/** What happened with one exchange. */
export interface Observed {
  readonly exchange: Exchange
  /** The host's message as it was sent. */
  readonly sent: string
  /** Messages that reached the server for it. */
  readonly received: readonly string[]
  /** The answer as the server wrote it; `undefined`: it was never asked. */
  readonly answered: string | undefined
  /** What the host received: notifications, then the answer. */
  readonly notifications: readonly string[]
  readonly answer: string
  /** The id of the request that got it, as text: a retry has one of its own. */
  readonly answeredId: string
  /** What the host was asked and what it answered. */
  readonly asked: readonly Asked[]
  /** What the server asked and what it was answered. */
  readonly questions: readonly Asked[]
}

const PROTOCOL = 'io.modelcontextprotocol/'
const OURS = 'dev.trunkline/'
/** Written by a gateway on each side; never relayed. */
const PER_REQUEST = ['protocolVersion', 'clientCapabilities', 'clientInfo', 'logLevel'].map((name) => PROTOCOL + name)

/** Everything that is not as the model says, one sentence each. */
export const judge = (cell: Cell, observed: Observed): string[] => {
  const found: string[] = []
  const say = (text: string): void => void found.push(text)
  const rounds = cell.serverEra === 'modern' && observed.questions.length > 0 ? 2 : 1
  if (observed.received.length !== rounds)
    say(`the server received ${observed.received.length} requests instead of ${rounds}; the host: ${observed.answer}`)
  for (const received of observed.received) judgeRequest(cell, readTree(observed.sent), readTree(received), say)
  if (observed.answered === undefined) return [...found, `the server never came to answer; the host received ${observed.answer}`]
  const answer = readTree(observed.answer)
  if (member(answer, 'id')?.text === undefined || valueOf(member(answer, 'id')) !== JSON.parse(observed.answeredId))
    say(`the answer has the id ${member(answer, 'id')?.text}`)
  if (observed.exchange.reply.outcome.kind === 'result') judgeResult(cell, observed, answer, say)
  else judgeError(cell, observed.exchange.reply.outcome, answer, say)
  judgeQuestions(cell, observed, say)
  judgeNotifications(cell, observed.exchange, observed.notifications, say)
  return found
}

type Say = (text: string) => void

const judgeRequest = (cell: Cell, sent: Tree, received: Tree, say: Say): void => {
  if (valueOf(member(received, 'method')) !== valueOf(member(sent, 'method'))) say('the method differs')
  const from = member(sent, 'params')
  const to = member(received, 'params')
  const method = valueOf(member(sent, 'method'))
  for (const { key, value } of from?.members ?? []) {
    const arrived = member(to, key)
    if (key === 'name' || key === 'uri') {
      const original = exposedName(cell, method, valueOf(arrived) as string)
      if (original !== valueOf(value)) say(`params.${key}: ${value.text} reached the server as ${arrived?.text}`)
    } else if (key === '_meta') {
      for (const part of value.members)
        if (!PER_REQUEST.includes(part.key) && part.key !== 'progressToken')
          same(`params._meta["${part.key}"]`, part.value, member(arrived, part.key), say)
    } else same(`params["${key}"]`, value, arrived, say)
  }
  for (const { key } of to?.members ?? [])
    if (!['_meta', 'inputResponses', 'requestState'].includes(key) && member(from, key) === undefined)
      say(`the server received params["${key}"], which the host did not send`)
  const meta = member(from, '_meta')
  for (const { key } of member(to, '_meta')?.members ?? []) {
    const isOurs = key === 'progressToken' || key.startsWith(OURS) || (cell.serverEra === 'modern' && PER_REQUEST.includes(key))
    if (!isOurs && member(meta, key) === undefined) say(`the server received params._meta["${key}"], which the host did not send`)
    if (cell.serverEra === 'legacy' && PER_REQUEST.includes(key)) say(`a legacy server received params._meta["${key}"]`)
  }
}

const exposedName = (cell: Cell, method: unknown, original: string): string =>
  method === 'resources/read' ? exposedUri(cell, original) : `${cell.prefix}__${original}`

/** BRIDGING 4.4, rules 1 to 3 and 8. */
export const exposedUri = ({ prefix }: Cell, uri: string): string => {
  if (/^https?:/i.test(uri) || !/^[a-z][a-z0-9+.-]*:/i.test(uri)) return uri
  if (uri.startsWith('ui://')) return `ui://~${prefix}/${uri.slice('ui://'.length)}`
  return `${prefix}+${uri}`
}

const same = (place: string, sent: Tree, arrived: Tree | undefined, say: Say): void => {
  if (arrived === undefined) say(`${place} was lost: ${sent.text}`)
  else if (arrived.text !== sent.text) say(`${place} was changed: ${sent.text} became ${arrived.text}`)
}

const isBefore = (cell: Cell, revision: string): boolean => cell.hostEra === 'legacy' && cell.hostRevision < revision

const judgeResult = (cell: Cell, observed: Observed, answer: Tree, say: Say): void => {
  const result = member(answer, 'result')
  if (result === undefined) return say(`a result became ${answer.text}`)
  const from = member(readTree(observed.answered ?? '{}'), 'result')
  const own = ['resultType', 'ttlMs', 'cacheScope', '_meta', 'content', 'contents', 'messages', 'structuredContent']
  for (const { key, value } of from?.members ?? [])
    if (!own.includes(key)) same(`result["${key}"]`, value, member(result, key), say)
  for (const { key } of result.members)
    if (!own.includes(key) && member(from, key) === undefined)
      say(`the host received result["${key}"], which the server did not send`)
  judgeEraMembers(cell, observed.exchange, from, result, say)
  const { method } = observed.exchange
  if (method === 'resources/read') return judgeBlocks(cell, 'contents', member(from, 'contents'), member(result, 'contents'), say)
  if (method === 'prompts/get') return judgeMessages(cell, member(from, 'messages'), member(result, 'messages'), say)
  judgeStructured(cell, from, result, say)
}

const judgeEraMembers = (cell: Cell, { method }: Exchange, from: Tree | undefined, result: Tree, say: Say): void => {
  const isModern = cell.hostEra === 'modern'
  if (isModern && valueOf(member(result, 'resultType')) !== 'complete') say('a modern host received no resultType "complete"')
  for (const key of ['resultType', 'ttlMs', 'cacheScope'])
    if (!isModern && member(result, key) !== undefined) say(`a legacy host received result.${key}`)
  if (isModern && method === 'resources/read' && member(result, 'ttlMs') === undefined) say('a read has no ttlMs')
  const meta = member(from, '_meta')
  const arrived = member(result, '_meta')
  for (const { key, value } of meta?.members ?? [])
    if (!key.startsWith(PROTOCOL) && !key.startsWith(OURS)) same(`result._meta["${key}"]`, value, member(arrived, key), say)
  for (const { key } of arrived?.members ?? []) {
    if (!isModern && key.startsWith(PROTOCOL)) say(`a legacy host received result._meta["${key}"]`)
    if (!key.startsWith(PROTOCOL) && !key.startsWith(OURS) && member(meta, key) === undefined)
      say(`the host received result._meta["${key}"], which the server did not send`)
  }
}

const judgeStructured = (cell: Cell, from: Tree | undefined, result: Tree, say: Say): void => {
  const content = member(from, 'content')
  const arrived = member(result, 'content')
  const structured = member(from, 'structuredContent')
  if (structured === undefined || structured.text === 'null') {
    if (structured === undefined && member(result, 'structuredContent') !== undefined) say('structured content was invented')
    if (content !== undefined) judgeBlocks(cell, 'content', content, arrived, say)
    return
  }
  const isWrapped =
    cell.serverEra === 'modern' && structured.kind !== 'object' && cell.hostEra === 'legacy' && !isBefore(cell, '2025-06-18')
  const value = member(result, 'structuredContent')
  if (isWrapped) same('structuredContent.result', structured, member(value, 'result'), say)
  else same('structuredContent', structured, value, say)
  const hasText = content?.items.some((item) => valueOf(member(item, 'type')) === 'text') ?? false
  const mayAddText = !hasText && cell.hostEra === 'legacy' && (isWrapped || isBefore(cell, '2025-06-18'))
  const extra = (arrived?.items.length ?? 0) - (content?.items.length ?? 0)
  if (extra !== 0 && !(mayAddText && extra === 1))
    return say(`${content?.items.length ?? 0} content blocks became ${arrived?.items.length}`)
  judgeBlocks(cell, 'content', content, arrived, say, extra)
}

const judgeBlocks = (cell: Cell, name: string, from: Tree | undefined, to: Tree | undefined, say: Say, extra = 0): void => {
  const count = from?.items.length ?? 0
  if ((to?.items.length ?? 0) - extra !== count) return say(`${count} of ${name} became ${to?.items.length}`)
  from?.items.forEach((block, at) => judgeBlock(cell, `${name}[${at}]`, block, to?.items[at], say))
}

const judgeMessages = (cell: Cell, from: Tree | undefined, to: Tree | undefined, say: Say): void => {
  if (from?.items.length !== to?.items.length) return say('messages were lost or added')
  from?.items.forEach((message, at) => {
    for (const { key, value } of message.members) {
      const arrived = member(to?.items[at], key)
      if (key === 'content' && arrived !== undefined) judgeBlock(cell, `messages[${at}].content`, value, arrived, say)
      else same(`messages[${at}]["${key}"]`, value, arrived, say)
    }
  })
}

const judgeBlock = (cell: Cell, place: string, from: Tree, to: Tree | undefined, say: Say): void => {
  const type = valueOf(member(from, 'type'))
  const isText = type === 'resource_link' ? isBefore(cell, '2025-06-18') : type === 'audio' && isBefore(cell, '2025-03-26')
  if (isText) {
    if (valueOf(member(to, 'type')) !== 'text') say(`${place}: ${String(type)} reached a ${cell.hostRevision} host`)
    return
  }
  const holder = type === 'resource' ? 'resource' : undefined
  for (const { key, value } of from.members) {
    const arrived = member(to, key)
    if (key === 'uri' && type !== 'vendor') judgeUri(cell, `${place}.uri`, value, arrived, say)
    else if (key === holder && value.kind === 'object') {
      for (const part of value.members)
        if (part.key === 'uri') judgeUri(cell, `${place}.resource.uri`, part.value, member(arrived, 'uri'), say)
        else same(`${place}.resource["${part.key}"]`, part.value, member(arrived, part.key), say)
    } else same(`${place}["${key}"]`, value, arrived, say)
  }
  if (to?.members.length !== from.members.length) say(`${place} has other members than were sent: ${to?.text}`)
}

const judgeUri = (cell: Cell, place: string, from: Tree, to: Tree | undefined, say: Say): void => {
  if (from.kind !== 'string') return same(place, from, to, say)
  const expected = exposedUri(cell, valueOf(from) as string)
  if (valueOf(to) !== expected) say(`${place}: ${from.text} became ${to?.text} instead of ${JSON.stringify(expected)}`)
}

/** BRIDGING 7.3, the rows that do not change what the gateway believes of its server. */
const codeFor = (cell: Cell, code: number): number => {
  if (code === -32600 || code === -32700) return -32603
  if (code <= -32000 && code >= -32019) return cell.hostEra === 'modern' ? -32603 : code
  if (code <= -32020 && code >= -32099) return -32603
  return code
}

const judgeError = (cell: Cell, outcome: Reply['outcome'] & { kind: 'error' }, answer: Tree, say: Say): void => {
  const error = member(answer, 'error')
  if (error === undefined) return say(`the error ${outcome.code} became ${answer.text}`)
  const code = codeFor(cell, outcome.code)
  if (valueOf(member(error, 'code')) !== code)
    say(`the code ${outcome.code} became ${member(error, 'code')?.text} instead of ${code}`)
  const data = member(error, 'data')
  if (code === outcome.code) {
    if (valueOf(member(error, 'message')) !== JSON.parse(outcome.message))
      say(`the message became ${member(error, 'message')?.text}`)
    if (outcome.data !== undefined) judgeData(cell, readTree(outcome.data), data, say)
    return
  }
  const original = member(data, 'original')
  if (original === undefined) return say(`nothing is left of the error ${outcome.code}: ${error.text}`)
  if (valueOf(member(original, 'code')) !== outcome.code) say(`data.original.code is ${member(original, 'code')?.text}`)
  if (valueOf(member(original, 'message')) !== JSON.parse(outcome.message))
    say(`data.original.message is ${member(original, 'message')?.text}`)
  if (outcome.data !== undefined) same('error.data.original.data', readTree(outcome.data), member(original, 'data'), say)
}

/** The URI of an error leaves in its exposed form; all else of it is the server's. */
const judgeData = (cell: Cell, from: Tree, to: Tree | undefined, say: Say): void => {
  const uri = from.kind === 'object' ? member(from, 'uri') : undefined
  if (uri?.kind !== 'string') return same('error.data', from, to, say)
  for (const { key, value } of from.members)
    if (key === 'uri') judgeUri(cell, 'error.data.uri', uri, member(to, 'uri'), say)
    else same(`error.data["${key}"]`, value, member(to, key), say)
}

/** Members of a question that are worded for the host: its message, the mode that older revisions do not name. */
const judgeQuestions = (cell: Cell, { asked, questions }: Observed, say: Say): void => {
  if (asked.length !== questions.length) return say(`${questions.length} questions became ${asked.length}`)
  questions.forEach(({ method, params, answer }) => {
    const reached = asked.find((each) => each.method === method)
    const from = readTree(params)
    const to = readTree(reached?.params ?? '{}')
    for (const { key, value } of from.members) {
      if (key === 'message') {
        const expected = `[${cell.prefix.toUpperCase()}] ${String(valueOf(value))}`
        if (valueOf(member(to, 'message')) !== expected) say(`a question reached the host as ${member(to, 'message')?.text}`)
      } else same(`question["${key}"]`, value, member(to, key), say)
    }
    for (const { key } of to.members)
      if (member(from, key) === undefined && key !== 'mode' && key !== '_meta')
        say(`the host was asked with "${key}", which the server did not send`)
    const given = reached?.answer ?? '"nothing"'
    if (readTree(given).text !== readTree(answer).text) say(`the answer ${given} reached the server as ${answer}`)
  })
}

const judgeNotifications = (cell: Cell, exchange: Exchange, notifications: readonly string[], say: Say): void => {
  let last = -Infinity
  for (const text of notifications) {
    const message = readTree(text)
    const params = member(message, 'params')
    if (valueOf(member(message, 'method')) !== 'notifications/progress') continue
    if (exchange.token === undefined) return say('progress was relayed to a host that sent no token')
    if (valueOf(member(params, 'progressToken')) !== JSON.parse(exchange.token))
      say(`progress has the token ${member(params, 'progressToken')?.text}`)
    const value = Number(valueOf(member(params, 'progress')))
    if (value <= last) say(`progress fell from ${last} to ${value}`)
    last = value
    const sent = exchange.reply.progress.filter((note) => note.value === value)
    const isKept = sent.some(({ more }) =>
      more.every(([key, written]) => member(params, JSON.parse(key) as string)?.text === readTree(written).text),
    )
    if (!isKept) say(`progress was changed: ${text}`)
  }
  for (const text of notifications) {
    const message = readTree(text)
    if (valueOf(member(message, 'method')) !== 'notifications/message') continue
    const params = member(message, 'params')
    if (valueOf(member(params, 'logger')) !== `${cell.prefix}/log`) say(`the logger is ${member(params, 'logger')?.text}`)
    const level = valueOf(member(params, 'level'))
    const isKept = exchange.reply.logs.some(
      (note) =>
        note.level === level &&
        note.more.every(([key, written]) => member(params, JSON.parse(key) as string)?.text === readTree(written).text),
    )
    if (!isKept) say(`a log message was changed: ${text}`)
  }
}

/** How often each kind of thing was said, so that a run can show what it covered. */
export const countsOf = (conversation: Conversation): Record<string, number> => {
  const counts: Record<string, number> = {}
  const count = (name: string): void => void (counts[name] = (counts[name] ?? 0) + 1)
  for (const { method, reply } of conversation.exchanges) {
    count(method)
    count(reply.outcome.kind)
    if (reply.outcome.kind === 'result') for (const { type } of reply.outcome.blocks ?? []) count(type)
    for (const _ of reply.progress) count('progress')
    for (const _ of reply.logs) count('log message')
    for (const { method: asks } of reply.questions) count(asks)
  }
  return counts
}
