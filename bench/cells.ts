/** The columns of the tables, and which of them each subject is measured in. */
import { PAYLOAD_KINDS, type PayloadKind } from './payload-kinds.ts'
import { TOOLS, type ToolName } from './payload.ts'
import type { Between } from './subjects.ts'

export interface Cell {
  readonly tool: ToolName
  readonly kind: PayloadKind
  readonly inFlight: number
  /** The payload is in the arguments of the call, and its result is small; without it the payload is in the result. */
  readonly way?: 'arguments'
}

const SIZES: Readonly<Record<ToolName, string>> = { t100: '100 B', t10k: '10 KB', t1m: '1 MB' }

/** `10 KB dense × 32`, `1 MB prose as arguments × 32`. */
export const cellName = ({ tool, kind, inFlight, way }: Cell): string =>
  `${SIZES[tool]}${kind === 'prose' ? '' : ` ${kind}`}${way === undefined ? '' : ' as arguments'} × ${inFlight}`

const SIZE_NAMES = Object.keys(TOOLS) as ToolName[]
const atOnce = (tool: ToolName, kind: PayloadKind = 'prose'): Cell => ({ tool, kind, inFlight: 32 })
const PROSE: readonly Cell[] = SIZE_NAMES.map((tool) => atOnce(tool))
const ALONE: readonly Cell[] = SIZE_NAMES.map((tool) => ({ tool, kind: 'prose', inFlight: 1 }))

/** Of each kind 32 calls in flight, where there is room for it to show; of prose also the smallest. */
const ofKinds = (kinds: readonly PayloadKind[]): readonly Cell[] => [
  ...(kinds.includes('prose') ? [atOnce('t100')] : []),
  ...(['t10k', 't1m'] as const).flatMap((tool) =>
    PAYLOAD_KINDS.filter((kind) => kinds.includes(kind)).map((kind) => atOnce(tool, kind)),
  ),
]
const asArguments = (kinds: readonly PayloadKind[]): readonly Cell[] =>
  PAYLOAD_KINDS.filter((kind) => kinds.includes(kind)).map((kind) => ({ ...atOnce('t1m', kind), way: 'arguments' }))

/** Pairs for which there is a goal over the whole set of payloads. */
const isJudged = (between: Between): boolean =>
  /^(legacy → legacy|modern → modern|legacy → stdio|stdio → stdio)$/.test(between.join(' → '))
/** Also with payloads in the arguments, and alone. */
const isClosest = ([host, server]: Between): boolean => host === server && (host === 'legacy' || host === 'modern')
const isSet = (subject: string): boolean => /^(raw|lines|trunkline|agentgateway)$/.test(subject)

/** A full run: every kind where a goal is judged over the set, the largest of the rest in what tells most. */
export const fullCells = (subject: string, between: Between, kinds: readonly PayloadKind[]): readonly Cell[] => {
  if (subject === 'direct') return ALONE
  if (!isSet(subject)) return [...PROSE, ...(kinds.includes('dense') ? [atOnce('t10k', 'dense'), atOnce('t1m', 'dense')] : [])]
  if (!isJudged(between)) return subject === 'raw' || between.join() === 'stdio,legacy' ? [...PROSE, ...ALONE] : PROSE
  return [
    ...ofKinds(kinds),
    ...(isClosest(between) ? [...ALONE, ...asArguments(kinds)] : []),
    ...(between[1] === 'stdio' ? ALONE : []),
  ]
}

/** Three processes where a goal is judged over the set: what is compiled how differs from one process to the next. */
export const fullCopies = (subject: string, between: Between): number => (isSet(subject) && isJudged(between) ? 3 : 1)

/** Each kind of host and of server, and the pairs with a goal of their own: enough to show that everything works. */
export const isShown = (between: Between): boolean =>
  between[0] === between[1] || between.join() === 'legacy,sse-reply' || isJudged(between)

/** A run of calls over HTTP alone: prose in every size, alone and at once; of other kinds what is at once. */
export const plainCells = (kinds: readonly PayloadKind[]): readonly Cell[] => [
  ...(kinds.includes('prose')
    ? SIZE_NAMES.flatMap((tool) => [1, 32].map((inFlight) => ({ tool, kind: 'prose' as const, inFlight })))
    : []),
  ...ofKinds(kinds).filter(({ kind }) => kind !== 'prose'),
]
