/** The questions of an operator, each with one answer from the run. */
import type { Figure } from './figures.ts'
import type { ToolName } from './payload.ts'
import type { Report } from './report.ts'
import type { Row } from './rounds.ts'

const short = (value: number): string => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2))
const micros = (value: number): string => (value >= 1_000 ? `${short(value / 1_000)} ms` : `${short(value)} µs`)

const SIZES: Readonly<Record<ToolName, string>> = { t100: '100 B', t10k: '10 KB', t1m: '1 MB' }
const kindOf = (tool: ToolName): string => (tool === 't100' ? 'prose' : 'dense')

/** A question that this run cannot answer is left out. */
export const answersText = ({ rows, figures }: Pick<Report, 'rows' | 'figures'>): string => {
  const row = (subject: string, between: string, tool: ToolName, kind = kindOf(tool), inFlight = 32): Row | undefined =>
    rows.find(
      (one) =>
        one.subject === subject &&
        one.between.join(' → ') === between &&
        one.tool === tool &&
        one.kind === kind &&
        one.way === undefined &&
        one.inFlight === inFlight,
    )
  const of = (subject: string, what: string | RegExp): Figure | undefined =>
    figures.find((one) => one.subject === subject && (typeof what === 'string' ? one.what === what : what.test(one.what)))
  const ours = (what: string | RegExp) => of('trunkline', what)
  const raw = (what: string) => of('raw', what)
  /** By size; '' where something was not measured. */
  const bySize = (text: (tool: ToolName) => string | undefined): string => {
    const found = (Object.keys(SIZES) as ToolName[]).map((tool) => [tool, text(tool)] as const)
    return found.flatMap(([tool, said]) => (said === undefined ? [] : [`${said} (${SIZES[tool]})`])).join(', ')
  }
  const cpuOf = (subject: string, between: string) => (tool: ToolName) => {
    const found = row(subject, between, tool)
    return found && micros(found.cpuPerCall.median)
  }
  const ratioOf = (between: string) => (tool: ToolName) => {
    const ratio = row('trunkline', between, tool)?.ratio
    return ratio && `${short(ratio.median)} ×`
  }
  /** CPU of a call of one subject ÷ ours, each beside its baseline of the same rounds. */
  const against =
    (subject: string, between: string, base = 'legacy → legacy') =>
    (tool: ToolName) => {
      const kind = row(subject, between, tool) === undefined ? 'prose' : kindOf(tool)
      const [other, own] = [row(subject, between, tool, kind), row('trunkline', base, tool, kind)]
      if (other?.ratio === undefined || own?.ratio === undefined) return undefined
      return `${short(other.ratio.median / own.ratio.median)} ×`
    }
  const HTTP = 'legacy → legacy'
  const alone = (subject: string, field: 'p50' | 'p99') => row(subject, HTTP, 't100', 'prose', 1)?.[field]
  const added = (subject: string, field: 'p50' | 'p99'): string => {
    const [through, direct] = [alone(subject, field), alone('direct', field)]
    return through === undefined || direct === undefined ? '' : `${short(through - direct)} ms`
  }
  const ratios = rows.flatMap((one) =>
    one.subject === 'trunkline' &&
    one.between.join(' → ') === HTTP &&
    one.tool !== 't100' &&
    one.inFlight === 32 &&
    one.way === undefined
      ? [one]
      : [],
  )
  const range = (tool: ToolName): string | undefined => {
    const own = ratios.filter((one) => one.tool === tool && one.ratio !== undefined)
    const sorted = own.toSorted((one, other) => one.ratio!.median - other.ratio!.median)
    const [least, most] = [sorted[0], sorted.at(-1)]
    if (least === undefined || most === undefined) return undefined
    return `${short(least.ratio!.median)} × ${least.kind} to ${short(most.ratio!.median)} × ${most.kind}`
  }
  const start = 'to the first answer'
  const rest = 'resident after the first answer'
  const perSecond = (tool: ToolName) => {
    const found = row('trunkline', HTTP, tool)
    return found && `${found.callsPerSecond.median.toFixed(0)} calls/s`
  }
  const figureText = (found: Figure | undefined): string =>
    found === undefined ? '' : `${short(found.value.median)} ${found.unit}`
  const times = (found: Figure | undefined): string => (found?.ratio === undefined ? '' : `${short(found.ratio.median)} ×`)
  const worstNeighbour = figures
    .filter(({ subject, what, ratio }) => subject === 'trunkline' && /^100 B beside .*, p99$/.test(what) && ratio !== undefined)
    .toSorted((one, other) => other.ratio!.median - one.ratio!.median)[0]

  const lines: readonly (readonly [question: string, answer: string, beside: string])[] = [
    [
      'What does a call cost in CPU?',
      bySize(cpuOf('trunkline', HTTP)),
      `${bySize(ratioOf(HTTP))} of a pass-through of node:http and undici (raw)`,
    ],
    ['How much does the kind of text matter?', bySize(range), 'of raw, for the best and the worst kind of payload'],
    [
      'How much time does it add to a call?',
      `p50 ${added('trunkline', 'p50')}, p99 ${added('trunkline', 'p99')}`,
      `raw ${added('raw', 'p50')}, ${added('raw', 'p99')}`,
    ],
    ['How many calls does one process take?', bySize(perSecond), 'host, server and gateway share the machine'],
    [
      'What does a call to a stdio server cost?',
      bySize(cpuOf('trunkline', 'legacy → stdio')),
      `${bySize(ratioOf('legacy → stdio'))} of raw before an HTTP server`,
    ],
    [
      'What does it cost if host and server use stdio?',
      bySize(cpuOf('trunkline', 'stdio → stdio')),
      `${bySize(ratioOf('stdio → stdio'))} of a relay that reads lines and parses them`,
    ],
    [
      'How long does a start take?',
      figureText(ours(start)),
      `raw ${figureText(raw(start))}; if a server hangs ${figureText(of('trunkline, its server hangs', start))}`,
    ],
    [
      'How much memory does it take?',
      figureText(ours(rest)),
      `raw ${figureText(raw(rest))}; 1,000 idle sessions ${figureText(ours('1,000 idle, resident'))}`,
    ],
    [
      'Do many sessions make a call slower?',
      times(ours(/^CPU of a call, .* sessions that made a call$/)),
      'CPU with 10,000 sessions ÷ with one, in one process',
    ],
    [
      'Do many servers make a call slower?',
      times(ours(/^CPU of a call, .* servers of/)),
      'CPU with 500 servers ÷ with one, in one process',
    ],
    [
      'Do many tools make a call slower?',
      times(ours(/^CPU of a call, .* tools of one server$/)),
      'CPU with 10,000 tools ÷ with 30, in one process',
    ],
    [
      'How long does a list of 5,000 tools take?',
      figureText(ours('100 × 50, p50')),
      `raw with one server ${figureText(raw('100 × 50, p50'))}`,
    ],
    [
      'Do big results of another host make a call slower?',
      worstNeighbour === undefined ? '' : `p99 ${figureText(worstNeighbour)}, ${times(worstNeighbour)} of raw's`,
      worstNeighbour === undefined ? '' : `the worst: ${worstNeighbour.what}`,
    ],
    [
      'What does the verification of a JWT cost?',
      bySize(against('trunkline-jwt', HTTP)),
      'the CPU of a call with a static token',
    ],
    [
      'What do ten policy rules cost?',
      times(ours(/^CPU of a call with ten rules, legacy → legacy, 100 B$/)),
      'the CPU of a call of 100 B without rules, in one process',
    ],
    [
      'What does capturing cost, with bodies of errors; of all calls?',
      `${bySize(against('trunkline-errors', HTTP))}; ${bySize(against('trunkline-all', HTTP))}`,
      '',
    ],
    ...(
      [
        ['mcp-hub', 'http-sse → legacy'],
        ['sdk-proxy', HTTP],
        ['nginx', HTTP],
        ['supergateway', 'legacy → stdio'],
        ['mcp-proxy', 'legacy → stdio'],
        ['agentgateway', HTTP],
      ] as const
    ).map(
      ([subject, between]) =>
        [
          `What does ${subject} take?`,
          bySize(against(subject, between, between.endsWith('stdio') ? between : HTTP)),
          'the CPU per call of Trunkline',
        ] as const,
    ),
  ]
  const known = lines.filter(([, answer]) => answer !== '' && answer !== '; ' && answer !== 'p50 , p99 ')
  return ['| question | answer | compared with |', '| --- | --- | --- |', ...known.map((line) => `| ${line.join(' | ')} |`)].join(
    '\n',
  )
}
