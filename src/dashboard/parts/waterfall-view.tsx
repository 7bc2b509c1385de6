/** The waterfall of a call: lanes below one time axis, and the same as a table for screen readers. */
import type { JSX } from 'preact'
import { formatMs } from '../model/format.ts'
import { layoutWaterfall } from '../model/waterfall.ts'
import type { CallDetail } from '../../observe/capture/captured.ts'
import { Line } from './basics.tsx'

const ENDS: Readonly<Record<string, string>> = { error: 'error', lost: 'connection lost', open: 'in progress' }

export const WaterfallView = ({ detail }: { readonly detail: CallDetail }): JSX.Element => {
  const { totalMs, ticks, lanes } = layoutWaterfall(detail)
  const percent = (ms: number): string => `${Math.min(100, (ms / totalMs) * 100)}%`
  return (
    <div class="waterfall" role="table" aria-label="Time">
      <div class="waterfall-axis" role="row">
        <span role="columnheader" class="waterfall-name">
          Lane
        </span>
        <span role="columnheader" class="waterfall-track">
          <span class="sr-only">Time</span>
          {ticks.map((tick) => (
            <span key={tick} class="waterfall-tick" style={{ left: percent(tick) }} aria-hidden="true">
              {tick === 0 ? '0' : formatMs(tick)}
            </span>
          ))}
        </span>
      </div>
      {lanes.map((lane, index) => (
        <div key={index} class="waterfall-lane" role="row">
          <span class="waterfall-name" role="rowheader">
            <strong>
              <Line text={lane.label} />
            </strong>
            <span class="muted">
              <Line text={[lane.detail, ENDS[lane.end] ?? ''].filter(Boolean).join(' · ')} />
            </span>
          </span>
          <span class="waterfall-track" role="cell">
            {ticks.map((tick) => (
              <span key={tick} class="waterfall-line" style={{ left: percent(tick) }} aria-hidden="true" />
            ))}
            {lane.bars.map((bar, at) => {
              const label = `${bar.label}: ${formatMs(bar.to - bar.from)}`
              const isLate = bar.to / totalMs > 0.7
              return (
                <span
                  key={at}
                  class={`bar bar-${bar.phase}${bar.isOpen === true ? ' bar-open' : ''}`}
                  style={{ left: percent(bar.from), width: `max(2px, ${percent(bar.to - bar.from)})` }}
                  title={label}
                >
                  {(bar.to - bar.from) / totalMs > 0.04 ? (
                    <span class={isLate ? 'bar-label bar-label-left' : 'bar-label'}>{formatMs(bar.to - bar.from)}</span>
                  ) : (
                    <span class="sr-only">{label}</span>
                  )}
                </span>
              )
            })}
          </span>
        </div>
      ))}
      <ul class="legend" aria-hidden="true">
        {(
          [
            ['gateway', 'Trunkline'],
            ['queue', 'queue'],
            ['connect', 'connection'],
            ['wait', 'until the first byte'],
            ['receive', 'answer is received'],
            ['host', 'host'],
          ] as const
        ).map(([phase, label]) => (
          <li key={phase}>
            <span class={`swatch bar-${phase}`} /> {label}
          </li>
        ))}
      </ul>
    </div>
  )
}
