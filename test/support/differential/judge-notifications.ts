/** Progress and log messages of one exchange: under the host's token, increasing, complete in the end, at the host's level. */
import { LEVELS } from './conversation.ts'
import type { Exchange, Reply } from './conversation.ts'
import { areAlone, same, sameMembers } from './model.ts'
import type { Cell, Observed, Say } from './model.ts'
import { member, readTree, valueOf } from './tree.ts'
import type { Tree } from './tree.ts'

export const judgeNotifications = (cell: Cell, observed: Observed, say: Say): void => {
  const messages = observed.notifications.map(readTree)
  const of = (method: string): Tree[] => messages.filter((message) => valueOf(member(message, 'method')) === method)
  judgeProgress(cell, observed, of('notifications/progress'), say)
  judgeLogs(cell, observed, of('notifications/message'), say)
}

/** 3.9 (B075, B136): only what increases, at most ten a second beside the first twenty, and the last always arrives. */
const judgeProgress = (
  { endpoint }: Cell,
  { exchange: { token, reply } }: Observed,
  messages: readonly Tree[],
  say: Say,
): void => {
  if (token === undefined) {
    if (messages.length > 0) say('progress was relayed to a host that sent no token')
    return
  }
  let last = -Infinity
  for (const message of messages) {
    const params = member(message, 'params')
    if (valueOf(member(params, 'progressToken')) !== JSON.parse(token))
      say(`progress has the token ${member(params, 'progressToken')?.text}`)
    const value = Number(valueOf(member(params, 'progress')))
    if (value <= last && endpoint !== 'direct') say(`progress fell from ${last} to ${value}`)
    last = value
    const sent = reply.progress.filter((note) => note.value === value)
    const faults = sent.map(({ more }) => {
      const found: string[] = []
      judgeMore('progress', more, params, ['progressToken', 'progress'], (text) => found.push(text))
      return found
    })
    if (sent.length === 0) say(`progress was invented: ${message.text}`)
    else if (faults.every(({ length }) => length > 0)) for (const fault of faults[0] ?? []) say(fault)
  }
  const highest = Math.max(...reply.progress.map(({ value }) => value))
  if (reply.progress.length > 0 && last !== highest && endpoint !== 'direct')
    say(`progress ended with ${last} and not with ${highest}`)
}

/** 3.11 (B146, B147): at the host's level and above, the logger under the server's prefix, all else as it was written. */
const judgeLogs = (cell: Cell, { exchange, level, isAlone, mark }: Observed, messages: readonly Tree[], say: Say): void => {
  const expected = expectedLogs(cell, level, exchange)
  const isServers = level === undefined || cell.endpoint !== 'merged'
  const allowed = isServers && cell.hostEra === 'legacy' ? exchange.reply.logs : expected
  const taken = new Set<number>()
  for (const message of messages) {
    const params = member(message, 'params')
    if (valueOf(member(params, 'logger')) !== `${cell.prefix === '' ? '' : `${cell.prefix}/`}log ${mark}`)
      say(`the logger is ${member(params, 'logger')?.text} and not that of ${mark}`)
    const at = allowed.findIndex((note, index) => !taken.has(index) && isNote(note, params))
    if (at === -1) say(`a log message was changed, repeated, or is below the level ${level}: ${message.text}`)
    else taken.add(at)
  }
  const lost = expected.filter((note) => !taken.has(allowed.indexOf(note)))
  if (isAlone && lost.length > 0) say(`${lost.length} log messages were lost: ${JSON.stringify(lost)}`)
}

/** The log messages of an exchange that its host gets. */
export const expectedLogs = (cell: Cell, level: string | undefined, { reply }: Exchange): Reply['logs'] => {
  // What peers alone say to each other is theirs, also where a server sends what was not asked for.
  if (areAlone(cell)) return reply.logs
  if (cell.hostEra === 'modern' && level === undefined) return []
  // For a legacy host that set none, a modern server is asked for `info`; a legacy one sends what it likes.
  const least = LEVELS.indexOf((level ?? (cell.serverEra === 'modern' ? 'info' : 'debug')) as (typeof LEVELS)[number])
  return reply.logs.filter(({ level: own }) => LEVELS.indexOf(own as 'debug') >= least)
}

const isNote = (note: { level: string; more: readonly (readonly [string, string])[] }, params: Tree | undefined): boolean => {
  let isSame = valueOf(member(params, 'level')) === note.level && member(params, 'data')?.text === '1'
  judgeMore('log', note.more, params, ['level', 'logger', 'data'], () => (isSame = false))
  return isSame
}

const judgeMore = (
  place: string,
  more: readonly (readonly [string, string])[],
  params: Tree | undefined,
  own: readonly string[],
  say: Say,
): void => {
  const written = readTree(`{${more.map(([key, value]) => `${key}:${value}`).join(',')}}`)
  sameMembers(place, written, params, own, say)
}

/** 3.8 (B133, B168, 4.4 rule 9): the reported URI in its exposed form, all else as it was written. */
export const judgeUpdate = (exposed: string, sent: string, received: readonly string[], say: Say): void => {
  if (received.length !== 1) return say(`one update became ${received.length}: ${received.join(' ')}`)
  const from = member(readTree(sent), 'params')
  const to = member(readTree(received[0] ?? '{}'), 'params')
  if (valueOf(member(to, 'uri')) !== exposed)
    say(`the update of ${member(from, 'uri')?.text} is told as ${member(to, 'uri')?.text}`)
  sameMembers('update', from, to, ['uri', '_meta'], say)
  const meta = member(from, '_meta')
  for (const { key, value } of meta?.members ?? [])
    if (!key.startsWith('io.modelcontextprotocol/')) same(`update._meta["${key}"]`, value, member(member(to, '_meta'), key), say)
}
