/**
 * What may differ between what one side wrote and what the other received through a gateway: a small model of the bridging rules.
 * Everything that no function here names must arrive in the spelling it was sent in. `docs/differential.md` lists the differences.
 */
import { exposedName, listedUri } from './catalog.ts'
import type { Exchange, Outcome } from './conversation.ts'
import { judgeNotifications } from './judge-notifications.ts'
import { judgeQuestions } from './judge-questions.ts'
import { areAlone, isBefore, judgeUri, OURS, PER_REQUEST, PROTOCOL, same, sameMembers, sameVendorMeta } from './model.ts'
import type { Cell, Observed, Say } from './model.ts'
import { member, readTree, valueOf } from './tree.ts'
import type { Tree } from './tree.ts'

/** Everything that is not as the model says, one sentence each. */
export const judge = (cell: Cell, observed: Observed): string[] => {
  const found: string[] = []
  const say = (text: string): void => void found.push(text)
  const { exchange, received, answered } = observed
  for (const { text, declared } of received) {
    judgeRequest(cell, readTree(observed.sent), readTree(text), say)
    // Completions go over the link that serves no host, and declares what any of them could (3.0 rule 3).
    if (exchange.method !== 'completion/complete') judgeDeclared(observed, readTree(declared), say)
  }
  const { outcome } = exchange.reply
  const isHidden = cell.curating.hidden.includes(observed.target)
  if (outcome.kind === 'cancelled' && !isHidden) {
    judgeCancellation(cell, observed, say)
    return found
  }
  const answer = readTree(observed.answer)
  if (valueOf(member(answer, 'id')) !== JSON.parse(observed.answeredId))
    say(`the answer has the id ${member(answer, 'id')?.text}`)
  if (isHidden) judgeHidden(observed, answer, say)
  else if (outcome.kind === 'dies' && received.length === 1) judgeLost(exchange, answer, say)
  else if (answered === undefined) say(`the server never came to answer; the host received ${observed.answer}`)
  else {
    judgeCount(cell, observed, say)
    if (outcome.kind === 'error') judgeError(cell, observed, readTree(answered), answer, say)
    else judgeResult(cell, observed, readTree(answered), answer, say)
    judgeQuestions(cell, observed, say)
    judgeNotifications(cell, observed, say)
  }
  return found
}

/** A modern server is asked once more with the answers (B066, B067), one that died is asked once more where that is safe (B231). */
const judgeCount = (cell: Cell, { received, questions, exchange, answer }: Observed, say: Say): void => {
  const { outcome } = exchange.reply
  const isDying = outcome.kind === 'dies'
  // B221: the gateway may have read the tool before its headers changed.
  const isMismatch =
    outcome.kind === 'error' &&
    outcome.code === -32020 &&
    exchange.method === 'tools/call' &&
    cell.serverEra === 'modern' &&
    cell.isServerHttp &&
    cell.endpoint !== 'direct'
  const expected = (cell.serverEra === 'modern' && questions.length > 0 ? 2 : 1) + (isDying || isMismatch ? 1 : 0)
  if (isDying && exchange.method === 'tools/call') return say(`a tool was called twice: ${answer}`)
  if (received.length !== expected) say(`the server received ${received.length} requests instead of ${expected}: ${answer}`)
}

const judgeRequest = (cell: Cell, sent: Tree, received: Tree, say: Say): void => {
  const method = valueOf(member(sent, 'method')) as Exchange['method']
  if (valueOf(member(received, 'method')) !== method) say('the method differs')
  const from = member(sent, 'params')
  const to = member(received, 'params')
  const naming = method === 'tools/call' || method === 'prompts/get' ? 'name' : method === 'resources/read' ? 'uri' : 'ref'
  if (naming === 'ref') judgeReference(cell, member(from, 'ref'), member(to, 'ref'), say)
  else {
    const arrived = member(to, naming)
    const list = method === 'tools/call' ? 'tools' : 'prompts'
    const original = valueOf(arrived) as string
    const exposed = naming === 'uri' ? listedUri(cell.prefix, original) : exposedName(cell.prefix, cell.curating, list, original)
    if (exposed !== valueOf(member(from, naming)))
      say(`params.${naming}: ${member(from, naming)?.text} reached the server as ${arrived?.text}`)
  }
  if (method === 'tools/call') judgeArguments(cell, valueOf(member(to, 'name')) as string, from, to, say)
  // 3.2, B066: what a retry brings is judged with the questions.
  const own = [naming, '_meta', 'inputResponses', 'requestState', ...(method === 'tools/call' ? ['arguments'] : [])]
  // 3.6: `context` is unknown before 2025-06-18, and the fake servers all know it.
  sameMembers('params', from, to, own, say)
  const meta = member(from, '_meta')
  const arrived = member(to, '_meta')
  sameVendorMeta('params._meta', meta, arrived, say)
  for (const { key } of arrived?.members ?? []) {
    if (!key.startsWith(PROTOCOL) || member(meta, key) !== undefined) continue
    if (cell.serverEra === 'legacy' || !PER_REQUEST.includes(key)) say(`the server received params._meta["${key}"]`)
  }
  if (cell.serverEra === 'legacy')
    for (const key of PER_REQUEST) if (member(arrived, key) !== undefined) say(`a legacy server received params._meta["${key}"]`)
}

/** 2.1, B168: the reference of a completion. */
const judgeReference = (cell: Cell, from: Tree | undefined, to: Tree | undefined, say: Say): void => {
  const original = valueOf(member(to, 'name') ?? member(to, 'uri')) as string
  const exposed =
    member(to, 'name') === undefined
      ? listedUri(cell.prefix, original)
      : exposedName(cell.prefix, cell.curating, 'prompts', original)
  if (exposed !== valueOf(member(from, 'name') ?? member(from, 'uri')))
    say(`the reference ${from?.text} reached the server as ${to?.text}`)
  sameMembers('params.ref', from, to, ['name', 'uri'], say)
}

/** B018, B019, but for the exposed URIs of this server (4.4 rule 7, B167) and what the configuration pins. */
const judgeArguments = (cell: Cell, tool: string, from: Tree | undefined, to: Tree | undefined, say: Say): void => {
  const sent = member(from, 'arguments')
  const pin = cell.curating.edits.find((edit) => edit.tool === tool)?.pin
  let expected = sent === undefined ? undefined : unaliased(sent.text, cell.prefix)
  if (pin !== undefined) {
    const pinned = `"pinned":${JSON.stringify(pin.value)}`
    const isEmpty = expected === undefined || (sent?.members.length ?? 0) === 0
    expected = isEmpty ? `{${pinned}}` : `{${pinned},${expected?.slice(1)}`
  }
  const arrived = member(to, 'arguments')?.text
  if (arrived !== expected) say(`the arguments ${sent?.text} became ${arrived} instead of ${expected}`)
}

/** String values that begin, unescaped, with the exposed form of this server's URIs lose exactly that. */
const unaliased = (text: string, prefix: string): string =>
  prefix === ''
    ? text
    : text.replaceAll(/"(?:[^"\\]|\\.)*"(\s*:)?/gs, (token, colon: string | undefined) => {
        if (colon !== undefined) return token
        if (token.startsWith(`"ui://~${prefix}/`)) return `"ui://${token.slice(`"ui://~${prefix}/`.length)}`
        const rest = token.startsWith(`"${prefix}+`) ? token.slice(prefix.length + 2) : ''
        if (/^:[^"]/.test(rest)) return `"${rest.slice(1)}`
        return /^[A-Za-z][A-Za-z0-9+.-]*:/.test(rest) ? `"${rest}` : token
      })

/** B036, B037, B038, B053: of what a host answers, what this very host declared, and nothing else. */
const judgeDeclared = ({ capabilities }: Observed, declared: Tree, say: Say): void => {
  const own = readTree(capabilities)
  for (const key of ['elicitation', 'sampling', 'roots'])
    if ((member(own, key) === undefined) !== (member(declared, key) === undefined))
      say(`a host that declares ${own.text} was declared to the server as ${declared.text}`)
  const modes = (tree: Tree | undefined): string =>
    tree === undefined ? 'none' : member(tree, 'url') === undefined ? 'forms' : 'forms and URLs'
  if (modes(member(own, 'elicitation')) !== modes(member(declared, 'elicitation')))
    say(`elicitation of a host that declares ${own.text} was declared as ${declared.text}`)
  if ((member(member(own, 'sampling'), 'tools') === undefined) !== (member(member(declared, 'sampling'), 'tools') === undefined))
    say(`sampling of a host that declares ${own.text} was declared as ${declared.text}`)
}

/** 2.4, 3.10 (B138, B140, B273): the reason, `_meta` and unknown members pass; where one side closes a stream there is nothing to say. */
const judgeCancellation = (cell: Cell, { cancellation, received, answer }: Observed, say: Say): void => {
  if (received.length !== 1) say(`the server received ${received.length} requests of a call that was cancelled`)
  if (answer !== '') say(`a cancelled request was answered: ${answer}`)
  const isClosed = cell.serverEra === 'modern' && cell.isServerHttp
  if (isClosed !== (cancellation?.received === 'closed'))
    return say(`a cancellation reached the server as ${cancellation?.received}`)
  if (isClosed || cancellation?.received === undefined) return
  if (cancellation.sent === undefined) return
  sameMembers('cancellation', readTree(cancellation.sent), readTree(cancellation.received), ['requestId', '_meta'], say)
  const metaOf = (text: string): Tree | undefined => member(readTree(text), '_meta')
  const own = PER_REQUEST.map((key) => key)
  sameMembers('cancellation._meta', metaOf(cancellation.sent), metaOf(cancellation.received), own, say)
}

/** What the configuration hides is unknown (7.2 `denied`), and no server gets to see the request. */
const judgeHidden = ({ received, sent, exchange }: Observed, answer: Tree, say: Say): void => {
  const params = member(readTree(sent), 'params')
  const error = member(answer, 'error')
  if (received.length > 0) say(`what is hidden reached the server: ${received[0]?.text}`)
  if (valueOf(member(error, 'code')) !== -32602) say(`what is hidden was answered with ${answer.text}`)
  if (exchange.method === 'completion/complete') return
  const name = valueOf(member(params, 'name')) as string
  if (!(valueOf(member(error, 'message')) as string | undefined)?.endsWith(`: ${name}`))
    say(`what is hidden was answered with ${answer.text}`)
}

/** 7.2 `exited`, `lost`: the model reads what happened to a tool, everything else is an error; never silence, never another's answer. */
const judgeLost = ({ method }: Exchange, answer: Tree, say: Say): void => {
  const result = member(answer, 'result')
  const error = member(answer, 'error')
  const facts =
    method === 'tools/call' ? member(member(result, '_meta'), `${OURS}gateway`) : member(member(error, 'data'), `${OURS}gateway`)
  if (method === 'tools/call' ? valueOf(member(result, 'isError')) !== true : valueOf(member(error, 'code')) !== -32603)
    return say(`a lost call was answered with ${answer.text}`)
  if (valueOf(member(facts, 'executed')) !== 'unknown') say(`a lost call says of itself ${facts?.text}`)
}

const judgeResult = (cell: Cell, observed: Observed, answered: Tree, answer: Tree, say: Say): void => {
  const result = member(answer, 'result')
  if (result === undefined) return say(`a result became ${answer.text}`)
  const from = member(answered, 'result')
  const { method } = observed.exchange
  if (areAlone(cell)) {
    sameMembers('result', from, result, ['_meta'], say)
    return sameVendorMeta('result._meta', member(from, '_meta'), member(result, '_meta'), say)
  }
  const own = ['resultType', 'ttlMs', 'cacheScope', '_meta', 'content', 'contents', 'messages', 'structuredContent']
  sameMembers('result', from, result, own, say)
  judgeEraMembers(cell, observed.exchange, from, result, say)
  if (method === 'resources/read') return judgeBlocks(cell, 'contents', member(from, 'contents'), member(result, 'contents'), say)
  if (method === 'prompts/get') return judgeMessages(cell, member(from, 'messages'), member(result, 'messages'), say)
  if (method === 'tools/call') judgeStructured(cell, observed.target, from, result, say)
}

/** B008, B011, B106, B149, B291: what one era puts on every result, and the other does not know. */
const judgeEraMembers = (cell: Cell, { method }: Exchange, from: Tree | undefined, result: Tree, say: Say): void => {
  const isModern = cell.hostEra === 'modern'
  if (isModern && valueOf(member(result, 'resultType')) !== 'complete') say('a modern host received no resultType "complete"')
  for (const key of ['resultType', 'ttlMs', 'cacheScope'])
    if (!isModern && member(result, key) !== undefined) say(`a legacy host received result.${key}`)
  if (isModern && method === 'resources/read') {
    for (const key of ['ttlMs', 'cacheScope']) if (member(result, key) === undefined) say(`a read has no ${key}`)
    if (cell.serverEra === 'modern') same('result.ttlMs', member(from, 'ttlMs') ?? readTree('0'), member(result, 'ttlMs'), say)
  }
  sameVendorMeta('result._meta', member(from, '_meta'), member(result, '_meta'), say)
  for (const { key } of member(result, '_meta')?.members ?? [])
    if (!isModern && key.startsWith(PROTOCOL)) say(`a legacy host received result._meta["${key}"]`)
}

/** 3.3, B107, B108, B282, B283: wrapped once per tool by its schema, by the value where it has none; never for legacy servers. */
const judgeStructured = (cell: Cell, tool: string, from: Tree | undefined, result: Tree, say: Say): void => {
  const content = member(from, 'content')
  const arrived = member(result, 'content')
  const structured = member(from, 'structuredContent')
  const value = member(result, 'structuredContent')
  if (structured === undefined || structured.text === 'null') {
    if (structured?.text !== value?.text) say(`structured content ${structured?.text} became ${value?.text}`)
    if (content !== undefined) judgeBlocks(cell, 'content', content, arrived, say)
    return
  }
  const isWrapped = knowsObjectsOnly(cell) && isWrappedBy(outputSchemaOf(cell, tool), structured)
  if (isWrapped) same('structuredContent.result', structured, member(value, 'result'), say)
  else same('structuredContent', structured, value, say)
  if (isWrapped && value?.members.length !== 1) say(`wrapped content became ${value?.text}`)
  const hasText = content?.items.some((item) => valueOf(member(item, 'type')) === 'text') ?? false
  const mayAddText = !hasText && cell.hostEra === 'legacy' && (isWrapped || isBefore(cell, '2025-06-18'))
  const extra = (arrived?.items.length ?? 0) - (content?.items.length ?? 0)
  if (extra !== (mayAddText ? 1 : 0)) return say(`${content?.items.length ?? 0} content blocks became ${arrived?.text}`)
  if (extra === 1 && valueOf(member(arrived?.items.at(-1), 'text')) !== structured.text)
    say(`structured content ${structured.text} was said as ${arrived?.items.at(-1)?.text}`)
  judgeBlocks(cell, 'content', content, arrived, say, extra)
}

export const knowsObjectsOnly = (cell: Cell): boolean =>
  cell.serverEra === 'modern' && cell.hostEra === 'legacy' && !isBefore(cell, '2025-06-18')

export const isWrappedBy = (schema: Tree | undefined, value: Tree): boolean =>
  schema === undefined ? value.kind !== 'object' : valueOf(member(schema, 'type')) !== 'object'

const outputSchemaOf = (cell: Cell, tool: string): Tree | undefined => {
  const text = cell.catalog.tools.find(({ id }) => id === tool)?.members.find(([key]) => key === '"outputSchema"')?.[1]
  return text === undefined ? undefined : readTree(text)
}

const judgeBlocks = (cell: Cell, name: string, from: Tree | undefined, to: Tree | undefined, say: Say, extra = 0): void => {
  const count = from?.items.length ?? 0
  if ((to?.items.length ?? 0) - extra !== count) return say(`${count} of ${name} became ${to?.items.length}`)
  from?.items.forEach((block, at) => judgeBlock(cell, `${name}[${at}]`, block, to?.items[at], say))
}

const judgeMessages = (cell: Cell, from: Tree | undefined, to: Tree | undefined, say: Say): void => {
  if (from?.items.length !== to?.items.length) return say('messages were lost or added')
  from?.items.forEach((message, at) => {
    sameMembers(`messages[${at}]`, message, to?.items[at], ['content'], say)
    const content = member(message, 'content')
    if (content !== undefined) judgeBlock(cell, `messages[${at}].content`, content, member(to?.items[at], 'content'), say)
  })
}

/** B107: a block that the host's revision does not know is said in text. */
const isWorded = (cell: Cell, block: Tree): boolean => {
  const type = valueOf(member(block, 'type'))
  return type === 'resource_link' ? isBefore(cell, '2025-06-18') : type === 'audio' && isBefore(cell, '2025-03-26')
}

const judgeBlock = (cell: Cell, place: string, from: Tree, to: Tree | undefined, say: Say): void => {
  const type = valueOf(member(from, 'type'))
  if (isWorded(cell, from)) {
    if (valueOf(member(to, 'type')) !== 'text') say(`${place}: ${String(type)} reached a ${cell.hostRevision} host`)
    return
  }
  const isContent = type === undefined
  const uri = member(from, 'uri')
  if (uri !== undefined && (isContent || type === 'resource_link')) judgeUri(cell, `${place}.uri`, uri, member(to, 'uri'), say)
  const resource = type === 'resource' ? member(from, 'resource') : undefined
  if (resource !== undefined) {
    const arrived = member(to, 'resource')
    judgeUri(cell, `${place}.resource.uri`, member(resource, 'uri') ?? resource, member(arrived, 'uri'), say)
    sameMembers(`${place}.resource`, resource, arrived, ['uri'], say)
  }
  sameMembers(
    place,
    from,
    to,
    [...(isContent || type === 'resource_link' ? ['uri'] : []), ...(resource === undefined ? [] : ['resource'])],
    say,
  )
}

/** BRIDGING 7.3: codes that would say something untrue about the gateway, or that one era does not know. */
const codeFor = (cell: Cell, capabilities: string, method: Exchange['method'], code: number, hasUri: boolean): number => {
  if (code === URL_REQUIRED && cell.hostEra === 'legacy' && knowsUrls(cell, capabilities)) return code
  // B057: a completion has no rounds, in which a modern host could be asked.
  const isAsked = cell.hostEra === 'modern' && method !== 'completion/complete'
  if (code === URL_REQUIRED && isAsked && !knowsUrls(cell, capabilities)) return MISSING_CAPABILITY
  if ([-32700, -32600, -32601, -32020, -32022].includes(code)) return -32603
  if (code === -32602 && method === 'resources/read' && cell.hostEra === 'legacy' && hasUri) return -32002
  if (code === -32002) return cell.hostEra === 'modern' ? -32602 : code
  if (code <= -32000 && code >= -32019) return cell.hostEra === 'modern' ? -32603 : code
  if (code <= -32020 && code >= -32099) return -32603
  return code
}

const URL_REQUIRED = -32042
const MISSING_CAPABILITY = -32021

const knowsUrls = (cell: Cell, capabilities: string): boolean =>
  !isBefore(cell, '2025-11-25') && member(member(readTree(capabilities), 'elicitation'), 'url') !== undefined

/** 3.13, 7.3: what a legacy host cannot do within its session its model reads, as the result of the tool. */
const isToldInWords = (cell: Cell, capabilities: string, code: number): boolean =>
  cell.hostEra === 'legacy' &&
  !areAlone(cell) &&
  (code === MISSING_CAPABILITY || (code === URL_REQUIRED && !knowsUrls(cell, capabilities)))

const judgeWords = (code: number, answer: Tree, say: Say): void => {
  if (valueOf(member(member(answer, 'result'), 'isError')) !== true) say(`the error ${code} became ${answer.text}`)
}

const judgeError = (cell: Cell, { exchange, sent, capabilities }: Observed, answered: Tree, answer: Tree, say: Say): void => {
  const { method, reply } = exchange
  const asked = valueOf(member(member(readTree(sent), 'params'), 'uri'))
  const outcome = reply.outcome as Outcome & { kind: 'error' }
  const from = member(answered, 'error')
  const data = member(from, 'data')
  const error = member(answer, 'error')
  // 3.1, 7.3: the merged endpoint offers completion for all servers.
  if (method === 'completion/complete' && outcome.code === -32601 && cell.endpoint === 'merged') {
    const values = member(member(member(answer, 'result'), 'completion'), 'values')
    return values?.text === '[]' ? undefined : say(`a completion that the server lacks became ${answer.text}`)
  }
  if (error === undefined) {
    if (method === 'tools/call' && isToldInWords(cell, capabilities, outcome.code)) return judgeWords(outcome.code, answer, say)
    return say(`the error ${outcome.code} became ${answer.text}`)
  }
  if (areAlone(cell)) return sameMembers('error', from, error, [], say)
  const hasUri = data !== undefined && member(data, 'uri') !== undefined
  const code = codeFor(cell, capabilities, method, outcome.code, hasUri)
  const arrived = member(error, 'code')
  if (arrived?.text !== String(code)) say(`the code ${outcome.code} became ${arrived?.text} instead of ${code}`)
  // A visit that the host cannot make is told in the gateway's words.
  if (outcome.code === URL_REQUIRED && !knowsUrls(cell, capabilities)) return
  if (outcome.code === URL_REQUIRED && code === outcome.code) return sameMembers('error', from, error, [], say)
  const message = member(from, 'message')
  const isReworded = isToldInWords(cell, capabilities, outcome.code)
  if (message !== undefined && !isReworded) same('error.message', message, member(error, 'message'), say)
  const there = member(error, 'data')
  // B104: where the server said nothing, the host is told which resource is missing.
  const isNotFound = method === 'resources/read' && (outcome.code === -32002 || (outcome.code === -32602 && hasUri))
  if (isNotFound && code === outcome.code && (data === undefined || data.text === 'null')) {
    if (valueOf(member(there, 'uri')) !== asked) say(`a missing resource is told as ${there?.text}`)
    return
  }
  if (isNotFound && member(there, 'uri') !== undefined && valueOf(member(there, 'uri')) !== asked)
    say(`a missing resource is told as ${there?.text}`)
  if (isNotFound && code === outcome.code && data?.kind === 'object') return sameMembers('error.data', data, there, ['uri'], say)
  if (code === outcome.code) {
    sameMembers('error', from, error, ['code', 'message', 'data'], say)
    if (data !== undefined) judgeData(cell, data, there, say)
    else if (there !== undefined) say(`the host received error.data ${there.text}`)
    return
  }
  // B272: all that the server said, byte for byte.
  const original = member(there, 'original')
  if (original === undefined) return say(`nothing is left of the error ${outcome.code}: ${error.text}`)
  sameMembers('error.data.original', from, original, [], say)
}

/** 4.4 rule 9: the URI of an error leaves in its exposed form; all else of it is the server's. */
const judgeData = (cell: Cell, from: Tree, to: Tree | undefined, say: Say): void => {
  const uri = from.kind === 'object' ? member(from, 'uri') : undefined
  if (uri?.kind !== 'string') return same('error.data', from, to, say)
  judgeUri(cell, 'error.data.uri', uri, member(to, 'uri'), say)
  sameMembers('error.data', from, to, ['uri'], say)
}
