/** A list of tools against what hosts can take (`host-limits.ts`): every finding with its remedy. Pure. */
import { Payload } from '../../wire/message/payload.ts'
import { HOST_LIMITS } from './host-limits.ts'
import type { Consequence, HostLimits, Limit } from './host-limits.ts'
import type { View } from '../view/view.ts'

/** One thing that a host would not take as it is. */
export interface HostFinding {
  /** The word for the host: `claude-desktop`. */
  readonly host: string
  /** The toolset it holds for; empty for what hosts get that name none. */
  readonly toolset: string
  /** A tool's exposed name; empty where it is about all of them. */
  readonly tool: string
  readonly consequence: Consequence
  readonly message: string
  readonly remedy: string
  /** Where the limit is known from. */
  readonly from: string
}

/** What is looked at: a toolset's list, and the instructions that come with it. */
export interface Linted {
  readonly toolset: string
  readonly view: View
  readonly instructions: string | undefined
}

/** How hosts call us, unless they were told otherwise. */
export const OUR_NAME = 'trunkline'

/** Nothing of a host whose limits are not known. `all`: every toolset there is, so that one that fits can be named. */
export const lintHost = (host: string, linted: Linted, all: readonly Linted[]): HostFinding[] => {
  const limits = HOST_LIMITS[host]
  if (limits === undefined) return []
  const { toolset, view, instructions } = linted
  const { rows, entries } = view.listed('tools')
  const found = (limit: Omit<Limit, 'most'>, tool: string, message: string, remedy: string): HostFinding => ({
    host,
    toolset,
    tool,
    consequence: limit.consequence,
    message: `${message}: ${limit.effect}`,
    remedy,
    from: limit.from,
  })
  const ofAll: HostFinding[] = []
  const { tools } = limits
  if (tools !== undefined && rows.length > tools.most)
    ofAll.push(found(tools, '', `${rows.length} tools > ${tools.most}`, fewerTools(tools.most, linted, all)))
  const text = Buffer.byteLength(instructions ?? '')
  if (limits.instructions !== undefined && text > limits.instructions.most)
    ofAll.push(
      found(
        limits.instructions,
        '',
        `instructions of ${text} bytes > ${limits.instructions.most}`,
        'set instructions: false for servers',
      ),
    )
  const ofEach = rows.flatMap(({ exposed, server }, at) => [
    ...lintName(limits, exposed, server.key).map(([limit, message, remedy]) => found(limit, exposed, message, remedy)),
    // Cast: there is an entry for each row.
    ...lintDescription(limits, entries[at]!, server.key).map(([limit, message, remedy]) =>
      found(limit, exposed, message, remedy),
    ),
  ])
  return [...ofAll, ...ofEach]
}

type Told = readonly [limit: Omit<Limit, 'most'>, message: string, remedy: string]

const lintName = ({ namePrefix, name, characters }: HostLimits, exposed: string, server: string): Told[] => {
  const prefix = namePrefix(OUR_NAME)
  const told: Told[] = []
  if (!/^[A-Za-z0-9_-]+$/.test(exposed))
    told.push([characters, 'other characters than letters, digits, _ and -', 'set naming.prefix: always, or rename it'])
  const length = prefix.length + exposed.length
  if (name !== undefined && length > name.most) {
    const most = name.most - prefix.length
    const remedy = most >= 16 ? `set naming.max_length: ${most}, or rename it under servers.${server}.tools` : 'rename it'
    told.push([name, `a name of ${length} characters${prefix && ` with "${prefix}"`} > ${name.most}`, remedy])
  }
  return told
}

const lintDescription = ({ description }: HostLimits, entry: Buffer, server: string): Told[] => {
  if (description === undefined || entry.length <= description.most) return []
  const definition = Payload.at(entry)
  const bytes = Buffer.byteLength(definition.text('description') ?? '')
  if (bytes <= description.most) return []
  return [
    [
      description,
      `a description of ${bytes} bytes > ${description.most}`,
      `give ${definition.text('name')} another one under servers.${server}.tools`,
    ],
  ]
}

const fewerTools = (most: number, { toolset }: Linted, all: readonly Linted[]): string => {
  const fitting = all.find((one) => one.toolset !== '' && one.toolset !== toolset && one.view.listed('tools').rows.length <= most)
  const other = fitting === undefined ? 'make a toolset that holds fewer' : `use toolset "${fitting.toolset}"`
  return `set discovery: search, or ${other}`
}
