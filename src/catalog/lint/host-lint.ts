/** Checks a list of tools against the limits of hosts (`host-limits.ts`): findings with remedies. Pure. */
import { Payload } from '../../wire/message/payload.ts'
import { HOST_LIMITS } from './host-limits.ts'
import type { Consequence, HostLimits, Limit } from './host-limits.ts'
import { mapRows } from '../view/view.ts'
import type { View } from '../view/view.ts'

/** A limit of a host that is exceeded. */
export interface HostFinding {
  /** Key of the host: `claude-desktop`. */
  readonly host: string
  /** The toolset concerned; empty: hosts without a toolset. */
  readonly toolset: string
  /** A tool's exposed name; empty: all tools together. */
  readonly tool: string
  readonly consequence: Consequence
  readonly message: string
  readonly remedy: string
  /** Source of the limit. */
  readonly from: string
}

/** What is checked: the list of a toolset and its instructions. */
export interface Linted {
  readonly toolset: string
  readonly view: View
  readonly instructions: string | undefined
}

/** Default name of this gateway in the configuration of hosts. */
export const OUR_NAME = 'trunkline'

/** Findings for one host; none for an unknown host. `all`: all toolsets, of which a remedy may name one that fits. */
export const lintHost = (host: string, linted: Linted, all: readonly Linted[]): HostFinding[] => {
  const limits = HOST_LIMITS[host]
  if (limits === undefined) return []
  const { toolset, view, instructions } = linted
  const list = view.listed('tools')
  const count = list.rows.length
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
  if (tools !== undefined && count > tools.most)
    ofAll.push(found(tools, '', `${count} tools > ${tools.most}`, fewerTools(tools.most, linted, all)))
  const bytes = Buffer.byteLength(instructions ?? '')
  const most = limits.instructions?.most ?? Infinity
  if (limits.instructions !== undefined && bytes > most)
    ofAll.push(found(limits.instructions, '', `instructions of ${bytes} bytes > ${most}`, 'set instructions: false for servers'))
  const ofEach = mapRows(list, ({ exposed, server }, bytes) =>
    [...lintName(limits, exposed, server.key), ...lintDescription(limits, bytes, server.key)].map(([limit, message, remedy]) =>
      found(limit, exposed, message, remedy),
    ),
  )
  return [...ofAll, ...ofEach.flat()]
}

type ToolFinding = readonly [limit: Omit<Limit, 'most'>, message: string, remedy: string]

const lintName = ({ namePrefix, name, characters }: HostLimits, exposed: string, server: string): ToolFinding[] => {
  const prefix = namePrefix(OUR_NAME)
  const findings: ToolFinding[] = []
  if (!/^[A-Za-z0-9_-]+$/.test(exposed))
    findings.push([characters, 'other characters than letters, digits, _ and -', 'set naming.prefix: always, or rename it'])
  const length = prefix.length + exposed.length
  if (name !== undefined && length > name.most) {
    const most = name.most - prefix.length
    const remedy = most >= 16 ? `set naming.max_length: ${most}, or rename it under servers.${server}.tools` : 'rename it'
    findings.push([name, `a name of ${length} characters${prefix && ` with "${prefix}"`} > ${name.most}`, remedy])
  }
  return findings
}

const lintDescription = ({ description }: HostLimits, entry: Buffer, server: string): ToolFinding[] => {
  if (description === undefined || entry.length <= description.most) return []
  const definition = Payload.at(entry)
  const bytes = Buffer.byteLength(definition.text('description') ?? '')
  if (bytes <= description.most) return []
  const remedy = `give ${definition.text('name')} another one under servers.${server}.tools`
  return [[description, `a description of ${bytes} bytes > ${description.most}`, remedy]]
}

const fewerTools = (most: number, { toolset }: Linted, all: readonly Linted[]): string => {
  const fitting = all.find((one) => one.toolset !== '' && one.toolset !== toolset && one.view.listed('tools').rows.length <= most)
  const other = fitting === undefined ? 'make a toolset that holds fewer' : `use toolset "${fitting.toolset}"`
  return `set discovery: search, or ${other}`
}
