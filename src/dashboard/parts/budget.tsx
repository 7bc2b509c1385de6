/** The used part of a budget, with the known limits of hosts as marks. */
import type { JSX } from 'preact'
import type { HostCap } from '../../admin/catalog/toolsets.ts'
import { formatCount } from '../model/format.ts'

export interface BudgetProps {
  readonly name: string
  readonly used: number
  /** `undefined`: unlimited. */
  readonly most: number | undefined
  readonly marks: readonly HostCap[]
}

export const Budget = ({ name, used, most, marks }: BudgetProps): JSX.Element => {
  // The marks below four times the use, and always the lowest one.
  const ascending = marks.toSorted((a, b) => a.most - b.most)
  const near = ascending.filter((mark, at) => at === 0 || mark.most < used * 4)
  const scale = Math.max(used, most ?? 0, ...near.map((mark) => mark.most), 1) * 1.05
  const isOver = most !== undefined && used > most
  const isFree = most === undefined && near.length === 0
  const exceeded = marks.filter((mark) => used > mark.most)
  const label = `${formatCount(used)}${most === undefined ? '' : ` of ${formatCount(most)}`} ${name.toLowerCase()}`
  return (
    <div class="budget">
      <span class="budget-name">{name}</span>
      <span class="budget-bar" role="img" aria-label={label}>
        <span
          class={`budget-used${isOver ? ' budget-over' : isFree ? ' budget-free' : ''}`}
          style={{ width: `${(used / scale) * 100}%` }}
        />
        {most !== undefined && (
          <span class="budget-limit" style={{ left: `${(most / scale) * 100}%` }} title={`budget: ${formatCount(most)}`} />
        )}
        {near.map(({ host, label: hostLabel, most: cap }) => (
          <span key={host} class="budget-mark" style={{ left: `${(cap / scale) * 100}%` }} title={`${hostLabel}: ${cap}`} />
        ))}
      </span>
      <span class="num">
        <strong>{formatCount(used)}</strong>
        <span class="muted">{most === undefined ? '' : ` of ${formatCount(most)}`}</span>
      </span>
      {exceeded.length > 0 && (
        <span class="budget-note">
          more than {exceeded.map(({ label: hostLabel, most: cap }) => `${hostLabel} takes (${cap})`).join(', ')}
        </span>
      )}
    </div>
  )
}
