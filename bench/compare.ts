/** The figures of a run in short, to be committed, and the comparison of two runs. It is for a reader: no difference fails. */
import type { Figure } from './figures.ts'
import { cellName } from './cells.ts'
import type { Row } from './rounds.ts'

/** Less is better in all: ratios to a baseline of the same run where there is one, else the value with its unit in the name. */
export interface Figures {
  readonly date: string
  readonly machine: string
  readonly node: string
  readonly figures: Readonly<Record<string, number>>
}

const WORSE = 1.15
const SUBJECT = /^trunkline/

const round = (value: number): number => Number(value.toPrecision(3))

/** Those of this gateway, by name. */
export const shortFigures = (rows: readonly Row[], figures: readonly Figure[]): Figures['figures'] => {
  const calls = rows.flatMap((row) => {
    const { subject, between, ratio } = row
    if (!SUBJECT.test(subject) || ratio === undefined) return []
    const name = `${subject === 'trunkline' ? '' : `${subject}: `}CPU per call ÷ raw, ${between.join(' → ')}, ${cellName(row)}`
    return [[name, round(ratio.median)] as const]
  })
  const others = figures.flatMap(({ section, subject, what, unit, value, ratio }) =>
    SUBJECT.test(subject)
      ? [[`${section}: ${subject}, ${what}, ${ratio ? '×' : unit}`, round((ratio ?? value).median)] as const]
      : [],
  )
  return Object.fromEntries([...calls, ...others])
}

export interface Difference {
  readonly name: string
  readonly before: number
  readonly now: number
  readonly ratio: number
}

export const differences = (before: Figures['figures'], now: Figures['figures']): readonly Difference[] =>
  Object.entries(now).flatMap(([name, value]) => {
    const old = before[name]
    return old === undefined ? [] : [{ name, before: old, now: value, ratio: value / old }]
  })

export const worsened = (all: readonly Difference[]): readonly Difference[] => all.filter(({ ratio }) => ratio > WORSE)

/** Every figure that both have, and those that worsened by more than 15 %. */
export const renderComparison = (before: Figures, now: Figures): string => {
  const all = differences(before.figures, now.figures)
  const line = ({ name, before, now, ratio }: Difference) =>
    `${ratio.toFixed(2).padStart(7)}  ${String(before).padStart(8)} → ${String(now).padEnd(8)}  ${name}`
  const worse = worsened(all)
  const verdict =
    worse.length === 0 ? 'Nothing worsened by more than 15 %.' : `Worsened by more than 15 %:\n${worse.map(line).join('\n')}`
  const gone = Object.keys(now.figures).filter((name) => before.figures[name] === undefined).length
  const unknown = gone === 0 ? '' : `\n${gone} figures of this run are not among the committed ones.`
  const where =
    before.machine === now.machine && before.node === now.node
      ? ''
      : `\nThen: ${before.machine}, node ${before.node}. Now: ${now.machine}, node ${now.node}.`
  return `now ÷ then (${before.date})\n${all.map(line).join('\n')}\n\n${verdict}${unknown}${where}\n`
}
