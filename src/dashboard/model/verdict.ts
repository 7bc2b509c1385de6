/** Explains in sentences why a call was slow or failed, at the top of its screen. Pure; uses only the figures of the call. */
import type { CallDetail } from '../../observe/capture/captured.ts'
import type { Change } from '../../observe/capture/diff.ts'
import { formatMs, formatPercent } from './format.ts'
import { formatPath } from './two-hops.ts'

export interface Sentence {
  /** `trouble`: a failure; `notice`: a remark; `plain`: a fact. */
  readonly tone: 'trouble' | 'notice' | 'plain'
  readonly text: string
  /** The server at which a sign-in is offered here. */
  readonly signInAt?: string
}

/** Above it, the sentence on the time has the tone of a notice. */
const SLOW_MS = 1_000
const ARGUMENTS_RULE = 'tools.*.args'

export const explainCall = (detail: CallDetail): readonly Sentence[] => [
  ...explainEnd(detail),
  ...explainTime(detail),
  ...explainChanges(detail),
]

const explainEnd = ({ state, outcome, error, server, name }: CallDetail): Sentence[] => {
  const at = server === null ? 'the server' : `server ${server}`
  if (state === 'open') return [{ tone: 'plain', text: 'The call is in progress.' }]
  if (error?.kind === 'auth_required' && server !== null)
    return [
      {
        tone: 'trouble',
        text: `Server ${server} does not accept the sign-in, or no longer accepts it. ${name ?? 'The call'} was not executed.`,
        signInAt: server,
      },
    ]
  const message = error?.message === null || error?.message === undefined ? '' : `: ${error.message}`
  switch (outcome) {
    case 'tool_error':
      return [{ tone: 'trouble', text: `The tool itself reported an error; ${at} and the connection worked.` }]
    case 'error':
      return [{ tone: 'trouble', text: `${at[0]?.toUpperCase()}${at.slice(1)} answered with an error${message}` }]
    case 'failed':
      return [{ tone: 'trouble', text: `Trunkline got no valid answer from ${at}${message}` }]
    case 'refused':
      return [{ tone: 'trouble', text: `Trunkline refused the call before it reached a server${message}` }]
    case 'cancelled':
      return [{ tone: 'notice', text: 'The host cancelled the call.' }]
    case 'input_required':
      return [{ tone: 'plain', text: 'The server needs input from the user. The host sends it with a later call.' }]
    default:
      return []
  }
}

const explainTime = ({ ms, times, asks, server, hops, host }: CallDetail): Sentence[] => {
  const parts = [
    { share: ms.downstream / ms.total, text: `was spent at server ${server ?? ''}${waits(hops)}` },
    { share: ms.gateway / ms.total, text: `was spent in Trunkline${gatewayReason(times)}` },
    { share: ms.host / ms.total, text: `was spent at the host${host === null ? '' : ` ${host}`}${hostReason(asks, times)}` },
  ]
  const largest = parts.toSorted((a, b) => b.share - a.share)[0]
  if (largest === undefined || !(ms.total > 0)) return []
  const spent = formatMs(ms.total * largest.share)
  const sentence: Sentence = {
    tone: ms.total > SLOW_MS ? 'notice' : 'plain',
    text: `${spent} of ${formatMs(ms.total)} (${formatPercent(largest.share)}) ${largest.text}.`,
  }
  const again = hops.filter(({ kind }) => kind === 'retry').length
  return [
    sentence,
    ...(again === 0
      ? []
      : [
          {
            tone: 'notice',
            text: `It was sent ${again === 1 ? 'once more' : `${again} times more`}, because a connection was lost.`,
          } as const,
        ]),
  ]
}

const waits = (hops: CallDetail['hops']): string => {
  const [hop] = hops
  if (hops.length !== 1 || hop === undefined || hop.firstByte === null || hop.done === null) return ''
  const toFirst = hop.firstByte - hop.sent
  return toFirst >= (hop.done - hop.sent) * 0.5
    ? ', most of it before its first byte'
    : ', most of it while its answer was received'
}

const gatewayReason = ({ started, slotted, sent }: CallDetail['times']): string => {
  const queued = slotted === null || started === null ? 0 : slotted - started
  const connected = sent === null || slotted === null ? 0 : sent - slotted
  if (Math.max(queued, connected) < 1) return ''
  return queued > connected
    ? `, ${formatMs(queued)} of it in the queue (limits.concurrency, limits.rate)`
    : `, ${formatMs(connected)} of it to connect (start of the server, or its handshake)`
}

const hostReason = (asks: CallDetail['asks'], { answered, written }: CallDetail['times']): string => {
  const askedMs = asks.reduce((sum, { from, to }) => sum + (to ?? from) - from, 0)
  const writingMs = answered === null || written === null ? 0 : written - answered
  return askedMs > writingMs
    ? `, which answered a request of the server (${asks[0]?.method ?? ''})`
    : ', which read its answer slowly'
}

const explainChanges = ({ diff, deviations }: CallDetail): Sentence[] => {
  const edited = diff?.request.filter(({ rule }) => rule === ARGUMENTS_RULE) ?? []
  return [
    ...(edited.length === 0
      ? []
      : [
          {
            tone: 'notice',
            text: `The configuration changed arguments: ${edited.map(describeArgument).join('; ')}.`,
          } as const,
        ]),
    ...deviations.map(({ verdict, reason, rule }): Sentence => ({
      tone: 'notice',
      text: `${verdict === 'impossible' ? 'Could not be translated' : 'Translated'} (${rule}): ${reason}`,
    })),
  ]
}

const describeArgument = ({ path, from, to, change }: Change): string => {
  const name = formatPath(path.slice(2)) || formatPath(path)
  if (change === 'added') return `${name} = ${shorten(to)} was added`
  return change === 'removed' ? `${name} was removed` : `${name} changed from ${shorten(from)} to ${shorten(to)}`
}

const shorten = (json: string | null): string => (json === null ? 'nothing' : json.length > 60 ? `${json.slice(0, 60)}…` : json)
