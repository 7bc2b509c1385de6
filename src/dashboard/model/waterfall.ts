/** One call as bars on a time axis: a lane for the gateway, for each request to a server, for each server request, and for the host. */
import type { CallDetail } from '../../observe/capture/captured.ts'

/** Purpose of the time; `wait`: until the first byte from the server. */
export type Phase = 'gateway' | 'queue' | 'connect' | 'wait' | 'receive' | 'host'

export interface Bar {
  readonly phase: Phase
  readonly label: string
  /** Milliseconds since the call arrived. */
  readonly from: number
  readonly to: number
  /** It has not ended yet. */
  readonly isOpen?: true
}

export interface WaterfallLane {
  readonly label: string
  readonly detail: string
  readonly end: 'result' | 'error' | 'lost' | 'open' | ''
  readonly bars: readonly Bar[]
}

export interface Waterfall {
  /** End of the axis. */
  readonly totalMs: number
  /** Labelled positions. */
  readonly ticks: readonly number[]
  readonly lanes: readonly WaterfallLane[]
}

type Shown = Pick<CallDetail, 'times' | 'hops' | 'asks' | 'ms' | 'server' | 'host'>

export const layoutWaterfall = ({ times, hops, asks, ms, server, host }: Shown): Waterfall => {
  const { started, slotted, sent, done, answered, written } = times
  const ends = [ms.total, written, answered, done, ...hops.map((hop) => hop.done), ...asks.map((ask) => ask.to)]
  const totalMs = Math.max(0.001, ...ends.map((end) => end ?? 0))
  const bar = (phase: Phase, label: string, from: number | null, to: number | null): Bar[] =>
    from === null
      ? []
      : to === null
        ? [{ phase, label, from, to: totalMs, isOpen: true }]
        : to <= from
          ? []
          : [{ phase, label, from, to }]
  const gateway = [
    ...(started === null ? [] : bar('gateway', 'read', 0, started)),
    ...(slotted === null ? [] : bar('queue', 'waited for a free slot', started, slotted)),
    ...(sent === null ? [] : bar('connect', 'connection and message', slotted ?? started, sent)),
    ...(answered === null ? [] : bar('gateway', 'translated', done ?? sent ?? started, answered)),
  ]
  const lanes: WaterfallLane[] = [
    { label: 'Trunkline', detail: '', end: '', bars: gateway },
    ...hops.map((hop): WaterfallLane => {
      const first = hop.firstByte ?? hop.done
      return {
        label: hop.server ?? server ?? 'server',
        detail: `${KINDS[hop.kind]}, ${hop.transport === 'pipe' ? 'stdio' : hop.transport}, ${hop.revision}, request ${hop.requestId}`,
        end: hop.end,
        bars: [
          ...bar('wait', 'until the first byte', hop.sent, first),
          ...(first === null ? [] : bar('receive', 'its answer', first, hop.done)),
        ],
      }
    }),
    ...asks.map((ask): WaterfallLane => ({
      label: host ?? 'host',
      detail: `was asked: ${ask.method}`,
      end: ask.to === null ? 'open' : '',
      bars: bar('host', ask.method, ask.from, ask.to),
    })),
  ]
  const taking = written === null ? [] : bar('host', 'took the answer', answered, written)
  if (taking.length > 0) lanes.push({ label: host ?? 'host', detail: 'took the answer', end: '', bars: taking })
  return { totalMs, ticks: ticksOf(totalMs), lanes }
}

const KINDS = { call: 'call', retry: 'sent again', round: 'with answers of a person' } as const

/** Four to eight round figures from 0 on. */
const ticksOf = (totalMs: number): number[] => {
  const rough = totalMs / 5
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough) ?? rough
  const ticks: number[] = []
  for (let at = 0; at <= totalMs * 1.000_001; at += step) ticks.push(Number(at.toPrecision(6)))
  return ticks
}
